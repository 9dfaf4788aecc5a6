/*
 * graph-ahead.c: a thread of ours makes the variants for where jobs are to go, before they do: see
 * graph.h.
 */
#include "shim/graph-internal.h"
#include "shim/graph.h"

#include <pthread.h>
#include <string.h>

#include "shim/own-thread.h"
#include "shim/wake.h"

/* Of so many graphs, of those that were launched not long ago. */
#define AHEAD_MAX 32

#define CONTEXTS_MAX 16

/* Where jobs of a context go, or are to go. */
static struct want {
	CUcontext context; /* NULL: free */
	struct partition *partition;
} wants[CONTEXTS_MAX];

static bool running;

/* ---- what is missing ---- */

/* Whether the graph can be instantiated without the program's asking for it now. */
static bool can_be_made(const struct graph *g, CUcontext context) {
	return g->copy && g->plain && graph_is_at_hand(g, context);
}

/* The next one without a variant that is wanted. NULL: there is none. */
static struct graph *find_missing(const struct want *want) {
	unsigned n = 0;

	for (struct graph *g = graph_list; want->context && g; g = g->next) {
		if (can_be_made(g, want->context) && graph_needs(g, want->partition)) {
			if (!graph_find_part(g, want->partition)) {
				return g;
			}
			if (++n == AHEAD_MAX) {
				break;
			}
		}
	}
	return NULL;
}

static struct graph *find_any_missing(struct want *ret_want) {
	struct graph *g = NULL;

	for (unsigned i = 0; i < CONTEXTS_MAX && !g; i++) {
		*ret_want = wants[i];
		g = find_missing(ret_want);
	}
	return g;
}

/* ---- the thread ---- */

static void make_ahead(void) {
	struct want want;
	struct graph *g;
	int token;

	token = graph_enter(); /* whatever this thread calls is ours */
	while (!own_thread_must_end()) {
		g = graph_is_awaited() || graph_is_leaving() ? NULL : find_any_missing(&want);
		if (!g || graph_is_busy(g, want.partition)) {
			graph_wait_for_change();
			continue;
		}
		graph_make_part(g, want.partition, want.context, true);
		if (!find_missing(&want)) {
			wake_tracker();
		}
	}
	graph_exit(token);
}

/* With the stack that threads of the program have: who knows what the driver needs. */
static bool start(void) {
	running = own_thread_start("sbeet-graphs", 0, make_ahead) == 0;
	return running;
}

/* ---- wants ---- */

/* Return: NULL: too many contexts. */
static struct want *set_want(CUcontext context, struct partition *p) {
	struct want *w = NULL;

	for (unsigned i = 0; i < CONTEXTS_MAX && (!w || w->context != context); i++) {
		if (wants[i].context == context || (!w && !wants[i].context)) {
			w = &wants[i];
		}
	}
	if (w) {
		*w = (struct want){context, p};
	}
	return w;
}

bool graph_want(CUcontext context, struct partition *p) {
	const struct want *w = set_want(context, p);

	if (!w || !find_missing(w) || (!running && !start())) {
		return true; /* what is missing is made when it is launched */
	}
	graph_say_changed();
	return false;
}

bool graph_prepare(CUcontext context, struct partition *p) {
	int cancel;
	bool ret;

	if (!graph_any()) {
		return true;
	}
	cancel = graph_lock();
	ret = graph_want(context, p);
	graph_unlock(cancel);
	return ret;
}

void graph_forget_want(CUcontext context) {
	for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
		if (wants[i].context == context) {
			wants[i] = (struct want){.context = NULL};
		}
	}
}

void graph_end_ahead(void) {
	int cancel = graph_lock();

	graph_say_changed();
	graph_unlock(cancel);
}

void graph_ahead_after_fork(void) {
	memset(wants, 0, sizeof(wants));
	running = false;
}
