/*
 * graph.c: see graph.h.
 */
#include "shim/graph.h"

#include "shim/enforce/green.h"
#include "shim/graph-copy.h"
#include "shim/graph-internal.h"
#include "shim/place.h"
#include "shim/state.h"

/* ---- what is made, changed and destroyed ---- */

/* With the lock held. Nothing is known of @g any more but that it is there, and what was launched
 * last. */
static void drop(struct graph *g) {
	struct graph_part *parts;
	struct graph_work work;
	CUgraph copy;

	graph_wait_for(g, NULL);
	parts = graph_take_parts(g, NULL);
	copy = g->copy;
	graph_set_copy(g, NULL);
	atomic_store(&g->last, 0);
	if (parts || copy) {
		graph_work_begin(&work, g, NULL);
		graph_destroy_parts(parts);
		graph_copy_free(copy);
		graph_work_end(&work);
	}
}

/* @copy is the entry's own from now on. */
static void remember(CUgraphExec exec, CUgraph copy, unsigned long long flags, bool plain) {
	int cancel = graph_lock();
	struct graph *g = graph_add(exec);

	if (g) {
		graph_forget_given(g);
		g->flags = flags;
		g->plain = plain;
		graph_set_copy(g, copy);
	} else {
		graph_copy_free(copy);
	}
	graph_unlock(cancel);
}

void graph_instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
	bool plain = false;
	CUgraph copy;
	int token;

	if (!place_active()) {
		return;
	}
	token = state_enter();
	copy = graph_copy_new(graph, flags, &plain);
	remember(exec, copy, flags, plain);
	state_leave(token);
}

void graph_updated(CUgraphExec exec, CUgraph graph) {
	struct graph *g = graph_find(exec);
	bool plain = false;
	int token, cancel;
	CUgraph copy;

	if (!g) {
		return;
	}
	token = state_enter();
	copy = graph ? graph_copy_new(graph, g->flags, &plain) : NULL;
	cancel = graph_lock();
	drop(g);
	g->plain = plain;
	graph_set_copy(g, copy);
	graph_unlock(cancel);
	state_leave(token);
}

void graph_exec_destroying(CUgraphExec exec) {
	struct graph *g = graph_find(exec);
	int token;

	if (!g) {
		return;
	}
	token = graph_enter();
	graph_forget_given(g);
	drop(g);
	graph_remove(g);
	graph_exit(token);
}

/* ---- launches ---- */

/* With the lock held. NULL: none is there that will do. */
static struct graph_part *find_ready(struct graph *g, struct partition *p, CUcontext context,
				     bool last_will_do) {
	struct graph_part *part = graph_find_part(g, p);
	struct graph_part *last = last_will_do ? graph_latest_part(g) : NULL;

	if (!part && last && last->context == context &&
	    green_confines(last->partition) == green_confines(p)) {
		graph_want(context, p);
		part = last;
	}
	return part;
}

/* Waits where another thread works: it may be making this one. */
static struct graph_use use_new(struct graph *g, struct partition *p, CUcontext context) {
	int token = graph_enter();
	struct graph_part *part;
	struct graph_use use;

	graph_wait_for(g, p);
	part = graph_find_part(g, p);
	if (!part && g->copy) {
		part = graph_make_part(g, p, context, false);
	}
	use = graph_use_part(part);
	graph_exit(token);
	return use;
}

struct graph_use graph_use_begin(struct graph *g, struct partition *p, CUcontext context,
				 bool last_will_do) {
	struct graph_use use;
	int cancel;

	if (!g) {
		return (struct graph_use){.exec = NULL};
	}
	cancel = graph_lock();
	use = graph_use_part(find_ready(g, p, context, last_will_do));
	graph_unlock(cancel);
	return use.exec ? use : use_new(g, p, context);
}

/* ---- what goes ---- */

void graph_code_unloading(void) {
	int cancel;

	if (graph_any()) {
		cancel = graph_lock();
		graph_count_unload();
		graph_wait_for(NULL, NULL);
		graph_unlock(cancel);
	}
}

/* With the lock held. */
static void drop_parts_of(struct graph *g, CUcontext context) {
	const struct graph_part *last = g->given.part;

	if (last && last->context == context) {
		graph_forget_given(g); /* it has ended, or will at once */
	}
	graph_destroy_parts(graph_take_parts(g, context));
}

void graph_context_destroying(CUcontext context) {
	int token = graph_enter();

	graph_forget_want(context);
	graph_wait_for(NULL, NULL);
	graph_for_each(g) {
		drop_parts_of(g, context);
	}
	graph_exit(token);
}

void graph_after_fork(void) {
	/* What the parent knows is left where it is. */
	graph_ahead_after_fork();
	graph_work_after_fork();
	graph_list_after_fork();
}
