/* sim.c: see sim.h. */
#include "daemon/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim/internal.h"

uint64_t sim_random(uint64_t *state) {
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

unsigned sim_miss_ppm(const struct sim_count *count) {
	uint64_t judged = count->released - count->open;

	return judged ? (unsigned)(count->missed * 1000000 / judged) : 0;
}

/* Integrates a GPU's power up to now, before it changes. */
static void meter_advance(struct sim *s, unsigned gpu) {
	struct sim_meter *meter = &s->meters[gpu];
	nsec_t passed = s->now - meter->since;

	s->result.energy_pj[gpu] +=
		passed * power_now_mw(&s->setup->gpus[gpu].power, meter->busy, meter->dynamic_mw);
	s->result.active[gpu] += meter->busy ? passed : 0;
	meter->since = s->now;
}

static void power_starts(struct sim *s, sched_job_id id) {
	const struct sched_job *job = sched_job(s->sched, id);
	struct sim_meter *meter = &s->meters[job->gpu];

	meter_advance(s, (unsigned)job->gpu);
	meter->busy += smset_count(&job->sms);
	meter->dynamic_mw += s->jobs[id].dynamic_mw;
}

static void power_ends(struct sim *s, sched_job_id id) {
	const struct sched_job *job = sched_job(s->sched, id);
	struct sim_meter *meter = &s->meters[job->gpu];

	meter_advance(s, (unsigned)job->gpu);
	meter->busy -= smset_count(&job->sms);
	meter->dynamic_mw -= s->jobs[id].dynamic_mw;
}

static nsec_t earlier(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* The job's SMs come free now (or the window ends). */
static void emit_segment(struct sim *s, sched_job_id id) {
	const struct sched_job *job = sched_job(s->sched, id);
	const struct sim_job *j = &s->jobs[id];

	if (s->setup->on_segment) {
		struct sim_segment segment = {
			.gpu = (unsigned)job->gpu,
			.sms = job->sms,
			.task = j->task,
			.job = j->number,
			.start = job->granted,
			.end = s->now,
			.kernel_start = earlier(j->kernel_start, s->now),
			.kernel_end = earlier(j->kernel_end, s->now),
			.dynamic_mw = j->dynamic_mw,
		};

		s->setup->on_segment(s->setup->userdata, &segment);
	}
}

/* The same number for a job whatever the policy did before it, in [0, 2^20]. */
static uint64_t job_luck(const struct sim_setup *setup, const struct sim_job *job) {
	uint64_t state = setup->seed;

	state = sim_random(&state) + job->task;
	state = sim_random(&state) + job->number;
	return sim_random(&state) % ((1u << 20) + 1);
}

static nsec_t draw_exec(const struct sim_setup *setup, const struct profile_table *p, unsigned m,
			const struct sim_job *job) {
	nsec_t worst = p->exec[m], best = worst;

	if (setup->exec == SIM_EXEC_DRAWN) {
		best = p->exec_best[m];
	} else if (setup->exec == SIM_EXEC_SHARE) {
		best = worst / 1000 * setup->exec_share_permille +
		       worst % 1000 * setup->exec_share_permille / 1000;
	}
	/* worst is below 2^42, luck below 2^21 */
	return best == worst ? worst : best + (((worst - best) * job_luck(setup, job)) >> 20);
}

static int start_job(struct sim *s, sched_job_id id) {
	const struct sched_job *job = sched_job(s->sched, id);
	struct sim_job *j = &s->jobs[id];
	struct sim_task *task = &s->tasks[j->task];
	const struct profile_table *p = s->setup->tasks[j->task].profiles[job->gpu];
	unsigned m = smset_count(&job->sms);
	nsec_t moved = task->last_gpu >= 0 && task->last_gpu != job->gpu
			       ? s->setup->params.migration_cost
			       : 0;

	if (!p) {
		return -EINVAL; /* a policy gave a job to a GPU that can't run it */
	}
	m = m < p->n_sms ? m : p->n_sms; /* the table ends at the GPU's limit */
	task->last_gpu = job->gpu;
	j->kernel_start = s->now + moved + s->setup->overhead + p->copy_in;
	j->kernel_end = j->kernel_start + draw_exec(s->setup, p, m, j);
	j->finish = j->kernel_end + p->copy_out;
	j->dynamic_mw = p->power_mw[m];
	s->result.grants++;
	if (s->setup->power == SIM_POWER_HELD) {
		power_starts(s, id);
	}
	return event_push(&s->events, (struct event){.at = j->kernel_start,
						     .kind = EVENT_KERNEL_START,
						     .index = id,
						     .order = j->order});
}

static void count_cost(struct sim *s, nsec_t cost) {
	unsigned octave = cost < 16 ? 0 : 63 - (unsigned)__builtin_clzll(cost);
	unsigned cell =
		octave < 4 ? (unsigned)cost : octave * 16 + (unsigned)((cost >> (octave - 4)) & 15);

	s->cost_cells[cell]++;
	s->result.cost.total += cost;
	s->result.cost.max = cost > s->result.cost.max ? cost : s->result.cost.max;
}

/* Upper end of the cell in which the @permille-th cost lies; the longest one ends the last cell. */
static nsec_t cost_percentile(const struct sim *s, unsigned permille) {
	uint64_t wanted = s->result.decisions * permille / 1000, seen = 0;
	nsec_t longest = s->result.cost.max;

	for (unsigned cell = 0; cell < COST_CELLS; cell++) {
		seen += s->cost_cells[cell];
		if (seen > wanted) {
			unsigned octave = cell / 16;
			nsec_t end =
				octave < 4 ? cell : (nsec_t)(16 + cell % 16 + 1) << (octave - 4);

			return end < longest ? end : longest;
		}
	}
	return longest;
}

static int decide(struct sim *s) {
	const struct sim_setup *setup = s->setup;
	struct sched_actions actions;
	nsec_t before = s->cost_cells ? setup->clock(setup->userdata) : 0;
	int r = 0;

	sched_decide(s->sched, s->now, &actions);
	s->result.decisions++;
	if (s->cost_cells) {
		count_cost(s, setup->clock(setup->userdata) - before);
	}
	for (size_t i = 0; i < actions.n && r == 0; i++) {
		assert(actions.list[i].kind == SCHED_ACTION_GRANT);
		r = start_job(s, actions.list[i].job);
	}
	return r;
}

static int make_room(struct sim *s, sched_job_id id) {
	size_t n = s->n_jobs ? 2 * s->n_jobs : 64;
	struct sim_job *jobs;

	if (id < s->n_jobs) {
		return 0;
	}
	jobs = reallocarray(s->jobs, n, sizeof(*jobs));
	if (!jobs) {
		return -ENOMEM;
	}
	memset(jobs + s->n_jobs, 0, (n - s->n_jobs) * sizeof(*jobs));
	s->jobs = jobs;
	s->n_jobs = n;
	return 0;
}

/* Releases are counted from the offset, never from the time of the last one: no drift. */
static int push_release(struct sim *s, size_t index) {
	const struct sched_task *task = &s->setup->tasks[index];
	uint64_t number = s->tasks[index].next;

	if (number == s->tasks[index].n_max) {
		return 0;
	}
	return event_push(&s->events,
			  (struct event){.at = task->first_release + number * task->period,
					 .kind = EVENT_RELEASE,
					 .index = (uint32_t)index,
					 .order = index});
}

/* The next job of the task asks for SMs, at its release or as soon as the one before it is over. */
static int ask(struct sim *s, size_t index) {
	const struct sched_task *task = &s->setup->tasks[index];
	uint64_t number = s->tasks[index].asked++;
	nsec_t release = task->first_release + number * task->period;
	nsec_t seen = task->period ? s->now - (s->now - release) % task->period : release;
	struct sched_job job = {
		.task = s->ids[index],
		.owner = index + 1,
		.gpu_wanted = -1,
		.divisible = true,
		.job_class = task->deadline ? SCHED_CLASS_REALTIME : SCHED_CLASS_BEST_EFFORT,
		.priority = task->priority,
		.release = seen,
		.deadline = task->deadline ? seen + task->deadline : 0,
		.requested = s->now,
		.tag = number,
	};
	struct sim_job *j;
	sched_job_id id;
	int r;

	r = sched_arrive(s->sched, &job, &id);
	if (r == 0) {
		r = make_room(s, id);
	}
	if (r < 0) {
		return r;
	}
	j = &s->jobs[id];
	*j = (struct sim_job){
		.task = index,
		.number = number,
		.order = s->next_order++,
		.live = true,
		.release = release,
		.deadline = task->deadline ? release + task->deadline : 0,
	};
	if (s->setup->late == SIM_LATE_DROP && j->deadline) {
		r = event_push(&s->events,
			       (struct event){.at = j->deadline > s->now ? j->deadline : s->now,
					      .kind = EVENT_DEADLINE,
					      .index = id,
					      .order = j->order});
	}
	return r;
}

static int release_job(struct sim *s, size_t index) {
	struct sim_task *task = &s->tasks[index];
	int r = 0;

	task->next++;
	s->result.tasks[index].count.released++;
	if (!s->setup->sequential || task->n_live == 0) {
		assert(task->asked + 1 == task->next);
		r = ask(s, index);
		task->n_live++;
	}
	return r < 0 ? r : push_release(s, index);
}

/* A job of the task is over: with it, what it kept from being asked for. */
static int job_over(struct sim *s, size_t index) {
	struct sim_task *task = &s->tasks[index];

	if (s->setup->sequential && task->asked < task->next) {
		return ask(s, index);
	}
	task->n_live--;
	return 0;
}

/* The job's SMs come free. */
static void free_sms(struct sim *s, sched_job_id id) {
	if (s->setup->power == SIM_POWER_HELD) {
		power_ends(s, id);
	}
	emit_segment(s, id);
}

static int finish_job(struct sim *s, sched_job_id id) {
	const struct sched_job *job = sched_job(s->sched, id);
	const struct sim_job *j = &s->jobs[id];
	struct sim_task_result *task = &s->result.tasks[j->task];

	s->tasks[j->task].responses[task->count.completed++] = s->now - j->release;
	if (j->deadline) {
		int64_t lateness = (int64_t)(s->now - j->deadline);

		task->lateness_max = lateness > task->lateness_max ? lateness : task->lateness_max;
		task->count.missed += lateness > 0;
	}
	if (!job->sms_released) {
		free_sms(s, id);
	}
	s->jobs[id].live = false;
	sched_finish(s->sched, id, s->now, true);
	return job_over(s, j->task);
}

/* A job whose deadline has come and that still waits is given up: then *decide is set. */
static int drop_job(struct sim *s, const struct event *event, bool *decide) {
	struct sim_job *j = &s->jobs[event->index];

	if (!j->live || j->order != event->order ||
	    sched_job(s->sched, event->index)->state != SCHED_JOB_WAITING) {
		return 0;
	}
	s->result.tasks[j->task].count.missed++;
	j->live = false;
	*decide = true;
	sched_finish(s->sched, event->index, s->now, false);
	return job_over(s, j->task);
}

/* Lets one event happen. *decide is set when the policy must look again. */
static int happen(struct sim *s, const struct event *event, bool *decide) {
	sched_job_id id = event->index;
	struct event next = *event;

	switch (event->kind) {
	case EVENT_KERNEL_START:
		if (s->setup->power == SIM_POWER_KERNEL) {
			power_starts(s, id);
		}
		next.at = s->jobs[id].kernel_end;
		next.kind = EVENT_KERNEL_END;
		return event_push(&s->events, next);
	case EVENT_KERNEL_END:
		if (s->setup->power == SIM_POWER_KERNEL) {
			power_ends(s, id);
		}
		if (s->setup->params.free_at_kernel_end) {
			free_sms(s, id);
			sched_release_sms(s->sched, id);
			*decide = true;
		}
		next.at = s->jobs[id].finish;
		next.kind = EVENT_FINISH;
		return event_push(&s->events, next);
	case EVENT_FINISH:
		*decide |= !sched_job(s->sched, id)->sms_released || s->setup->sequential;
		return finish_job(s, id);
	case EVENT_DEADLINE:
		return drop_job(s, event, decide);
	case EVENT_RELEASE:
		*decide = true;
		return release_job(s, id);
	}
	return -EINVAL;
}

static int run_events(struct sim *s) {
	int r = sim_pass_boundaries(s, s->events.n > 0 ? s->events.heap[0].at : s->end);

	while (r == 0 && s->events.n > 0 && s->events.heap[0].at < s->end) {
		bool wanted = false;

		s->now = s->events.heap[0].at;
		while (r == 0 && s->events.n > 0 && s->events.heap[0].at == s->now) {
			struct event event = event_pop(&s->events);

			r = happen(s, &event, &wanted);
		}
		if (r == 0 && wanted) {
			r = decide(s);
		}
		if (r == 0) {
			r = sim_pass_boundaries(s, s->events.n > 0 ? s->events.heap[0].at : s->end);
		}
	}
	return r;
}

/* A job that was not done in the window. */
static void judge_open(struct sim *s, size_t task, nsec_t deadline) {
	struct sim_count *count = &s->result.tasks[task].count;

	if (deadline && deadline <= s->now) {
		count->missed++;
	} else {
		count->open++;
	}
}

/* What ends exactly with the window has ended in it; the rest is cut and judged. */
static int close_window(struct sim *s) {
	s->now = s->result.end = s->end;
	while (s->events.n > 0 && s->events.heap[0].at == s->now &&
	       s->events.heap[0].kind < EVENT_DEADLINE) {
		struct event event = event_pop(&s->events);
		bool ignored = false;
		int r = happen(s, &event, &ignored);

		if (r < 0) {
			return r;
		}
	}
	for (sched_job_id id = 0; id < s->n_jobs; id++) {
		const struct sim_job *j = &s->jobs[id];
		const struct sched_job *job = j->live ? sched_job(s->sched, id) : NULL;

		if (!job) {
			continue;
		}
		if (job->state == SCHED_JOB_RUNNING && !job->sms_released) {
			emit_segment(s, id);
		}
		judge_open(s, j->task, j->deadline);
	}
	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		const struct sched_task *task = &s->setup->tasks[i];

		for (uint64_t n = s->tasks[i].asked; n < s->tasks[i].next; n++) {
			judge_open(s, i,
				   task->deadline
					   ? task->first_release + n * task->period + task->deadline
					   : 0);
		}
	}
	for (unsigned k = 0; k < s->setup->n_gpus; k++) {
		meter_advance(s, k);
	}
	return 0;
}

static int compare_times(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

static struct sim_times sum_up(nsec_t *times, uint64_t n) {
	struct sim_times t = {0};
	nsec_t total = 0; /* a million jobs of a day each still fit */

	if (n == 0) {
		return t;
	}
	qsort(times, n, sizeof(*times), compare_times);
	for (uint64_t i = 0; i < n; i++) {
		total += times[i] / n;
		t.mean += times[i] % n;
	}
	t.mean = total + t.mean / n;
	t.min = times[0];
	t.p99 = times[(n - 1) * 99 / 100];
	t.max = times[n - 1];
	return t;
}

static void conclude(struct sim *s) {
	struct sim_result *result = &s->result;

	for (size_t i = 0; i < result->n_tasks; i++) {
		struct sim_task_result *task = &result->tasks[i];

		task->response = sum_up(s->tasks[i].responses, task->count.completed);
		task->home = sched_task(s->sched, s->ids[i])->home;
		result->count.released += task->count.released;
		result->count.completed += task->count.completed;
		result->count.missed += task->count.missed;
		result->count.open += task->count.open;
	}
	for (size_t k = 0; k < s->setup->n_gpus; k++) {
		result->energy_total_pj += result->energy_pj[k];
	}
	if (s->cost_cells) {
		result->cost.p50 = cost_percentile(s, 500);
		result->cost.p99 = cost_percentile(s, 990);
	}
}

static void tell_explained(const struct sim *s) {
	const struct explain *e = sched_explain(s->sched);

	for (size_t i = 0; e && i < explain_count(e); i++) {
		s->setup->on_explained(s->setup->userdata, explain_get(e, i));
	}
}

/* Jobs of a task that are released before the end of the window. */
static uint64_t jobs_of(const struct sched_task *task, nsec_t duration) {
	if (task->first_release >= duration) {
		return 0;
	}
	return task->period ? (duration - task->first_release - 1) / task->period + 1 : 1;
}

static int prepare_tasks(struct sim *s) {
	const struct sim_setup *setup = s->setup;
	nsec_t *responses = s->responses;

	for (size_t i = 0; i < setup->n_tasks; i++) {
		int r = sched_add_task(s->sched, &setup->tasks[i], &s->ids[i]);

		if (r < 0) {
			return r;
		}
		s->tasks[i].last_gpu = -1;
		s->tasks[i].n_max = jobs_of(&setup->tasks[i], setup->duration);
		s->tasks[i].responses = responses;
		responses += s->tasks[i].n_max;
		s->result.tasks[i].lateness_max = INT64_MIN;
		r = push_release(s, i);
		if (r < 0) {
			return r;
		}
	}
	sched_distribute(s->sched);
	return 0;
}

static int prepare(struct sim *s) {
	const struct sim_setup *setup = s->setup;
	uint64_t n_jobs = 0;
	int r;

	for (size_t i = 0; i < setup->n_tasks; i++) {
		n_jobs += jobs_of(&setup->tasks[i], setup->duration);
	}
	if (n_jobs > SIM_JOBS_MAX) {
		return -E2BIG;
	}
	r = sched_new(&s->sched, setup->policy, n_jobs + 1);
	if (r == 0) {
		r = sched_set_params(s->sched, &setup->params);
	}
	if (r == 0) {
		r = sched_set_explain(s->sched, setup->n_explain);
	}
	for (size_t k = 0; r == 0 && k < setup->n_gpus; k++) {
		r = sched_add_gpu(s->sched, setup->gpus[k].power.n_sms, SCHED_SHARING_MPS);
		r = r < 0 ? r : sched_set_gpu_model(s->sched, k, &setup->gpus[k]);
	}
	if (r < 0) {
		return r;
	}
	s->tasks = calloc(setup->n_tasks + 1, sizeof(*s->tasks));
	s->ids = calloc(setup->n_tasks + 1, sizeof(*s->ids));
	s->responses = calloc(n_jobs + 1, sizeof(*s->responses));
	s->result.tasks = calloc(setup->n_tasks + 1, sizeof(*s->result.tasks));
	s->result.n_tasks = setup->n_tasks;
	if (setup->clock) {
		s->cost_cells = calloc(COST_CELLS, sizeof(*s->cost_cells));
	}
	if (!s->tasks || !s->ids || !s->responses || !s->result.tasks ||
	    (setup->clock && !s->cost_cells)) {
		return -ENOMEM;
	}
	return prepare_tasks(s);
}

static bool valid(const struct sim_setup *setup) {
	for (size_t i = 0; i < setup->n_tasks; i++) {
		/* sums of times below stay far from overflow */
		if (setup->tasks[i].period > SIM_DURATION_MAX ||
		    setup->tasks[i].deadline > SIM_DURATION_MAX ||
		    setup->tasks[i].first_release > SIM_DURATION_MAX) {
			return false;
		}
	}
	return setup->policy && setup->n_gpus >= 1 && setup->n_gpus <= SCHED_GPUS_MAX &&
	       setup->duration >= 1 && setup->duration <= SIM_DURATION_MAX &&
	       (unsigned)setup->exec < _SIM_EXEC_N && (unsigned)setup->late < _SIM_LATE_N &&
	       (unsigned)setup->power < _SIM_POWER_N && setup->overhead <= PROFILE_TIME_MAX &&
	       (setup->exec != SIM_EXEC_SHARE ||
		(setup->exec_share_permille >= 1 && setup->exec_share_permille <= 1000));
}

int sim_run(const struct sim_setup *setup, struct sim_result *ret) {
	struct sim s = {.setup = setup, .end = setup->duration};
	int r;

	if (!valid(setup)) {
		return -EINVAL;
	}
	r = prepare(&s);
	if (r == 0) {
		r = run_events(&s);
	}
	if (r == 0) {
		r = close_window(&s);
	}
	if (r == 0) {
		conclude(&s);
		tell_explained(&s);
		*ret = s.result;
	} else {
		sim_result_deinit(&s.result);
	}
	sched_free(s.sched);
	event_queue_deinit(&s.events);
	cycle_deinit(&s.cycle);
	free(s.jobs);
	free(s.tasks);
	free(s.ids);
	free(s.responses);
	free(s.cost_cells);
	return r;
}

void sim_result_deinit(struct sim_result *r) {
	free(r->tasks);
	*r = (struct sim_result){0};
}
