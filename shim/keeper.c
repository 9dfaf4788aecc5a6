/*
 * keeper.c: see keeper.h.
 */
#include "shim/real.h"

#include "shim/keeper.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/spin.h"
#include "shim/capture.h"
#include "shim/keeper-internal.h"
#include "shim/own-thread.h"
#include "shim/state.h"
#include "shim/terms.h"

#define DOCKS_MAX 8 /* contexts */

/* Between two looks: where something waits at a closed gate (with the least timer slack naps last 4
 * us longer, and take 30 % of a CPU of an H200's host), and at most. */
#define NAP_CLOSED_NS (10 * NSEC_PER_USEC)
#define NAP_MAX_NS    (5 * NSEC_PER_MSEC)

/* A keeper that has not looked for so long has no CPU, and holds nobody up. */
#define KEEPER_LATE_NS (300 * NSEC_PER_USEC)

#define STACK_BYTES (128 * 1024)

static struct dock docks[DOCKS_MAX];
static _Atomic(struct dock *) looking;	/* where the keeper is at present */
static _Atomic(struct dock *) watching; /* where the tracker is */
static _Atomic nsec_t looked; /* when the keeper began to look, or a gate was closed for it */
static _Atomic bool leaving;
static _Atomic uint32_t calls; /* a futex: counts copies that have begun */
static _Atomic bool asleep;

/* Held while a dock is made, and the thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;

/* ---- gates ---- */

void keeper_set_gate(struct dock *d, _Atomic uint32_t *gate, bool open) {
	atomic_store(gate, open);
	if (!open && (atomic_load(&leaving) || !atomic_load(&d->context))) {
		atomic_store(gate, true);
	}
}

void keeper_close_gate(struct dock *d, _Atomic uint32_t *gate, nsec_t now) {
	atomic_store(&looked, now);
	keeper_set_gate(d, gate, false);
}

bool keeper_is_leaving(void) {
	return atomic_load(&leaving);
}

static void open_gates(struct dock *d) {
	atomic_store(&d->words->gate, true);
	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		atomic_store(&d->words->kernel_gates[i], true);
	}
}

static bool is_any_closed(const struct dock *d) {
	bool closed = !atomic_load(&d->words->gate);

	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		closed |= !atomic_load(&d->words->kernel_gates[i]);
	}
	return closed;
}

/* ---- the keeper ---- */

static struct board_slot *our_slot(const struct seat *s, unsigned gpu) {
	return &s->board->slots[gpu][s->slot];
}

static void look_at_dock(struct dock *d, const struct seat *s, struct keeper_view *v) {
	struct board_copy held;
	bool open;

	atomic_store(&looking, d); /* its context does not go now */
	if (atomic_load(&d->context)) {
		held = keeper_look_at_copies(d, v);
		held.due = terms_held() ? held.due : 0;
		open = !s || board_gate_is_open(&d->gate, s->board, d->gpu, s->slot, &held, v->now);
		keeper_set_gate(d, &d->words->gate, open);
		v->closed |= !open;
		if (atomic_load(&d->yields)) {
			keeper_look_at_kernels(d, s, v);
		}
		keeper_look_at_end(d, v);
	}
	atomic_store(&looking, NULL);
}

static struct keeper_view look(void) {
	const struct seat *s = seat_get();
	struct keeper_view v = {.now = nsec_now()};
	uint64_t before[PROTO_TERMS_GPUS_MAX];

	atomic_store(&looked, v.now);
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		before[i] = atomic_load(&our_slot(s, i)->due_ns);
	}
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		look_at_dock(&docks[i], s, &v);
	}
	/* Who has announced something since then has changed the slot, or says the same: then the
	 * next look puts it right. */
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		struct board_slot *slot = our_slot(s, i);

		if (before[i] != v.announced[i]) {
			atomic_store(&slot->length_ns, v.length[i]);
			atomic_compare_exchange_strong(&slot->due_ns, &before[i], v.announced[i]);
		}
	}
	return v;
}

/* ---- the tracker's part ---- */

nsec_t keeper_watch(nsec_t now) {
	nsec_t late = atomic_load(&looked) + KEEPER_LATE_NS, next = UINT64_MAX;

	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		struct dock *d = &docks[i];

		atomic_store(&watching, d); /* its context does not go now */
		if (atomic_load(&d->context) && is_any_closed(d)) {
			if (now >= late) {
				open_gates(d);
			} else {
				next = late;
			}
		}
		atomic_store(&watching, NULL);
	}
	return next;
}

/* ---- its thread ---- */

static void sleep_until_called(uint32_t seen, nsec_t t) {
	struct timespec ts = nsec_timespec(t);

	atomic_store(&asleep, true);
	if (atomic_load(&calls) == seen) {
		syscall(SYS_futex, &calls, FUTEX_WAIT_PRIVATE, seen, t ? &ts : NULL, NULL, 0);
	}
	atomic_store(&asleep, false);
}

static nsec_t late_of(const struct keeper_view *v) {
	return v->now > v->spin_until ? v->now - v->spin_until : 0;
}

/* Not late where somebody waits: see keeper_watch(). */
static nsec_t nap_of(const struct keeper_view *v) {
	nsec_t late = v->any ? late_of(v) : UINT64_MAX;

	if (v->closed) {
		return NAP_CLOSED_NS;
	}
	if (v->ends && v->now - v->ends_since < late) {
		late = v->now - v->ends_since;
	}
	if (v->yields || late / 16 < KEEPER_NAP_NS) {
		return KEEPER_NAP_NS;
	}
	return late / 16 < NAP_MAX_NS ? late / 16 : NAP_MAX_NS;
}

static void keep(void) {
	bool spins = spin_allowed(1) > 0;

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!own_thread_must_end()) {
		uint32_t seen = atomic_load(&calls);
		struct keeper_view v = look();

		if (!v.any && !v.yields && !v.ends) {
			sleep_until_called(seen, 0);
		} else if (!(spins && v.any && v.others && !late_of(&v))) {
			sleep_until_called(seen, nap_of(&v));
		}
	}
}

static bool start_locked(void) {
	running = own_thread_start("sbeet-copies", STACK_BYTES, keep) == 0;
	return running;
}

void keeper_call(void) {
	atomic_fetch_add(&calls, 1);
	if (atomic_load(&asleep)) {
		syscall(SYS_futex, &calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

/* ---- docks ---- */

struct dock *keeper_find_dock(CUcontext context) {
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		if (atomic_load_explicit(&docks[i].context, memory_order_acquire) == context) {
			return &docks[i];
		}
	}
	return NULL;
}

static bool fill_dock(struct dock *d) {
	const struct real *real = real_get();
	void *words;

	if (!real->cuMemHostAlloc || !real->cuMemHostGetDevicePointer_v2 ||
	    real->cuMemHostAlloc(&words, sizeof(*d->words), CU_MEMHOSTALLOC_DEVICEMAP) !=
		    CUDA_SUCCESS) {
		return false;
	}
	if (real->cuMemHostGetDevicePointer_v2(&d->at, words, 0) != CUDA_SUCCESS) {
		real->cuMemFreeHost(words);
		return false;
	}
	memset(words, 0, sizeof(*d->words));
	d->words = words;
	d->gate = (struct board_gate){.closed_ns = 0};
	memset(d->yields_at, 0, sizeof(d->yields_at));
	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		atomic_store(&d->takes[i], 0);
	}
	atomic_store(&d->used, 0);
	for (unsigned i = 0; i < COPIES_MAX; i++) {
		d->flights[i].number = 0;
	}
	atomic_store(&d->taken, 0);
	atomic_store(&d->flying, 0);
	atomic_store(&d->yields, false);
	atomic_store(&d->end_job, 0);
	atomic_store(&d->end_value, 0);
	open_gates(d);
	return true;
}

static struct dock *find_free(void) {
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		if (!atomic_load(&docks[i].context) && !atomic_load(&docks[i].going)) {
			return &docks[i];
		}
	}
	return NULL;
}

static struct dock *make_dock(CUcontext context) {
	int token = state_enter_locked(&lock);
	struct dock *d = keeper_find_dock(context);

	/* To allocate memory may spoil a capture. */
	if (!d && !capture_any() && (running || start_locked())) {
		d = find_free();
		if (d && fill_dock(d)) {
			atomic_store(&d->context, context);
		} else {
			d = NULL;
		}
	}
	state_leave_locked(&lock, token);
	return d;
}

struct dock *keeper_dock(CUcontext context) {
	struct dock *d = keeper_find_dock(context);

	return d ? d : make_dock(context);
}

void keeper_context_destroying(CUcontext context) {
	struct dock *d = context ? keeper_find_dock(context) : NULL;

	if (!d) {
		return;
	}
	atomic_store(&d->going, true);
	atomic_store(&d->context, NULL);
	while (atomic_load(&looking) == d || atomic_load(&watching) == d) {
		sched_yield();
	}
	open_gates(d); /* what is queued may go */
	atomic_store(&d->flying, 0);
	atomic_store(&d->going, false);
	keeper_call(); /* the board */
}

/* ---- the end ---- */

void keeper_leave(void) {
	const struct seat *s = seat_get();

	atomic_store(&leaving, true);
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		CUcontext context = atomic_load(&docks[i].context);

		if (context) {
			keeper_context_destroying(context);
		}
	}
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		atomic_store(&our_slot(s, i)->due_ns, 0);
	}
}

void keeper_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	running = false;
	memset(docks, 0, sizeof(docks));
	atomic_store(&looking, NULL);
	atomic_store(&watching, NULL);
	atomic_store(&leaving, false);
	atomic_store(&asleep, false);
}
