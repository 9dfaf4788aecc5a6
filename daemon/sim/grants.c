/* grants.c: see grants.h. */
#include "daemon/sim/grants.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/sim/arbiter.h"
#include "daemon/sim/boundary.h"
#include "daemon/sim/costs.h"

/* What a granted job does; same index as sched.h's own record of it. */
struct grant {
	nsec_t kernel_start, kernel_end, finish;
	uint32_t dynamic_mw;

	/* Of a job that was stopped: what is left of the time before its kernel, of its kernel, and
	 * of the time after that. */
	nsec_t before, kernel, after;
	nsec_t piece;	 /* its kernel can be stopped after each; 0: at any time */
	uint32_t number; /* of this grant; an event of an earlier one no longer holds */
};

struct granted_task {
	sched_task_id id;
	int gpu;      /* where its program stays; -1: it moves */
	int last_gpu; /* -1: none yet */
};

struct grants {
	struct sched *sched;	    /* owned */
	struct grant *jobs;	    /* owned */
	struct granted_task *tasks; /* owned */
	struct costs costs;	    /* of decisions; only with a clock */
};

static void power_starts(struct sim *s, sched_job_id id) {
	const struct grants *g = s->arbiter_state;
	const struct sched_job *job = sched_job(g->sched, id);

	meter_start(&s->meters[job->gpu], s->now, smset_count(&job->sms), g->jobs[id].dynamic_mw);
}

static void power_ends(struct sim *s, sched_job_id id) {
	const struct grants *g = s->arbiter_state;
	const struct sched_job *job = sched_job(g->sched, id);

	meter_stop(&s->meters[job->gpu], s->now, smset_count(&job->sms), g->jobs[id].dynamic_mw);
}

static nsec_t earlier(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* The job's SMs come free now (or the window ends). */
static void emit_segment(struct sim *s, sched_job_id id) {
	const struct grants *g = s->arbiter_state;
	const struct sched_job *job = sched_job(g->sched, id);
	const struct grant *grant = &g->jobs[id];

	if (s->setup->on_segment) {
		struct sim_segment segment = {
			.gpu = (unsigned)job->gpu,
			.sms = job->sms,
			.task = s->jobs[id].task,
			.job = s->jobs[id].number,
			.start = job->granted,
			.end = s->now,
			.kernel_start = earlier(grant->kernel_start, s->now),
			.kernel_end = earlier(grant->kernel_end, s->now),
			.dynamic_mw = grant->dynamic_mw,
		};

		s->setup->on_segment(s->setup->userdata, &segment);
	}
}

static void free_sms(struct sim *s, sched_job_id id) {
	if (s->setup->params.power == SCHED_POWER_HELD) {
		power_ends(s, id);
	}
	emit_segment(s, id);
}

/* Between two moments at which the kernels can be stopped, @kernel long together; 0: at any time.
 */
static nsec_t piece_of(const struct sim *s, const struct profile_table *p, nsec_t kernel) {
	switch (s->setup->params.stop) {
	case SCHED_STOP_LAUNCHES:
		return (kernel + p->launches - 1) / p->launches;
	case SCHED_STOP_LEVEL:
		return p->block ? p->block : (kernel + p->launches - 1) / p->launches;
	default:
		return 0;
	}
}

/* What the job has to do from its first grant on, as if it had been stopped before that. */
static void plan_job(struct sim *s, const struct sim_job *j, const struct profile_table *p,
		     unsigned m, bool moves, struct grant *grant) {
	const struct sched_policy *policy = s->setup->policy;
	nsec_t call = policy->stops && policy->by_segments ? s->setup->params.epsilon : 0;

	grant->before = call + (moves ? s->setup->params.migration_cost : 0) + s->setup->overhead +
			p->copy_in;
	grant->kernel = sim_exec_time(s, p, m, j);
	grant->piece = piece_of(s, p, grant->kernel);
	grant->after = p->copy_out + call;
	grant->dynamic_mw = p->power_mw[m];
	grant->number = 0;
}

/* It was granted just now: all that it will do is known, unless it is stopped. */
static int start_job(struct sim *s, sched_job_id id) {
	struct grants *g = s->arbiter_state;
	const struct sched_policy *policy = s->setup->policy;
	const struct sched_job *job = sched_job(g->sched, id);
	const struct sim_job *j = &s->jobs[id];
	struct granted_task *task = &g->tasks[j->task];
	const struct profile_table *p = s->setup->tasks[j->task].profiles[job->gpu];
	unsigned m = smset_count(&job->sms);
	bool moves = task->last_gpu >= 0 && task->last_gpu != job->gpu;
	struct grant *grant = &g->jobs[id];

	if (!p) {
		return -EINVAL; /* a policy gave a job to a GPU that can't run it */
	}
	m = m < p->n_sms ? m : p->n_sms; /* the table ends at the GPU's limit */
	task->last_gpu = job->gpu;
	if (!job->continued) {
		plan_job(s, j, p, m, moves, grant);
	}
	grant->number++;
	grant->kernel_start =
		s->now + grant->before +
		(policy->stops && !policy->by_segments ? s->setup->params.epsilon : 0);
	grant->kernel_end = grant->kernel_start + grant->kernel;
	grant->finish = grant->kernel_end + grant->after;
	s->result.grants++;
	if (s->setup->params.power == SCHED_POWER_HELD) {
		power_starts(s, id);
	}
	return event_push(&s->events, (struct event){.at = grant->kernel_start,
						     .kind = EVENT_KERNEL_START,
						     .index = id,
						     .order = j->order,
						     .grant = grant->number});
}

/* In the middle of what it does: the rest of that is done when it is granted again. */
static void stop_job(struct sim *s, sched_job_id id) {
	struct grants *g = s->arbiter_state;
	struct grant *grant = &g->jobs[id];
	nsec_t start = earlier(grant->kernel_start, s->now);
	nsec_t end = earlier(grant->kernel_end, s->now);
	bool computes = start == grant->kernel_start && end != grant->kernel_end;

	if (computes && s->setup->params.power == SCHED_POWER_KERNEL) {
		power_ends(s, id);
	}
	free_sms(s, id);
	grant->before = grant->kernel_start - start;
	grant->kernel = grant->kernel_end - end - grant->before;
	grant->after = grant->finish - (end == grant->kernel_end ? s->now : grant->kernel_end);
	sched_stopped(g->sched, id);
}

/* When the job leaves the GPU if it is to: its kernels go on to the end of a piece. What is left of
 * them begins with a whole one, since they never stop elsewhere. */
static nsec_t stops_at(const struct sim *s, const struct grant *grant) {
	nsec_t done = s->now > grant->kernel_start ? s->now - grant->kernel_start : 0;
	nsec_t over = grant->piece > 0 ? done % grant->piece : 0;

	return over == 0 || s->now >= grant->kernel_end
		       ? s->now
		       : earlier(s->now + grant->piece - over, grant->kernel_end);
}

/* @ret_stopped: it has left the GPU already. */
static int tell_to_stop(struct sim *s, sched_job_id id, bool *ret_stopped) {
	struct grants *g = s->arbiter_state;
	struct grant *grant = &g->jobs[id];
	nsec_t at = stops_at(s, grant);

	if (at == s->now) {
		stop_job(s, id);
		*ret_stopped = true;
		return 0;
	}
	return event_push(&s->events, (struct event){.at = at,
						     .kind = EVENT_STOP,
						     .index = id,
						     .order = s->jobs[id].order,
						     .grant = grant->number});
}

static int stop_happens(struct sim *s, sched_job_id id) {
	struct grants *g = s->arbiter_state;

	if (!sched_job(g->sched, id)->sms_released) {
		stop_job(s, id);
		s->changed = true;
	}
	return 0;
}

static int grants_decide(struct sim *s) {
	const struct sim_setup *setup = s->setup;
	struct grants *g = s->arbiter_state;
	struct sched_actions actions;
	bool stopped;
	int r = 0;

	do { /* what is stopped leaves room at once */
		nsec_t before = setup->clock ? setup->clock(setup->userdata) : 0;

		sched_decide(g->sched, s->now, &actions);
		s->result.decisions++;
		if (setup->clock) {
			costs_add(&g->costs, setup->clock(setup->userdata) - before);
		}
		stopped = false;
		for (size_t i = 0; i < actions.n && r == 0; i++) {
			if (actions.list[i].kind == SCHED_ACTION_STOP) {
				r = tell_to_stop(s, actions.list[i].job, &stopped);
			} else {
				r = start_job(s, actions.list[i].job);
			}
		}
	} while (r == 0 && stopped);
	return r;
}

static int grants_arrive(struct sim *s, const struct sim_job *job, nsec_t seen, uint32_t *ret_id) {
	const struct sched_task *task = &s->setup->tasks[job->task];
	struct grants *g = s->arbiter_state;
	struct sched_job arriving = {
		.task = g->tasks[job->task].id,
		.owner = job->task + 1,
		.gpu_wanted = g->tasks[job->task].gpu,
		.divisible = true,
		.job_class = task->deadline ? SCHED_CLASS_REALTIME : SCHED_CLASS_BEST_EFFORT,
		.stop = s->setup->params.stop,
		.spec.priority = task->spec.priority,
		.release = seen,
		.deadline = task->deadline ? seen + task->deadline : 0,
		.requested = s->now,
		.tag = job->number,
	};

	return sched_arrive(g->sched, &arriving, ret_id);
}

static bool grants_drop(struct sim *s, uint32_t id) {
	struct grants *g = s->arbiter_state;

	if (sched_job(g->sched, id)->state != SCHED_JOB_WAITING) {
		return false;
	}
	sched_finish(g->sched, id, s->now, false);
	return true;
}

static int kernel_starts(struct sim *s, struct event event) {
	const struct grants *g = s->arbiter_state;

	if (s->setup->params.power == SCHED_POWER_KERNEL) {
		power_starts(s, event.index);
	}
	event.at = g->jobs[event.index].kernel_end;
	event.kind = EVENT_KERNEL_END;
	return event_push(&s->events, event);
}

static int kernel_ends(struct sim *s, struct event event) {
	struct grants *g = s->arbiter_state;

	if (s->setup->params.power == SCHED_POWER_KERNEL) {
		power_ends(s, event.index);
	}
	if (s->setup->params.free_at_kernel_end) {
		free_sms(s, event.index);
		sched_release_sms(g->sched, event.index);
		s->changed = true;
	}
	event.at = g->jobs[event.index].finish;
	event.kind = EVENT_FINISH;
	return event_push(&s->events, event);
}

static int finish_job(struct sim *s, sched_job_id id) {
	struct grants *g = s->arbiter_state;

	if (!sched_job(g->sched, id)->sms_released) {
		free_sms(s, id);
		s->changed = true;
	}
	sched_finish(g->sched, id, s->now, true);
	return sim_job_done(s, id);
}

static int grants_happen(struct sim *s, const struct event *event) {
	const struct grants *g = s->arbiter_state;

	if (!s->jobs[event->index].live || s->jobs[event->index].order != event->order ||
	    g->jobs[event->index].number != event->grant ||
	    sched_job(g->sched, event->index)->state != SCHED_JOB_RUNNING) {
		return 0; /* it has been stopped since */
	}
	switch (event->kind) {
	case EVENT_KERNEL_START:
		return kernel_starts(s, *event);
	case EVENT_STOP:
		return stop_happens(s, event->index);
	case EVENT_KERNEL_END:
		return kernel_ends(s, *event);
	case EVENT_FINISH:
		return finish_job(s, event->index);
	default:
		return -EINVAL;
	}
}

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

static void describe_set(struct cycle *c, const struct smset *sms) {
	for (size_t i = 0; i < sizeof(sms->words) / sizeof(sms->words[0]); i++) {
		cycle_add(c, sms->words[i]);
	}
}

static void describe_job(struct sim *s, sched_job_id id, nsec_t at) {
	const struct grants *g = s->arbiter_state;
	const struct sched_job *job = sched_job(g->sched, id);
	struct cycle *c = &s->cycle;

	boundary_add_job(s, id, at);
	cycle_add(c, job->release - at);
	cycle_add(c, job->continued);
	cycle_add(c, job->continued ? g->jobs[id].before : 0);
	cycle_add(c, job->continued ? g->jobs[id].kernel : 0);
	cycle_add(c, job->continued ? g->jobs[id].after : 0);
	if (job->state == SCHED_JOB_WAITING) {
		cycle_add(c, job->turn - sched_turn(g->sched));
		cycle_add(c, (uint64_t)job->gpu_wanted);
		return;
	}
	cycle_add(c, (uint64_t)job->gpu * SCHED_SLOTS_MAX + job->slot);
	describe_set(c, &job->sms);
	cycle_add(c, job->sms_released);
	cycle_add(c, job->stopping);
	cycle_add(c, job->granted - at);
	cycle_add(c, job->profiled);
	cycle_add(c, job->sms_end - at);
	cycle_add(c, job->finish - at);
	cycle_add(c, g->jobs[id].kernel_start - at);
	cycle_add(c, g->jobs[id].kernel_end - at);
	cycle_add(c, g->jobs[id].finish - at);
}

static void describe_task(struct sim *s, size_t index, nsec_t at) {
	const struct grants *g = s->arbiter_state;
	const struct sched_task *task = sched_task(g->sched, g->tasks[index].id);
	struct cycle *c = &s->cycle;

	if (sim_task_is_over(s, index)) {
		return;
	}
	cycle_add(c, (uint64_t)g->tasks[index].last_gpu);
	cycle_add(c, task->period ? task->next_release - at : 0);
	cycle_add(c, (uint64_t)task->gpu_wanted);
	cycle_add(c, task->owner);
	cycle_add(c, task->overhead);
	cycle_add(c, (uint64_t)task->last_gpu);
	cycle_add(c, task->last_gpu < 0 ? 0 : task->last_start - at);
	describe_set(c, &task->last_sms);
}

static int grants_describe(struct sim *s, nsec_t at) {
	const struct grants *g = s->arbiter_state;
	struct live_job *live = calloc(s->n_jobs + 1, sizeof(*live));
	size_t n = 0;

	if (!live) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		describe_task(s, i, at);
	}
	for (size_t k = 0; s->setup->policy->counts_alone && k < s->setup->n_gpus; k++) {
		cycle_add(&s->cycle, sched_gpu(g->sched, k)->last_owner);
		cycle_add(&s->cycle, sched_gpu(g->sched, k)->n_alone);
	}
	for (sched_job_id id = 0; id < s->n_jobs; id++) {
		const struct sched_job *job = s->jobs[id].live ? sched_job(g->sched, id) : NULL;

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

static void grants_conclude(struct sim *s) {
	const struct grants *g = s->arbiter_state;
	const struct explain *e = sched_explain(g->sched);
	struct sim_result *result = &s->result;

	for (sched_job_id id = 0; id < s->n_jobs; id++) {
		const struct sched_job *job = s->jobs[id].live ? sched_job(g->sched, id) : NULL;

		if (job && job->state == SCHED_JOB_RUNNING && !job->sms_released) {
			emit_segment(s, id);
		}
	}
	for (size_t i = 0; i < result->n_tasks; i++) {
		result->tasks[i].home = sched_task(g->sched, g->tasks[i].id)->home;
	}
	result->cost.total = g->costs.total;
	result->cost.p50 = costs_percentile(&g->costs, 500);
	result->cost.p99 = costs_percentile(&g->costs, 990);
	result->cost.max = g->costs.max;
	for (size_t i = 0; e && i < explain_count(e); i++) {
		s->setup->on_explained(s->setup->userdata, explain_get(e, i));
	}
}

/* Where the program of a task that does not move runs. */
static int find_stay(struct grants *g, const struct sched_task *task, sched_task_id id) {
	int gpu = task->fixed_gpu >= 0 ? task->fixed_gpu : sched_place(g->sched, id);

	for (int k = 0; gpu < 0 && k < SCHED_GPUS_MAX; k++) {
		gpu = task->profiles[k] ? k : -1;
	}
	return gpu;
}

/* The scheduler with the setup's GPUs and tasks. */
static int fill_sched(struct grants *g, const struct sim_setup *setup) {
	int r = sched_set_params(g->sched, &setup->params);

	if (r == 0) {
		r = sched_set_explain(g->sched, setup->n_explain);
	}
	for (size_t k = 0; r == 0 && k < setup->n_gpus; k++) {
		r = sched_add_gpu(g->sched, setup->gpus[k].power.n_sms, SCHED_SHARING_MPS);
		r = r < 0 ? r : sched_set_gpu_model(g->sched, k, &setup->gpus[k]);
	}
	for (size_t i = 0; r == 0 && i < setup->n_tasks; i++) {
		g->tasks[i].gpu = g->tasks[i].last_gpu = -1;
		r = sched_add_task(g->sched, &setup->tasks[i], &g->tasks[i].id);
	}
	if (r == 0) {
		sched_distribute(g->sched);
	}
	for (size_t i = 0; r == 0 && setup->moves && i < setup->n_tasks; i++) {
		if (!setup->moves[i]) {
			g->tasks[i].gpu = find_stay(g, &setup->tasks[i], g->tasks[i].id);
		}
	}
	return r;
}

static int grants_open(struct sim *s) {
	struct grants *g = calloc(1, sizeof(*g));
	int r;

	if (!g) {
		return -ENOMEM;
	}
	s->arbiter_state = g;
	r = sched_new(&g->sched, s->setup->policy, s->max_jobs);
	if (r < 0) {
		return r;
	}
	g->jobs = calloc(s->max_jobs, sizeof(*g->jobs));
	g->tasks = calloc(s->setup->n_tasks + 1, sizeof(*g->tasks));
	return g->jobs && g->tasks ? fill_sched(g, s->setup) : -ENOMEM;
}

static void grants_close(void *state) {
	struct grants *g = state;

	if (g) {
		sched_free(g->sched);
		free(g->jobs);
		free(g->tasks);
		free(g);
	}
}

const struct sim_arbiter sim_grants = {
	.open = grants_open,
	.close = grants_close,
	.arrive = grants_arrive,
	.drop = grants_drop,
	.happen = grants_happen,
	.decide = grants_decide,
	.describe = grants_describe,
	.conclude = grants_conclude,
};
