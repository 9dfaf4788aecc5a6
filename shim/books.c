/*
 * books.c: see books.h.
 *
 * The entry of a job is found by its number. The states stand apart from the entries, so that the
 * tracker looks through all of them in a few cache lines.
 */
#include "shim/books.h"
#include "shim/base/hot.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "shim/base/log.h"
#include "shim/base/nap.h"
#include "shim/conn.h"
#include "shim/gpu-uuid.h"
#include "shim/job-sums.h"
#include "shim/terms.h"

/* A power of two. Jobs of 20 us for 10 ms, or a quarter of a second of those of 250 us. */
#define BOOKS_MAX 1024

/* A job that is open for so long is told of before it ends. */
#define OPEN_TELL_NS (1 * NSEC_PER_MSEC)

/* Each time that sbeetd wakes costs it as much as a few accounts: jobs that are over before it was
 * told of them wait for each other. So many fit into the socket. Plans are judged each 100 ms at
 * most. */
#define BUNDLE_NS  (50 * NSEC_PER_MSEC)
#define BUNDLE_MAX 64

/* After the socket was full. */
#define TELL_AGAIN_NS (100 * NSEC_PER_MSEC)

enum book_state {
	BOOK_FREE,
	BOOK_OPEN,
	BOOK_ENDED,
	BOOK_COLLECTED, /* ended, and its last records have been sent */
};

/* Written by the owner of the entry, before the state that hands it on. */
static struct book {
	struct books_job job;
	nsec_t finished_ns;
	struct job_sums sums;
	_Atomic uint32_t told; /* the tracker's: over which connection, see conn_tell(); 0: not */
} books[BOOKS_MAX];

static _Atomic uint8_t states[BOOKS_MAX]; /* enum book_state */

HOT_WRITTEN static _Atomic bool any; /* there ever was an account */
HOT_WRITTEN static _Atomic uint64_t dropped;

/* The tracker's; at exit who exits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said_dropped, told_dropped; /* of `dropped`: in the log, and to sbeetd */

static enum book_state state_of(uint64_t at) {
	return (enum book_state)atomic_load_explicit(&states[at % BOOKS_MAX], memory_order_acquire);
}

static void set_state(uint64_t at, enum book_state state) {
	atomic_store_explicit(&states[at % BOOKS_MAX], (uint8_t)state, memory_order_release);
}

/* ---- by who opens and closes ---- */

HOT_CODE void books_open(const struct books_job *job) {
	struct book *b = &books[job->job % BOOKS_MAX];

	if (state_of(job->job) != BOOK_FREE) {
		atomic_fetch_add(&dropped, 1);
		return;
	}
	b->job = *job;
	atomic_store_explicit(&b->told, 0, memory_order_relaxed);
	atomic_store_explicit(&any, true, memory_order_relaxed);
	set_state(job->job, BOOK_OPEN);
}

/* Return: whether the entry @job is that of this job, unless it has been told of. */
static bool is_of(uint64_t job) {
	return state_of(job) != BOOK_FREE && books[job % BOOKS_MAX].job.job == job;
}

void books_close(uint64_t job, nsec_t finished_ns, const struct job_sums *sums) {
	struct book *b = &books[job % BOOKS_MAX];

	if (is_of(job)) {
		b->finished_ns = finished_ns;
		b->sums = *sums;
		set_state(job, BOOK_ENDED);
	}
}

/* ---- by the tracker ---- */

bool books_collect(void) {
	bool ended = false;

	if (!atomic_load(&any)) {
		return false;
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BOOKS_MAX; i++) {
		if (state_of(i) == BOOK_ENDED) {
			set_state(i, BOOK_COLLECTED);
			ended = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

static Sbeet__JobDone done_of(const struct book *b) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;

	done.job = b->job.job;
	done.granted_ns = b->job.began_ns;
	done.finished_ns = b->finished_ns;
	done.launches = b->sums.launches;
	done.copies = b->sums.copies;
	done.bytes = b->sums.bytes;
	done.launched_ns = b->sums.launched_ns;
	done.kernel_end_ns = b->sums.kernel_end_ns;
	done.unconfined = b->sums.unconfined;
	done.cold = b->sums.cold;
	done.waves = b->sums.waves;
	done.cancelled = done.launches + done.copies == 0;
	return done;
}

/* Return: as conn_tell(). */
static int tell_began(const struct book *b, Sbeet__JobDone *done) {
	Sbeet__Began began = SBEET__BEGAN__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint64_t n_dropped = atomic_load(&dropped);
	int r;

	began.job = b->job.job;
	began.gpu_uuid.data = (uint8_t *)gpu_uuid(b->job.device); /* known since its terms were */
	began.gpu_uuid.len = PROTO_UUID_BYTES;
	began.release_ns = b->job.release_ns;
	began.began_ns = b->job.began_ns;
	began.marked_ns = b->job.marked_ns;
	began.own_deadline_ns = b->job.deadline_ns;
	began.tid = b->job.tid;
	began.terms = b->job.terms;
	began.done = done;
	began.dropped = n_dropped - told_dropped;
	m.body_case = SBEET__TO_DAEMON__BODY_BEGAN;
	m.began = &began;
	r = conn_tell(&m, 0);
	told_dropped = r < 0 ? told_dropped : n_dropped;
	return r;
}

/* Return: as conn_tell(). */
static int tell_done(struct book *b) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__JobDone done = done_of(b);
	uint32_t over = atomic_load(&b->told);
	int r = -ESTALE;

	if (over) {
		m.body_case = SBEET__TO_DAEMON__BODY_DONE;
		m.done = &done;
		r = conn_tell(&m, over);
	}
	return r == -ESTALE ? tell_began(b, &done) : r;
}

int books_tell_of(uint64_t job, const Sbeet__ToDaemon *m) {
	/* Maybe before it is told of the job. */
	return is_of(job) ? conn_tell(m, 0) : -ENOENT;
}

/* Of an open job: it began then at the latest, and this sbeetd was not told. */
static bool is_untold(const struct book *b, nsec_t open_since) {
	return b->job.began_ns <= open_since && !conn_is_current(atomic_load(&b->told));
}

static bool is_to_tell(uint64_t at, nsec_t open_since) {
	enum book_state state = state_of(at);

	return state == BOOK_COLLECTED ||
	       (state == BOOK_OPEN && is_untold(&books[at % BOOKS_MAX], open_since));
}

/* Return: as conn_tell(). */
static int tell(uint64_t at) {
	struct book *b = &books[at % BOOKS_MAX];
	int r;

	if (state_of(at) == BOOK_COLLECTED) {
		r = tell_done(b);
		if (r >= 0) {
			set_state(at, BOOK_FREE);
		}
		return r;
	}
	r = tell_began(b, NULL);
	atomic_store(&b->told, r > 0 ? (uint32_t)r : 0);
	return r;
}

static void say_dropped(void) {
	uint64_t n = atomic_load(&dropped);

	if (n > said_dropped) {
		log_once(LOG_LEVEL_INFO,
			 "sbeetd does not hear of all jobs: it is gone, or too slow");
		log_line(LOG_LEVEL_DEBUG, "%llu accounts of jobs dropped so far",
			 (unsigned long long)n);
		said_dropped = n;
	}
}

/* The oldest job that is to be told of. UINT64_MAX: none. */
static uint64_t find_oldest(nsec_t open_since) {
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < BOOKS_MAX; i++) {
		if (is_to_tell(i, open_since) && books[i].job.job < oldest) {
			oldest = books[i].job.job;
		}
	}
	return oldest;
}

/* The oldest first. While accounts were dropped, entries side by side came to be of jobs that are
 * further apart than there are entries: those wait for the next round. Return: 0 when all was told,
 * or why not, as conn_tell(). */
static int tell_all(nsec_t open_since) {
	uint64_t first;

	while ((first = find_oldest(open_since)) != UINT64_MAX) {
		for (uint64_t i = first; i < first + BOOKS_MAX; i++) {
			int r = is_to_tell(i, open_since) && books[i % BOOKS_MAX].job.job == i
					? tell(i)
					: 0;

			if (r < 0) {
				return r;
			}
		}
	}
	return 0;
}

/* No daemon will ask. With the lock held. */
static void drop_ended(void) {
	for (unsigned i = 0; i < BOOKS_MAX; i++) {
		if (state_of(i) == BOOK_COLLECTED) {
			atomic_fetch_add(&dropped, 1);
			set_state(i, BOOK_FREE);
		}
	}
}

/* When there is something to tell: all of it then, for it is told in order. UINT64_MAX: never. */
static nsec_t find_due(nsec_t open_since) {
	nsec_t due = UINT64_MAX;
	unsigned n = 0;

	for (unsigned i = 0; i < BOOKS_MAX; i++) {
		const struct book *b = &books[i];

		switch (state_of(i)) {
		case BOOK_COLLECTED:
			if (atomic_load(&b->told) || ++n == BUNDLE_MAX) {
				return 0;
			}
			due = b->finished_ns + BUNDLE_NS < due ? b->finished_ns + BUNDLE_NS : due;
			break;
		case BOOK_OPEN:
			if (is_untold(b, open_since)) {
				return 0;
			}
			break;
		case BOOK_FREE:
		case BOOK_ENDED:
			break;
		}
	}
	return due;
}

/* With the lock held. Return: as books_tell(). */
static nsec_t tell_if_due(nsec_t now) {
	nsec_t open_since = now > OPEN_TELL_NS ? now - OPEN_TELL_NS : 0;
	nsec_t due = find_due(open_since);

	if (due > now) {
		return due;
	}
	return tell_all(open_since) == 0 ? UINT64_MAX : now + TELL_AGAIN_NS;
}

nsec_t books_tell(nsec_t now) {
	nsec_t again = UINT64_MAX;

	if (!atomic_load(&any)) {
		return again;
	}
	pthread_mutex_lock(&lock);
	if (terms_held()) {
		again = tell_if_due(now);
	} else {
		drop_ended();
	}
	say_dropped();
	pthread_mutex_unlock(&lock);
	return again;
}

void books_leave(nsec_t deadline) {
	pthread_mutex_lock(&lock);
	while (tell_all(UINT64_MAX) == -EBUSY && nap_before(deadline, NSEC_PER_MSEC)) {
	}
	pthread_mutex_unlock(&lock);
}

void books_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	atomic_store(&dropped, 0);
	said_dropped = told_dropped = 0;
	for (unsigned i = 0; i < BOOKS_MAX; i++) {
		set_state(i, BOOK_FREE);
	}
}
