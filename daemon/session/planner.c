/*
 * planner.c: see planner.h.
 */
#include "daemon/session/planner.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/thread.h"

/* What is asked about one GPU. */
struct question {
	struct plan_gpu gpu;
	enum plan_effort effort; /* of the next answer */
	unsigned n;
	struct plan_task tasks[MODEL_TASKS_MAX]; /* their times are in `kernels` */
	nsec_t kernels[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
};

struct planner {
	planner_fn planned;
	void *userdata;
	struct event ready;
	int fd; /* owned: an eventfd; there is an answer */
	pthread_t thread;

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct question *asked[SCHED_GPUS_MAX]; /* owned; not begun yet */
	struct plan *answers[SCHED_GPUS_MAX];	/* owned; not given yet */
	size_t at;				/* the GPU that a plan is being made for */
	_Atomic bool stop;			/* that plan is of no use any more */
	bool leave;
};

/* With the lock held. NULL: nothing is asked. */
static struct question *take_question(struct planner *p) {
	for (size_t k = 1; k <= SCHED_GPUS_MAX; k++) {
		size_t i = (p->at + k) % SCHED_GPUS_MAX; /* GPUs take turns */
		struct question *q = p->asked[i];

		if (q) {
			p->asked[i] = NULL;
			p->at = i;
			atomic_store(&p->stop, false);
			return q;
		}
	}
	return NULL;
}

/* With the lock held. Takes @q, and asks it again where more effort may find a better plan. */
static void answer(struct planner *p, struct question *q) {
	struct plan *plan = malloc(sizeof(*plan));

	pthread_mutex_unlock(&p->lock);
	if (plan) {
		plan_make(&q->gpu, q->tasks, q->n, q->effort, &p->stop, plan);
	}
	pthread_mutex_lock(&p->lock);
	if (plan && !atomic_load(&p->stop)) {
		if (q->effort == PLAN_QUICK && plan->is_predicted && !plan->is_whole) {
			q->effort = PLAN_WHOLE;
			p->asked[p->at] = q;
			q = NULL;
		}
		free(p->answers[p->at]);
		p->answers[p->at] = plan;
		plan = NULL;
		eventfd_write(p->fd, 1);
	}
	free(plan);
	free(q);
}

static void *work(void *userdata) {
	struct planner *p = userdata;

	/* Linux: of this thread alone. */
	setpriority(PRIO_PROCESS, 0, 19);
	pthread_mutex_lock(&p->lock);
	while (!p->leave) {
		struct question *q = take_question(p);

		if (q) {
			answer(p, q);
		} else {
			pthread_cond_wait(&p->wake, &p->lock);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

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

int planner_new(struct planner **ret, struct event_base *base, planner_fn planned, void *userdata) {
	struct planner *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		return -ENOMEM;
	}
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
	r = r < 0 ? r : thread_start(&p->thread, 0, work, p);
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

struct planner *planner_free(struct planner *p) {
	if (!p) {
		return NULL;
	}
	pthread_mutex_lock(&p->lock);
	p->leave = true;
	atomic_store(&p->stop, true);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	event_del(&p->ready);
	close(p->fd);
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		free(p->asked[i]);
		free(p->answers[i]);
	}
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

/* With the lock held. */
static void forget(struct planner *p, size_t gpu) {
	free(p->asked[gpu]);
	p->asked[gpu] = NULL;
	free(p->answers[gpu]);
	p->answers[gpu] = NULL;
	if (p->at == gpu) {
		atomic_store(&p->stop, true);
	}
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
	struct question *q = malloc(sizeof(*q));

	if (!q) {
		return -ENOMEM;
	}
	q->gpu = *plan_gpu;
	q->effort = PLAN_QUICK;
	q->n = n;
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
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return 0;
}
