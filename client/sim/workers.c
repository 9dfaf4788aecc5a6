/* workers.c: see workers.h. */
#include "client/sim/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "proto/units.h"

/* How often the caller hears of progress. */
#define PROGRESS_INTERVAL (100 * NSEC_PER_MSEC)

struct work {
	const struct workers *w;
	void *userdata;
	atomic_size_t next;   /* unit that nobody has taken yet */
	atomic_int error;     /* first one; ends all workers */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t ended; /* running became 0 */
	size_t done;	      /* units */
	size_t running;	      /* workers */
};

static void report(struct work *work, size_t done, size_t running) {
	pthread_mutex_lock(&work->lock);
	work->done += done;
	work->running -= running;
	if (work->running == 0) {
		pthread_cond_signal(&work->ended);
	}
	pthread_mutex_unlock(&work->lock);
}

static void *worker(void *arg) {
	struct work *work = arg;

	for (;;) {
		size_t unit = atomic_fetch_add(&work->next, 1);
		int expected = 0, r;

		if (unit >= work->w->n_units || atomic_load(&work->error)) {
			break;
		}
		r = work->w->run(work->userdata, unit);
		if (r < 0) {
			atomic_compare_exchange_strong(&work->error, &expected, r);
		}
		report(work, 1, 0);
	}
	report(work, 0, 1);
	return NULL;
}

/* Until all workers have ended. */
static void watch(struct work *work) {
	const struct workers *w = work->w;

	pthread_mutex_lock(&work->lock);
	while (work->running > 0) {
		struct timespec t = nsec_timespec(nsec_now() + PROGRESS_INTERVAL);
		size_t done;

		pthread_cond_clockwait(&work->ended, &work->lock, CLOCK_MONOTONIC, &t);
		done = work->done;
		if (w->on_progress) {
			pthread_mutex_unlock(&work->lock);
			w->on_progress(w->progress, done, w->n_units);
			pthread_mutex_lock(&work->lock);
		}
	}
	pthread_mutex_unlock(&work->lock);
}

int workers_run(const struct workers *w, void *userdata) {
	struct work work = {
		.w = w,
		.userdata = userdata,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	pthread_t threads[WORKERS_MAX];
	unsigned started = 0;

	while (started < w->n_threads) {
		report(&work, 0, (size_t)-1); /* one more runs */
		if (pthread_create(&threads[started], NULL, worker, &work) != 0) {
			report(&work, 0, 1);
			break;
		}
		started++;
	}
	if (started == 0) {
		return -EAGAIN;
	}
	watch(&work);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
	}
	return atomic_load(&work.error);
}

unsigned workers_default(void) {
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned)n;
}
