/*
 * graph-list.c: which executable graphs of the program there are, and which it launches: see
 * graph.h.
 */
#include "shim/graph-internal.h"
#include "shim/graph.h"

#include <stdlib.h>

#include "shim/base/table.h"

/* A variant is made ahead only of graphs that are among the last so many uses, and one that has not
 * been used for as long goes, but for its graph's last. */
#define RECENT 2048

struct graph *graph_list;
static struct table execs; /* by the program's exec */

static _Atomic unsigned n_can_move;
static _Atomic uint64_t n_uses;
static _Atomic uint32_t n_unloads;

struct graph *graph_find(CUgraphExec exec) {
	return table_get(&execs, (uintptr_t)exec);
}

/* NULL: no memory. */
static struct graph *find_free(void) {
	struct graph *g = graph_list;

	while (g && g->exec) {
		g = g->next;
	}
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g) {
			g->next = graph_list;
			graph_list = g;
		}
	}
	return g;
}

struct graph *graph_add(CUgraphExec exec) {
	struct graph *g = find_free();

	if (!g || table_put(&execs, (uintptr_t)exec, g) < 0) {
		return NULL;
	}
	g->exec = exec;
	return g;
}

void graph_remove(struct graph *g) {
	table_take(&execs, (uintptr_t)g->exec);
	g->exec = NULL;
}

/* ---- whether it can move ---- */

void graph_set_copy(struct graph *g, CUgraph copy) {
	bool can_move = copy != NULL;

	if (atomic_exchange(&g->can_move, can_move) != can_move) {
		atomic_fetch_add(&n_can_move, can_move ? 1 : -1);
	}
	g->copy = copy;
}

bool graph_can_move(const struct graph *g) {
	return g && atomic_load(&g->can_move);
}

bool graph_any(void) {
	return atomic_load_explicit(&n_can_move, memory_order_relaxed) > 0;
}

/* ---- its last launch ---- */

uint64_t graph_next_use(void) {
	return atomic_fetch_add(&n_uses, 1) + 1;
}

bool graph_is_recent(uint64_t use) {
	return use + RECENT >= atomic_load(&n_uses);
}

void graph_launched(struct graph *g, CUcontext context) {
	if (g) {
		atomic_store(&g->context, context);
		atomic_store(&g->unloads, atomic_load(&n_unloads));
		atomic_store(&g->last, graph_next_use());
	}
}

void graph_count_unload(void) {
	atomic_fetch_add(&n_unloads, 1);
}

bool graph_is_at_hand(const struct graph *g, CUcontext context) {
	uint64_t last = atomic_load(&g->last);

	return g->exec && last && graph_is_recent(last) && atomic_load(&g->context) == context &&
	       atomic_load(&g->unloads) == atomic_load(&n_unloads);
}

void graph_list_after_fork(void) {
	execs = TABLE_NULL;
	graph_list = NULL;
	atomic_store(&n_can_move, 0);
}
