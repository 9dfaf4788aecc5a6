/*
 * wake.c: see wake.h.
 */
#include "shim/wake.h"
#include "shim/base/hot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool woken;
HOT_WRITTEN static _Atomic bool asleep; /* a job that is opened must wake it */

void wake_init(void) {
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &clock);
	pthread_condattr_destroy(&clock);
}

/* With the lock, which this gives back. */
static void wake_locked(void) {
	woken = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void wake_tracker(void) {
	pthread_mutex_lock(&lock);
	wake_locked();
}

bool wake_tracker_at_exit(void) {
	bool locked = pthread_mutex_trylock(&lock) == 0;

	if (locked) {
		wake_locked();
	}
	return locked;
}

HOT_CODE void wake_for_job(void) {
	if (atomic_load(&asleep)) {
		wake_tracker();
	}
}

void wake_sleep(nsec_t deadline, unsigned (*n_jobs)(void)) {
	struct timespec t = nsec_timespec(deadline);
	int r = 0;

	pthread_mutex_lock(&lock);
	atomic_store(&asleep, n_jobs != NULL);
	/* A job that opened before it could see the flag. */
	while (!woken && r == 0 && (!n_jobs || n_jobs() == 0)) {
		r = deadline == WAKE_NEVER ? pthread_cond_wait(&wake, &lock)
					   : pthread_cond_timedwait(&wake, &lock, &t);
	}
	atomic_store(&asleep, false);
	woken = false;
	pthread_mutex_unlock(&lock);
}

void wake_after_fork(void) {
	woken = false;
	pthread_mutex_init(&lock, NULL);
	atomic_store(&asleep, false);
}
