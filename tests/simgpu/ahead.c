/* ahead.c: see ahead.h. */
#include "tests/simgpu/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AHEAD_THREADS_MAX 64

/* Slices that a thread runs before it looks for another block: changing costs a lock or two. */
#define AHEAD_STRETCH 16

struct ahead {
	uint64_t slice_instructions;
	unsigned n_threads;
	pthread_t threads[AHEAD_THREADS_MAX];
	pthread_mutex_t
		lock;	     /* guards the blocks' fields and what follows; never held in a slice */
	pthread_cond_t wake; /* for threads: there is a block, or the end */
	pthread_cond_t done; /* for the loop: a slice is done */
	struct ahead_block *ready;
	bool stop;
	unsigned n_running; /* threads that are in a block */
	atomic_bool paused;
	unsigned n_pauses; /* the loop's own */
};

static struct ahead_slice run_slice(struct ahead *a, struct ahead_block *b) {
	struct ahead_slice s;
	uint64_t instructions;

	s.result = interp_block_run(b->interp, a->slice_instructions, &instructions, &s.cycles);
	return s;
}

/* ---- under the lock ---- */

/* The newest first: the loop takes the oldest, so they seldom meet. */
static void make_ready(struct ahead *a, struct ahead_block *b) {
	if (b->link || b->busy || b->ended || b->n == AHEAD_SLICES) {
		return;
	}
	b->next = a->ready;
	b->link = &a->ready;
	if (b->next) {
		b->next->link = &b->next;
	}
	a->ready = b;
	pthread_cond_signal(&a->wake);
}

static void make_unready(struct ahead_block *b) {
	if (b->link) {
		*b->link = b->next;
		if (b->next) {
			b->next->link = b->link;
		}
		b->link = NULL;
	}
}

static void keep_slice(struct ahead *a, struct ahead_block *b, struct ahead_slice s) {
	b->slices[(b->first + b->n++) % AHEAD_SLICES] = s;
	b->ended = b->ended || s.result != INTERP_MORE;
	pthread_cond_signal(&a->done);
}

/* ---- the threads ---- */

/* Runs the first ready block for a while. The lock is held at begin and end. */
static void run_stretch(struct ahead *a) {
	struct ahead_block *b = a->ready;

	make_unready(b);
	b->busy = true;
	a->n_running++;
	for (unsigned i = 0; i < AHEAD_STRETCH && !b->ended && b->n < AHEAD_SLICES; i++) {
		struct ahead_slice s;

		if (atomic_load(&a->paused)) {
			break;
		}
		pthread_mutex_unlock(&a->lock);
		s = run_slice(a, b);
		pthread_mutex_lock(&a->lock);
		keep_slice(a, b, s);
	}
	b->busy = false;
	a->n_running--;
	make_ready(a, b);
	pthread_cond_signal(&a->done);
}

static void *ahead_thread(void *userdata) {
	struct ahead *a = userdata;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if (a->ready && !atomic_load(&a->paused)) {
			run_stretch(a);
		} else {
			pthread_cond_wait(&a->wake, &a->lock);
		}
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* ---- the loop ---- */

void ahead_add(struct ahead *a, struct ahead_block *b) {
	pthread_mutex_lock(&a->lock);
	make_ready(a, b);
	pthread_mutex_unlock(&a->lock);
}

void ahead_remove(struct ahead *a, struct ahead_block *b) {
	pthread_mutex_lock(&a->lock);
	b->ended = true; /* whoever runs it stops after this slice */
	while (b->busy) {
		pthread_cond_wait(&a->done, &a->lock);
	}
	make_unready(b);
	pthread_mutex_unlock(&a->lock);
}

struct ahead_slice ahead_take(struct ahead *a, struct ahead_block *b) {
	struct ahead_slice s;

	pthread_mutex_lock(&a->lock);
	while (b->n == 0 && b->busy) {
		pthread_cond_wait(&a->done, &a->lock);
	}
	if (b->n > 0) {
		s = b->slices[b->first];
		b->first = (b->first + 1) % AHEAD_SLICES;
		b->n--;
		make_ready(a, b);
		pthread_mutex_unlock(&a->lock);
		return s;
	}
	make_unready(b);
	b->busy = true;
	pthread_mutex_unlock(&a->lock);
	s = run_slice(a, b);
	pthread_mutex_lock(&a->lock);
	b->busy = false;
	b->ended = s.result != INTERP_MORE;
	make_ready(a, b);
	pthread_mutex_unlock(&a->lock);
	return s;
}

void ahead_pause(struct ahead *a) {
	if (a->n_pauses++ > 0) {
		return;
	}
	pthread_mutex_lock(&a->lock);
	atomic_store(&a->paused, true);
	while (a->n_running > 0) {
		pthread_cond_wait(&a->done, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
}

void ahead_resume(struct ahead *a) {
	if (--a->n_pauses > 0) {
		return;
	}
	pthread_mutex_lock(&a->lock);
	atomic_store(&a->paused, false);
	if (a->ready) {
		pthread_cond_broadcast(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
}

/* ---- beginning and end ---- */

/* Signals are the loop's. */
static int start_thread(struct ahead *a) {
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&a->threads[a->n_threads], NULL, ahead_thread, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	a->n_threads += r == 0;
	return -r;
}

int ahead_new(struct ahead **ret, unsigned threads, uint64_t slice_instructions) {
	struct ahead *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a) {
		return -ENOMEM;
	}
	a->slice_instructions = slice_instructions;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	pthread_cond_init(&a->done, NULL);
	for (unsigned i = 0; i < threads && i < AHEAD_THREADS_MAX && r == 0; i++) {
		r = start_thread(a);
	}
	if (r < 0) {
		ahead_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct ahead *ahead_free(struct ahead *a) {
	if (!a) {
		return NULL;
	}
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->wake);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->n_threads; i++) {
		pthread_join(a->threads[i], NULL);
	}
	pthread_cond_destroy(&a->done);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return NULL;
}
