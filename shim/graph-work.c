/*
 * graph-work.c: the lock of graphs, and which threads work on a graph without it, see
 * graph-internal.h.
 */
#include "shim/graph-internal.h"
#include "shim/graph.h"

#include <pthread.h>

#include "shim/base/nap.h"
#include "shim/enforce/green.h"
#include "shim/state.h"

/* While the process exits. */
#define LEAVE_NAP_NS (200 * NSEC_PER_USEC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* works, or something is wanted */
static struct graph_work *works;
static _Atomic unsigned n_works;
static unsigned n_waiting; /* threads of the program */
static _Atomic bool leaving;

int graph_lock(void) {
	int cancel = state_defer_cancel();

	pthread_mutex_lock(&lock);
	return cancel;
}

void graph_unlock(int cancel) {
	pthread_mutex_unlock(&lock);
	state_restore_cancel(cancel);
}

int graph_enter(void) {
	return state_enter_locked(&lock);
}

void graph_exit(int token) {
	state_leave_locked(&lock, token);
}

/* ---- works ---- */

/* Whose green context a variant for @p is made in. NULL: in none. */
static struct partition *owner_of(struct partition *p) {
	return p && green_confines(p) ? green_owner(p) : NULL;
}

void graph_work_begin(struct graph_work *w, struct graph *g, struct partition *p) {
	*w = (struct graph_work){g, owner_of(p), works};
	works = w;
	atomic_fetch_add(&n_works, 1);
	pthread_mutex_unlock(&lock);
}

void graph_work_end(const struct graph_work *w) {
	struct graph_work **link = &works;

	pthread_mutex_lock(&lock);
	while (*link != w) {
		link = &(*link)->next;
	}
	*link = w->next;
	atomic_fetch_sub(&n_works, 1);
	pthread_cond_broadcast(&changed);
}

/* ---- waiting for them ---- */

bool graph_is_busy(const struct graph *g, struct partition *p) {
	const struct partition *owner = owner_of(p);
	const struct graph_work *w = works;

	while (w && g && w->graph != g && (!owner || w->owner != owner)) {
		w = w->next;
	}
	return w;
}

void graph_wait_for(const struct graph *g, struct partition *p) {
	if (!graph_is_busy(g, p)) {
		return;
	}
	n_waiting++;
	do {
		pthread_cond_wait(&changed, &lock);
	} while (graph_is_busy(g, p));
	n_waiting--;
	pthread_cond_broadcast(&changed);
}

bool graph_is_awaited(void) {
	return n_waiting > 0;
}

void graph_say_changed(void) {
	pthread_cond_broadcast(&changed);
}

void graph_wait_for_change(void) {
	pthread_cond_wait(&changed, &lock);
}

/* ---- the end ---- */

bool graph_is_leaving(void) {
	return atomic_load(&leaving);
}

void graph_leave(nsec_t deadline) {
	/* Without the lock: whoever exits may have it. */
	atomic_store(&leaving, true);
	while (atomic_load(&n_works) > 0 && nap_before(deadline, LEAVE_NAP_NS)) {
	}
}

void graph_work_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	works = NULL;
	atomic_store(&n_works, 0);
	n_waiting = 0;
	atomic_store(&leaving, false);
}
