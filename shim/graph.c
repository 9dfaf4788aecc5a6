/*
 * graph.c: see graph.h.
 */
#include "shim/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/thread.h"
#include "shim/base/nap.h"
#include "shim/base/table.h"
#include "shim/enforce/green.h"
#include "shim/graph-copy.h"
#include "shim/place.h"
#include "shim/state.h"
#include "shim/wake.h"
#include "shim/worker.h"

/* Variants that a graph keeps when one more is made. Terms go to and fro while the planner tries
 * them. */
#define PARTS_MAX 4

/* Made ahead are variants of so many graphs, and only of those that are among the last so many uses
 * (launches of graphs, and of variants). A variant that has not been used for as long goes, but for
 * its graph's last. */
#define AHEAD_MAX 32
#define RECENT	  2048

#define CONTEXTS_MAX 16

/* While the process exits. */
#define LEAVE_NAP_NS (200 * NSEC_PER_USEC)

/* A variant. */
struct graph_part {
	struct partition *partition; /* or the one that stands for its set, see green_owner() */
	CUcontext context;
	CUgraphExec exec;
	unsigned users; /* launches that are just being made, or ordered behind it */
	uint64_t last;	/* use: when it was made or launched */
	bool stale;	/* the graph was changed since: kept for the order of launches only */
	struct graph_part *next;
};

/* The last launch that the driver has taken. Written under the lock. */
struct given {
	_Atomic(CUgraphExec) exec; /* NULL: there is none that the next one must come behind */
	struct graph_part *part;   /* whose exec it is, in the list; NULL: the program's own */
	_Atomic uint64_t key;	   /* of the program's stream; 0: not known */
	_Atomic uint32_t epoch;	   /* worker_epoch: a later stream may have the same key */
};

struct graph {
	CUgraphExec exec; /* the program's; 0: the entry is free */
	CUgraph copy;	  /* owned; NULL: can't move */
	bool plain;	  /* of the copy */
	unsigned long long flags;
	struct graph_part *parts; /* owned */
	struct given given;
	struct graph *next;
	_Atomic bool can_move;

	/* its last launch */
	_Atomic uint64_t last; /* use; 0: none since it was made or changed */
	_Atomic uint32_t unloads;
	_Atomic(CUcontext) context;
};

static _Atomic unsigned n_can_move;
static _Atomic uint64_t n_uses;
static _Atomic uint32_t n_unloads;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table execs; /* by the program's exec; changed under the lock, as is all below */
static struct graph *graphs;

/* What a thread makes or destroys without the lock; on its stack. */
struct work {
	struct graph *graph;	 /* whose copy and variants are the thread's */
	struct partition *owner; /* whose green context is: the driver wants one thread at a time
				    there; NULL: none */
	struct work *next;
};

static struct work *works;
static _Atomic unsigned n_works;
static unsigned n_waiting; /* threads of the program; what is made ahead is made after theirs */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* works, or something is wanted */

/* Where jobs of a context go, or are to go. */
static struct want {
	CUcontext context; /* NULL: free */
	struct partition *partition;
} wants[CONTEXTS_MAX];

static bool running;
static _Atomic bool leaving;

static uint64_t next_use(void) {
	return atomic_fetch_add(&n_uses, 1) + 1;
}

static int lock_here(void) {
	int cancel = state_defer_cancel();

	pthread_mutex_lock(&lock);
	return cancel;
}

static void unlock_here(int cancel) {
	pthread_mutex_unlock(&lock);
	state_restore_cancel(cancel);
}

/* ---- entries; with the lock held ---- */

/* Whether a thread works on @g, or in @owner's green context. NULL: on any, in any. */
static bool is_busy(const struct graph *g, const struct partition *owner) {
	const struct work *w = works;

	while (w && g && w->graph != g && (!owner || w->owner != owner)) {
		w = w->next;
	}
	return w;
}

static void wait_for(const struct graph *g, const struct partition *owner) {
	if (!is_busy(g, owner)) {
		return;
	}
	n_waiting++;
	do {
		pthread_cond_wait(&changed, &lock);
	} while (is_busy(g, owner));
	n_waiting--;
	pthread_cond_broadcast(&changed);
}

/* Whose green context a variant for @p is made in. NULL: in none. */
static struct partition *owner_of(struct partition *p) {
	return green_confines(p) ? green_owner(p) : NULL;
}

/* Nobody works on @g, or in @owner's green context. Between these the lock is not held. */
static void work_begin(struct work *w, struct graph *g, struct partition *owner) {
	*w = (struct work){g, owner, works};
	works = w;
	atomic_fetch_add(&n_works, 1);
	pthread_mutex_unlock(&lock);
}

static void work_end(const struct work *w) {
	struct work **link = &works;

	pthread_mutex_lock(&lock);
	while (*link != w) {
		link = &(*link)->next;
	}
	*link = w->next;
	atomic_fetch_sub(&n_works, 1);
	pthread_cond_broadcast(&changed);
}

static struct graph_part *destroy_parts(struct graph_part *parts) {
	struct graph_part *next;

	for (; parts; parts = next) {
		next = parts->next;
		real_get()->cuGraphExecDestroy(parts->exec);
		free(parts);
	}
	return NULL;
}

static void set_copy(struct graph *g, CUgraph copy) {
	bool can_move = copy != NULL;

	if (atomic_exchange(&g->can_move, can_move) != can_move) {
		atomic_fetch_add(&n_can_move, can_move ? 1 : -1);
	}
	g->copy = copy;
}

/* Its variants stay: they may be in use. */
static void drop_copy(struct graph *g) {
	CUgraph copy = g->copy;

	set_copy(g, NULL);
	graph_copy_free(copy);
}

static void set_given(struct graph *g, CUgraphExec exec, struct graph_part *part, uint64_t key) {
	g->given.part = part;
	atomic_store(&g->given.exec, exec);
	atomic_store(&g->given.key, key);
	atomic_store(&g->given.epoch, atomic_load(&worker_epoch));
}

/* Return: the variants of @g, but for the one that the next launch may have to come behind. */
static struct graph_part *take_parts(struct graph *g) {
	struct graph_part *parts = NULL, *part, **link = &g->parts;

	while ((part = *link)) {
		if (part == g->given.part) {
			part->stale = true;
			link = &part->next;
		} else {
			*link = part->next;
			part->next = parts;
			parts = part;
		}
	}
	return parts;
}

/* Nothing is known of @g any more but that it is there, and what was launched last. */
static void drop(struct graph *g) {
	struct graph_part *parts;
	struct work work;
	CUgraph copy;

	wait_for(g, NULL);
	parts = take_parts(g);
	copy = g->copy;
	set_copy(g, NULL);
	atomic_store(&g->last, 0);
	if (parts || copy) {
		work_begin(&work, g, NULL);
		destroy_parts(parts);
		graph_copy_free(copy);
		work_end(&work);
	}
}

static struct graph *find_free(void) {
	struct graph *g = graphs;

	while (g && g->exec) {
		g = g->next;
	}
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g) {
			g->next = graphs;
			graphs = g;
		}
	}
	return g;
}

/* ---- what the program does ---- */

struct graph *graph_find(CUgraphExec exec) {
	return table_get(&execs, (uintptr_t)exec);
}

void graph_instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
	bool plain = false;
	struct graph *g;
	CUgraph copy;
	int token;

	if (!place_active()) {
		return;
	}
	token = state_enter();
	copy = graph_copy_new(graph, flags, &plain);
	pthread_mutex_lock(&lock);
	g = find_free();
	if (g && table_put(&execs, (uintptr_t)exec, g) == 0) {
		set_given(g, NULL, NULL, 0);
		g->exec = exec;
		g->flags = flags;
		g->plain = plain;
		set_copy(g, copy);
	} else {
		graph_copy_free(copy);
	}
	state_leave_locked(&lock, token);
}

void graph_updated(CUgraphExec exec, CUgraph graph) {
	struct graph *g = graph_find(exec);
	bool plain = false;
	CUgraph copy;
	int token;

	if (!g) {
		return;
	}
	token = state_enter();
	copy = graph ? graph_copy_new(graph, g->flags, &plain) : NULL;
	pthread_mutex_lock(&lock);
	drop(g);
	g->plain = plain;
	set_copy(g, copy);
	state_leave_locked(&lock, token);
}

void graph_exec_destroying(CUgraphExec exec) {
	struct graph *g = graph_find(exec);
	int token;

	if (!g) {
		return;
	}
	token = state_enter_locked(&lock);
	table_take(&execs, (uintptr_t)exec);
	set_given(g, NULL, NULL, 0);
	drop(g);
	g->exec = NULL;
	state_leave_locked(&lock, token);
}

void graph_launched(struct graph *g, CUcontext context) {
	if (g) {
		atomic_store(&g->context, context);
		atomic_store(&g->unloads, atomic_load(&n_unloads));
		atomic_store(&g->last, next_use());
	}
}

bool graph_can_move(const struct graph *g) {
	return g && atomic_load(&g->can_move);
}

bool graph_any(void) {
	return atomic_load_explicit(&n_can_move, memory_order_relaxed) > 0;
}

/* ---- variants; with the lock held ---- */

static bool needs(const struct graph *g, struct partition *p) {
	return green_confines(p) || (green_level(p) > 0 && graph_copy_has_priorities(g->flags));
}

bool graph_needs_partition(const struct graph *g, struct partition *p) {
	return graph_can_move(g) && needs(g, p);
}

/* Where nodes have no priorities the level is the stream's. */
static struct partition *key_of(const struct graph *g, struct partition *p) {
	return graph_copy_has_priorities(g->flags) ? p : green_owner(p);
}

static struct graph_part *find_part(const struct graph *g, struct partition *p) {
	const struct partition *key = key_of(g, p);
	struct graph_part *part = g->parts;

	while (part && (part->stale || part->partition != key)) {
		part = part->next;
	}
	return part;
}

/* The one that was launched last, NULL: none was made. */
static struct graph_part *latest(const struct graph *g) {
	struct graph_part *last = NULL;

	for (struct graph_part *p = g->parts; p; p = p->next) {
		last = !p->stale && (!last || p->last > last->last) ? p : last;
	}
	return last;
}

/* Whether @part of @g is there for nothing. */
static bool is_unused(const struct graph *g, const struct graph_part *part) {
	unsigned n_later = 0;

	for (const struct graph_part *p = g->parts; p; p = p->next) {
		n_later += p->last > part->last;
	}
	return part->users == 0 && part != g->given.part &&
	       (part->stale || n_later >= PARTS_MAX ||
		(n_later > 0 && part->last + RECENT < atomic_load(&n_uses)));
}

/* Return: out of their graphs. */
static struct graph_part *take_unused(void) {
	struct graph_part *unused = NULL, *part, **link;

	for (struct graph *g = graphs; g; g = g->next) {
		for (link = &g->parts; (part = *link);) {
			if (is_unused(g, part)) {
				*link = part->next;
				part->next = unused;
				unused = part;
			} else {
				link = &part->next;
			}
		}
	}
	return unused;
}

/* Makes that of @g for @p, which has a copy, and nobody works there, inside state_enter(). NULL:
 * can't be had. */
static struct graph_part *make_part(struct graph *g, struct partition *p, CUcontext context,
				    bool ahead) {
	struct graph_part *part = calloc(1, sizeof(*part)), *unused;
	struct work work;

	if (!part) {
		return NULL;
	}
	unused = take_unused();
	work_begin(&work, g, owner_of(p));
	destroy_parts(unused);
	if (!atomic_load(&leaving)) { /* asked when the work has begun: see graph_leave() */
		part->exec = graph_copy_instantiate(g->copy, g->flags, p, context);
	}
	if (ahead && part->exec) {
		graph_copy_upload(part->exec, p, context);
	}
	work_end(&work);
	if (!part->exec) {
		free(part);
		if (!atomic_load(&leaving)) {
			drop_copy(g); /* what can't be had once is not tried at each launch */
		}
		return NULL;
	}
	part->partition = key_of(g, p);
	part->context = context;
	part->last = next_use();
	part->next = g->parts;
	g->parts = part;
	return part;
}

/* ---- ahead ---- */

/* Whether the graph can be instantiated without the program's asking for it now. */
static bool is_at_hand(const struct graph *g, CUcontext context) {
	uint64_t last = atomic_load(&g->last);

	return g->exec && g->copy && g->plain && last && last + RECENT >= atomic_load(&n_uses) &&
	       atomic_load(&g->context) == context &&
	       atomic_load(&g->unloads) == atomic_load(&n_unloads);
}

/* The next one without a variant that is wanted. NULL: there is none. */
static struct graph *find_missing(const struct want *want) {
	unsigned n = 0;

	for (struct graph *g = graphs; want->context && g; g = g->next) {
		if (is_at_hand(g, want->context) && needs(g, want->partition)) {
			if (!find_part(g, want->partition)) {
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

static void *make_ahead(void *data) {
	struct want want;
	struct graph *g;

	(void)data;
	pthread_setname_np(pthread_self(), "sbeet-graphs");
	state_enter_locked(&lock); /* for good: whatever this thread calls is ours */
	for (;;) {
		g = n_waiting > 0 || atomic_load(&leaving) ? NULL : find_any_missing(&want);
		if (!g || is_busy(g, owner_of(want.partition))) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		make_part(g, want.partition, want.context, true);
		if (!find_missing(&want)) {
			wake_tracker();
		}
	}
	return NULL;
}

/* With the stack that threads of the program have: who knows what the driver needs. */
static bool start_locked(void) {
	running = thread_start(NULL, 0, make_ahead, NULL) == 0;
	return running;
}

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

/* Return: whether there is nothing to wait for. */
static bool prepare_locked(CUcontext context, struct partition *p) {
	const struct want *w = set_want(context, p);

	if (!w || !find_missing(w) || (!running && !start_locked())) {
		return true; /* what is missing is made when it is launched */
	}
	pthread_cond_broadcast(&changed);
	return false;
}

bool graph_prepare(CUcontext context, struct partition *p) {
	int cancel;
	bool ret;

	if (!graph_any()) {
		return true;
	}
	cancel = lock_here();
	ret = prepare_locked(context, p);
	unlock_here(cancel);
	return ret;
}

/* ---- launches ---- */

/* With the lock held. NULL: none is there that will do. */
static struct graph_part *find_ready(struct graph *g, struct partition *p, CUcontext context,
				     bool last_will_do) {
	struct graph_part *part = find_part(g, p), *last = last_will_do ? latest(g) : NULL;

	if (!part && last && last->context == context &&
	    green_confines(last->partition) == green_confines(p)) {
		prepare_locked(context, p);
		part = last;
	}
	return part;
}

/* With the lock held. */
static struct graph_use use_part(struct graph_part *part) {
	if (!part) {
		return (struct graph_use){.exec = NULL};
	}
	part->users++;
	part->last = next_use();
	return (struct graph_use){part->exec, part};
}

/* Waits where another thread works: it may be making this one. */
static struct graph_use use_new(struct graph *g, struct partition *p, CUcontext context) {
	int token = state_enter_locked(&lock);
	struct graph_part *part;
	struct graph_use use;

	wait_for(g, owner_of(p));
	part = find_part(g, p);
	if (!part && g->copy) {
		part = make_part(g, p, context, false);
	}
	use = use_part(part);
	state_leave_locked(&lock, token);
	return use;
}

struct graph_use graph_use_begin(struct graph *g, struct partition *p, CUcontext context,
				 bool last_will_do) {
	struct graph_use use;
	int cancel;

	if (!g) {
		return (struct graph_use){.exec = NULL};
	}
	cancel = lock_here();
	use = use_part(find_ready(g, p, context, last_will_do));
	unlock_here(cancel);
	return use.exec ? use : use_new(g, p, context);
}

void graph_use_end(struct graph_use *use) {
	int cancel;

	if (use->part) {
		cancel = lock_here();
		use->part->users--;
		unlock_here(cancel);
	}
}

/* ---- the order of launches ---- */

static bool went_to(const struct given *given, uint64_t key) {
	return atomic_load(&given->key) == key &&
	       atomic_load(&given->epoch) == atomic_load(&worker_epoch);
}

/* The last launch; what was launched is kept until graph_use_end(). */
static struct graph_use hold_given(struct graph *g) {
	struct graph_use use;

	pthread_mutex_lock(&lock);
	use = (struct graph_use){atomic_load(&g->given.exec), g->given.part};
	if (use.part) {
		use.part->users++;
	}
	pthread_mutex_unlock(&lock);
	return use;
}

/* Inside state_enter(). An upload goes behind all launches of the graph that is uploaded, and what
 * the stream gets next goes behind the upload. An event would do the same, but has to be recorded
 * behind every launch (0.4 us): when the next launch comes, the stream of the last one may be gone
 * or captured. */
static CUresult come_behind(CUgraphExec last, const struct place_use *place) {
	const struct real *real = real_get();
	CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

	if (place->per_thread && real->cuGraphUpload_ptsz) {
		rc = real->cuGraphUpload_ptsz(last, place->at);
	} else if (!place->per_thread && real->cuGraphUpload) {
		rc = real->cuGraphUpload(last, place->at);
	}
	return rc == CUDA_SUCCESS ? rc : real->cuCtxSynchronize();
}

CUresult graph_order(struct graph *g, const struct graph_use *use, const struct place_use *place,
		     uint64_t key) {
	CUgraphExec last = g ? atomic_load(&g->given.exec) : NULL;
	CUresult rc = CUDA_SUCCESS;
	struct graph_use behind;
	int token;

	/* The program's stream counts: its place keeps it in order while it moves. */
	if (!last || last == use->exec || (key && went_to(&g->given, key))) {
		return CUDA_SUCCESS;
	}
	token = state_enter();
	behind = hold_given(g);
	if (behind.exec) {
		rc = come_behind(behind.exec, place);
	}
	graph_use_end(&behind);
	state_leave(token);
	return rc;
}

void graph_given(struct graph *g, const struct graph_use *use, uint64_t key) {
	int cancel;

	if (!g || (atomic_load(&g->given.exec) == use->exec && went_to(&g->given, key))) {
		return;
	}
	cancel = lock_here();
	set_given(g, use->exec, use->part, key);
	unlock_here(cancel);
}

/* ---- what goes ---- */

void graph_code_unloading(void) {
	int cancel;

	if (graph_any()) {
		cancel = lock_here();
		atomic_fetch_add(&n_unloads, 1);
		wait_for(NULL, NULL);
		unlock_here(cancel);
	}
}

static void drop_parts_of(struct graph *g, CUcontext context) {
	struct graph_part *part, *gone = NULL, **link = &g->parts;

	while ((part = *link)) {
		if (part->context == context) {
			*link = part->next;
			part->next = gone;
			gone = part;
			if (part == g->given.part) {
				set_given(g, NULL, NULL, 0); /* it has ended, or will at once */
			}
		} else {
			link = &part->next;
		}
	}
	destroy_parts(gone);
}

void graph_context_destroying(CUcontext context) {
	int token = state_enter_locked(&lock);

	for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
		if (wants[i].context == context) {
			wants[i] = (struct want){.context = NULL};
		}
	}
	wait_for(NULL, NULL);
	for (struct graph *g = graphs; g; g = g->next) {
		drop_parts_of(g, context);
	}
	state_leave_locked(&lock, token);
}

void graph_leave(nsec_t deadline) {
	/* Without the lock: whoever exits may have it. */
	atomic_store(&leaving, true);
	while (atomic_load(&n_works) > 0 && nap_before(deadline, LEAVE_NAP_NS)) {
	}
}

void graph_after_fork(void) {
	/* What the parent knows is left where it is. */
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	execs = TABLE_NULL;
	graphs = NULL;
	works = NULL;
	atomic_store(&n_works, 0);
	n_waiting = 0;
	memset(wants, 0, sizeof(wants));
	running = false;
	atomic_store(&leaving, false);
	atomic_store(&n_can_move, 0);
}
