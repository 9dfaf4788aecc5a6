/*
 * boundary.c: describes the state of a simulation at the boundaries of hyperperiods, so that equal
 * states can be found.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/sim/internal.h"

/* A live job, to be sorted: running jobs by number, then waiting ones in the order in which they
 * are served. */
struct live_job {
	bool waits;
	uint64_t key;
	sched_job_id id;
};

static int compare_live(const void *a, const void *b) {
	const struct live_job *x = a, *y = b;

	return x->waits != y->waits ? x->waits - y->waits : (x->key > y->key) - (x->key < y->key);
}

/* In a state, all times count from @at and all numbers from the next one, so that they can be equal
 * again; differences may wrap. */
static void describe_job(struct sim *s, sched_job_id id, nsec_t at) {
	const struct sched_job *job = sched_job(s->sched, id);
	const struct sim_job *j = &s->jobs[id];
	struct cycle *c = &s->cycle;

	cycle_add(c, j->task);
	cycle_add(c, s->tasks[j->task].next - j->number);
	cycle_add(c, s->next_order - j->order);
	cycle_add(c, j->release - at);
	cycle_add(c, job->release - at);
	if (job->state == SCHED_JOB_WAITING) {
		cycle_add(c, job->turn - sched_turn(s->sched));
		return;
	}
	cycle_add(c, (uint64_t)job->gpu * SCHED_SLOTS_MAX + job->slot);
	for (size_t i = 0; i < sizeof(job->sms.words) / sizeof(job->sms.words[0]); i++) {
		cycle_add(c, job->sms.words[i]);
	}
	cycle_add(c, job->sms_released);
	cycle_add(c, job->granted - at);
	cycle_add(c, job->profiled);
	cycle_add(c, job->sms_end - at);
	cycle_add(c, job->finish - at);
	cycle_add(c, j->kernel_start - at);
	cycle_add(c, j->kernel_end - at);
	cycle_add(c, j->finish - at);
}

/* A task that has had its only job has no future. */
static void describe_task(struct sim *s, size_t index, nsec_t at) {
	const struct sched_task *task = sched_task(s->sched, s->ids[index]);
	struct cycle *c = &s->cycle;

	if (task->period == 0 && s->tasks[index].next > 0 && s->tasks[index].n_live == 0) {
		return;
	}
	cycle_add(c, s->tasks[index].next - s->tasks[index].asked);
	cycle_add(c, s->tasks[index].n_live);
	cycle_add(c, (uint64_t)s->tasks[index].last_gpu);
	cycle_add(c, task->period ? task->next_release - at : 0);
	cycle_add(c, (uint64_t)task->gpu_wanted);
	cycle_add(c, task->owner);
	cycle_add(c, task->overhead);
	cycle_add(c, (uint64_t)task->last_gpu);
	cycle_add(c, task->last_gpu < 0 ? 0 : task->last_start - at);
	for (size_t i = 0; i < sizeof(task->last_sms.words) / sizeof(task->last_sms.words[0]);
	     i++) {
		cycle_add(c, task->last_sms.words[i]);
	}
}

static int describe_jobs(struct sim *s, nsec_t at) {
	struct live_job *live = calloc(s->n_jobs + 1, sizeof(*live));
	size_t n = 0;

	if (!live) {
		return -ENOMEM;
	}
	for (sched_job_id id = 0; id < s->n_jobs; id++) {
		const struct sched_job *job = s->jobs[id].live ? sched_job(s->sched, id) : NULL;

		if (job) {
			bool waits = job->state == SCHED_JOB_WAITING;

			live[n++] = (struct live_job){waits, waits ? job->place : job->order, id};
		}
	}
	qsort(live, n, sizeof(*live), compare_live);
	for (size_t i = 0; i < n; i++) {
		describe_job(s, live[i].id, at);
	}
	free(live);
	return 0;
}

/* So far; a job that ends at its deadline is in time, so one that runs until @at may be. */
static uint64_t missed_by(const struct sim *s, nsec_t at) {
	uint64_t n = 0;

	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		n += s->result.tasks[i].count.missed;
	}
	for (sched_job_id id = 0; id < s->n_jobs; id++) {
		n += s->jobs[id].live && s->jobs[id].deadline && s->jobs[id].deadline < at;
	}
	return n;
}

/* The next boundary; all before it has happened. */
static int pass_boundary(struct sim *s, nsec_t at) {
	struct sim_boundary b = {.now = at, .n = s->n_boundaries++};
	int r;

	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		describe_task(s, i, at);
	}
	for (size_t k = 0; s->setup->policy->counts_alone && k < s->setup->n_gpus; k++) {
		cycle_add(&s->cycle, sched_gpu(s->sched, k)->last_owner);
		cycle_add(&s->cycle, sched_gpu(s->sched, k)->n_alone);
	}
	r = describe_jobs(s, at);
	if (r == 0) {
		r = cycle_end(&s->cycle);
	}
	if (r < 0) {
		return r;
	}
	b.repeats = r > 0 && s->setup->exec == SIM_EXEC_WORST;
	b.missed = missed_by(s, at);
	if (!s->setup->on_boundary(s->setup->userdata, &b)) {
		s->end = at;
	}
	return 0;
}

int sim_pass_boundaries(struct sim *s, nsec_t until) {
	int r = 0;

	while (r == 0 && s->setup->hyperperiod > 0) {
		nsec_t at = s->setup->boundary + s->n_boundaries * s->setup->hyperperiod;

		if (at > until || at > s->end) {
			break;
		}
		r = pass_boundary(s, at);
	}
	return r;
}
