/*
 * state.h: whether we take part at all, in this process and in this call.
 *
 * The constructor does the minimum; every entry point finds its own state, so hooks that are called
 * before it (from another library's constructor) work as well.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SBEET_EXPORT __attribute__((visibility("default")))

/* libsbeet.so is loaded at start, where the static TLS block has room: one instruction, no call. */
#define STATE_TLS _Thread_local __attribute__((tls_model("initial-exec")))

struct worker;

/* What each call of the program reads of its thread. */
extern STATE_TLS struct state_self {
	/* Above 0 while this thread is inside the driver or our own work: what comes back to our
	 * wrappers then goes straight on. */
	unsigned depth;
	struct worker *worker; /* see worker_get(); NULL: not made yet */
} state_self __attribute__((visibility("hidden")));

enum state_mode {
	STATE_MODE_UNKNOWN, /* environment not read yet */
	STATE_MODE_ON,
	STATE_MODE_OFF, /* SBEET_DISABLE=1 */
};
extern _Atomic(enum state_mode) state_mode;

/* Reads the environment. */
enum state_mode state_find_mode(void);

/* True: go straight to the driver. */
static inline bool state_bypass(void) {
	enum state_mode mode;

	if (state_self.depth > 0) {
		return true;
	}
	mode = atomic_load_explicit(&state_mode, memory_order_relaxed);
	return (mode == STATE_MODE_UNKNOWN ? state_find_mode() : mode) == STATE_MODE_OFF;
}

/* Without a look at the environment: false if that is needed, or state_bypass(). */
static inline bool state_is_ours(void) {
	return state_self.depth == 0 &&
	       atomic_load_explicit(&state_mode, memory_order_relaxed) == STATE_MODE_ON;
}

/* Between these the thread can't be cancelled: it would leave a lock or a job behind. In pairs. */
static inline int state_defer_cancel(void) {
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void state_restore_cancel(int before) {
	pthread_setcancelstate(before, NULL);
}

/*
 * Brackets around calls into the driver on our own account: they don't come back to our wrappers,
 * and are allowed while some thread captures a stream. The thread can't be cancelled in between.
 * What state_enter() returns goes to state_leave().
 */
int state_enter(void);
void state_leave(int token);

/* The same with @lock, one that is held across calls into the driver. */
static inline int state_enter_locked(pthread_mutex_t *lock) {
	int token = state_enter();

	pthread_mutex_lock(lock);
	return token;
}

static inline void state_leave_locked(pthread_mutex_t *lock, int token) {
	pthread_mutex_unlock(lock);
	state_leave(token);
}
