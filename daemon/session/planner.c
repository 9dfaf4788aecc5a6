/*
 * planner.c: see planner.h.
 */
#include "daemon/session/planner.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/thread.h"

/* Each thread may take a CPU for seconds, and others are there for the programs. */
#define CPUS_A_THREAD 4

/* What is asked about one GPU. Guarded by the planner's lock, but for what never changes. */
struct question {
	struct plan_gpu gpu;
	unsigned n;
	struct plan_task tasks[MODEL_TASKS_MAX]; /* their times are in `kernels` */
	nsec_t kernels[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
	unsigned each, all;    /* searches: each so many quick and medium ones, then whole ones */
	unsigned begun, ended; /* of these */
	_Atomic bool stop;     /* those under way are of no use any more */
	enum plan_effort effort;
	double best; /* of the best plan that was given: its effort and its badness */
};

struct planner {
	planner_fn planned;
	void *userdata;
	struct event ready;
	int fd; /* owned: an eventfd; there is an answer */
	pthread_t threads[PLANNER_THREADS_MAX];
	unsigned n_threads; /* that run: none before the first question */
	unsigned wanted;    /* to be started */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct question *asked[SCHED_GPUS_MAX]; /* owned */
	struct plan *answers[SCHED_GPUS_MAX];	/* owned; not given yet */
	size_t last;				/* GPU that a search was begun for */
	bool leave;
};

/* ---- in the threads, with the lock held ---- */

/* Begins no more searches for @q, and those that are under way end soon. */
static void end_searches(struct question *q) {
	atomic_store(&q->stop, true);
	q->ended += q->all - q->begun;
	q->begun = q->all;
}

/* NULL: all searches that were asked for have begun. */
static struct question *next_question(struct planner *p) {
	for (size_t k = 1; k <= SCHED_GPUS_MAX; k++) {
		size_t i = (p->last + k) % SCHED_GPUS_MAX; /* GPUs take turns */

		if (p->asked[i] && p->asked[i]->begun < p->asked[i]->all) {
			p->last = i;
			return p->asked[i];
		}
	}
	return NULL;
}

static enum plan_effort effort_of(const struct question *q, unsigned search) {
	unsigned stage = search / q->each;

	return stage == 0 ? PLAN_QUICK : stage == 1 ? PLAN_MEDIUM : PLAN_WHOLE;
}

/* No search could find a better plan: no job is predicted to be late. */
static bool nothing_to_gain(const struct plan *plan) {
	return !plan->is_predicted || (plan->is_whole && plan->badness < 1);
}

/* Takes @plan, which answers @q. */
static void take_answer(struct planner *p, size_t gpu, struct question *q, struct plan *plan,
			enum plan_effort effort) {
	if (nothing_to_gain(plan)) {
		end_searches(q);
	}
	if (!plan_is_better(effort, plan->badness, q->effort, q->best)) {
		free(plan);
		return;
	}
	q->effort = effort;
	q->best = plan->badness;
	free(p->answers[gpu]);
	p->answers[gpu] = plan;
	eventfd_write(p->fd, 1);
}

/* If all searches for @q have ended, nobody has it any more. */
static void end_question(struct planner *p, size_t gpu, struct question *q) {
	if (q->ended == q->all) {
		p->asked[gpu] = p->asked[gpu] == q ? NULL : p->asked[gpu];
		free(q);
	}
}

/* Begins one search for @q and ends it, meanwhile without the lock. */
static void search(struct planner *p, size_t gpu, struct question *q) {
	struct plan *plan = malloc(sizeof(*plan));
	unsigned which = q->begun++;
	enum plan_effort effort = effort_of(q, which);

	pthread_mutex_unlock(&p->lock);
	if (plan) {
		plan_make(&q->gpu, q->tasks, q->n, effort, which, &q->stop, plan);
	}
	pthread_mutex_lock(&p->lock);
	q->ended++;
	if (plan && !atomic_load(&q->stop)) {
		take_answer(p, gpu, q, plan, effort);
	} else {
		free(plan);
	}
	end_question(p, gpu, q);
}

static void *work(void *userdata) {
	struct planner *p = userdata;

	/* Linux: of this thread alone. */
	setpriority(PRIO_PROCESS, 0, 19);
	pthread_mutex_lock(&p->lock);
	while (!p->leave) {
		struct question *q = next_question(p);

		if (q) {
			search(p, p->last, q);
		} else {
			pthread_cond_wait(&p->wake, &p->lock);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- in the loop's thread ---- */

static void on_ready(int fd, short what, void *userdata) {
	struct planner *p = userdata;
	eventfd_t n;

	(void)what;
	eventfd_read(fd, &n);
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		struct plan *plan;

		pthread_mutex_lock(&p->lock);
		plan = p->answers[i];
		p->answers[i] = NULL;
		pthread_mutex_unlock(&p->lock);
		if (plan) {
			p->planned(p->userdata, i, plan);
			free(plan);
		}
	}
}

/* At the first question: under most policies there is none. */
static int start_threads(struct planner *p) {
	int r = 0;

	while (r == 0 && p->n_threads < p->wanted) {
		r = thread_start(&p->threads[p->n_threads], 0, work, p);
		p->n_threads += r == 0;
	}
	return p->n_threads > 0 ? 0 : r; /* a few do as well */
}

int planner_new(struct planner **ret, struct event_base *base, unsigned threads, planner_fn planned,
		void *userdata) {
	struct planner *p = calloc(1, sizeof(*p));
	int r;

	assert(threads > 0 && threads <= PLANNER_THREADS_MAX);
	if (!p) {
		return -ENOMEM;
	}
	p->wanted = threads;
	p->planned = planned;
	p->userdata = userdata;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->fd < 0 ? -errno : 0;
	if (r == 0 &&
	    (event_assign(&p->ready, base, p->fd, EV_READ | EV_PERSIST, on_ready, p) < 0 ||
	     event_add(&p->ready, NULL) < 0)) {
		r = -ENOMEM;
	}
	if (r < 0) {
		if (p->fd >= 0) {
			event_del(&p->ready);
			close(p->fd);
		}
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

unsigned planner_threads(void) {
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) / CPUS_A_THREAD
							       : 1;

	return n < 1 ? 1 : n > PLANNER_THREADS_MAX ? PLANNER_THREADS_MAX : (unsigned)n;
}

/* With the lock held. */
static void forget(struct planner *p, size_t gpu) {
	struct question *q = p->asked[gpu];

	p->asked[gpu] = NULL;
	free(p->answers[gpu]);
	p->answers[gpu] = NULL;
	if (q) {
		end_searches(q);
		end_question(p, gpu, q);
	}
}

struct planner *planner_free(struct planner *p) {
	if (!p) {
		return NULL;
	}
	pthread_mutex_lock(&p->lock);
	p->leave = true;
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		forget(p, i);
	}
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n_threads; i++) {
		pthread_join(p->threads[i], NULL);
	}
	event_del(&p->ready);
	close(p->fd);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

void planner_cancel(struct planner *p, size_t gpu) {
	if (!p) {
		return;
	}
	pthread_mutex_lock(&p->lock);
	forget(p, gpu);
	pthread_mutex_unlock(&p->lock);
}

int planner_ask(struct planner *p, size_t gpu, const struct plan_gpu *plan_gpu,
		const struct plan_task *tasks, unsigned n) {
	struct question *q;
	int r = p->n_threads > 0 ? 0 : start_threads(p);

	if (r < 0) {
		return r;
	}
	q = malloc(sizeof(*q));
	if (!q) {
		return -ENOMEM;
	}
	q->gpu = *plan_gpu;
	q->n = n;
	q->each = p->n_threads;
	q->all = 2 * q->each + PLANNER_WHOLE;
	q->begun = q->ended = 0;
	q->stop = false;
	q->effort = PLAN_QUICK;
	q->best = INFINITY;
	memcpy(q->tasks, tasks, n * sizeof(*tasks));
	for (unsigned i = 0; i < n; i++) {
		if (tasks[i].model.kernels) {
			memcpy(q->kernels[i], tasks[i].model.kernels,
			       (plan_gpu->sms + 1) * sizeof(nsec_t));
			q->tasks[i].model.kernels = q->kernels[i];
		}
	}
	pthread_mutex_lock(&p->lock);
	forget(p, gpu);
	p->asked[gpu] = q;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return 0;
}
