/* sim.c: see sim.h. Tasks, their jobs and the window; what runs when is the arbiter's. */
#include "daemon/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/sim/arbiter.h"
#include "daemon/sim/boundary.h"

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

/* The same number for a job whatever the policy did before it, in [0, 2^20]. */
static uint64_t job_luck(const struct sim_setup *setup, const struct sim_job *job) {
	uint64_t state = setup->seed;

	state = sim_random(&state) + job->task;
	state = sim_random(&state) + job->number;
	return sim_random(&state) % ((1u << 20) + 1);
}

nsec_t sim_exec_time(const struct sim *s, const struct profile_table *p, unsigned n_sms,
		     const struct sim_job *job) {
	const struct sim_setup *setup = s->setup;
	nsec_t worst = p->exec[n_sms], best = worst;

	if (setup->exec == SIM_EXEC_DRAWN) {
		best = p->exec_best[n_sms];
	} else if (setup->exec == SIM_EXEC_SHARE) {
		best = worst / 1000 * setup->exec_share_permille +
		       worst % 1000 * setup->exec_share_permille / 1000;
	}
	/* worst is below 2^42, luck below 2^21 */
	return best == worst ? worst : best + (((worst - best) * job_luck(setup, job)) >> 20);
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

/* The next job of the task is asked for: at its release, or as soon as the one before it is over.
 */
static int ask(struct sim *s, size_t index) {
	const struct sched_task *task = &s->setup->tasks[index];
	uint64_t number = s->tasks[index].asked++;
	nsec_t release = task->first_release + number * task->period;
	nsec_t seen = task->period ? s->now - (s->now - release) % task->period : release;
	struct sim_job job = {
		.task = index,
		.number = number,
		.order = s->next_order,
		.release = release,
		.deadline = task->deadline ? release + task->deadline : 0,
		.live = true,
	};
	uint32_t id;
	int r = s->setup->arbiter->arrive(s, &job, seen, &id);

	if (r < 0) {
		return r;
	}
	assert(id < s->max_jobs);
	s->jobs[id] = job;
	s->n_jobs = id < s->n_jobs ? s->n_jobs : (size_t)id + 1;
	s->next_order++;
	if (s->setup->params.late == SCHED_LATE_DROP && job.deadline) {
		r = event_push(&s->events,
			       (struct event){.at = job.deadline > s->now ? job.deadline : s->now,
					      .kind = EVENT_DEADLINE,
					      .index = id,
					      .order = job.order});
	}
	return r;
}

static int release_job(struct sim *s, size_t index) {
	struct sim_task *task = &s->tasks[index];
	int r = 0;

	s->changed = true;
	task->next++;
	s->result.tasks[index].count.released++;
	if (!s->setup->sequential || task->n_live == 0) {
		assert(task->asked + 1 == task->next);
		r = ask(s, index);
		task->n_live++;
	}
	return r < 0 ? r : push_release(s, index);
}

/* A job of the task is over: with it, what kept the next one from being asked for. */
static int job_over(struct sim *s, size_t index) {
	struct sim_task *task = &s->tasks[index];

	s->changed |= s->setup->sequential;
	if (s->setup->sequential && task->asked < task->next) {
		return ask(s, index);
	}
	task->n_live--;
	return 0;
}

int sim_job_done(struct sim *s, uint32_t id) {
	struct sim_job *j = &s->jobs[id];
	struct sim_task_result *task = &s->result.tasks[j->task];

	s->tasks[j->task].responses[task->count.completed++] = s->now - j->release;
	if (j->deadline) {
		int64_t lateness = (int64_t)(s->now - j->deadline);

		task->lateness_max = lateness > task->lateness_max ? lateness : task->lateness_max;
		task->count.missed += lateness > 0;
	}
	j->live = false;
	return job_over(s, j->task);
}

/* A job whose deadline has come and that has not started is given up. */
static int drop_job(struct sim *s, const struct event *event) {
	struct sim_job *j = &s->jobs[event->index];

	if (!j->live || j->order != event->order || !s->setup->arbiter->drop(s, event->index)) {
		return 0;
	}
	s->result.tasks[j->task].count.missed++;
	j->live = false;
	s->changed = true;
	return job_over(s, j->task);
}

static int happen(struct sim *s, const struct event *event) {
	switch (event->kind) {
	case EVENT_DEADLINE:
		return drop_job(s, event);
	case EVENT_RELEASE:
		return release_job(s, event->index);
	default:
		return s->setup->arbiter->happen(s, event);
	}
}

/* When the next event comes; the end of the window if none comes before it. */
static nsec_t next_event(const struct sim *s) {
	return s->events.n > 0 && s->events.heap[0].at < s->end ? s->events.heap[0].at : s->end;
}

/* What happens at one moment, then one decision about all of it. */
static int run_moment(struct sim *s, nsec_t at) {
	int r = 0;

	s->now = at;
	s->changed = false;
	while (r == 0 && s->events.n > 0 && s->events.heap[0].at == at) {
		struct event event = event_pop(&s->events);

		r = happen(s, &event);
	}
	return r == 0 && s->changed ? s->setup->arbiter->decide(s) : r;
}

static int run_events(struct sim *s) {
	for (;;) {
		int r = boundary_pass(s, next_event(s));

		if (r < 0 || next_event(s) == s->end) {
			return r;
		}
		r = run_moment(s, next_event(s));
		if (r < 0) {
			return r;
		}
	}
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
		int r = happen(s, &event);

		if (r < 0) {
			return r;
		}
	}
	for (size_t id = 0; id < s->n_jobs; id++) {
		if (s->jobs[id].live) {
			judge_open(s, s->jobs[id].task, s->jobs[id].deadline);
		}
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
		result->count.released += task->count.released;
		result->count.completed += task->count.completed;
		result->count.missed += task->count.missed;
		result->count.open += task->count.open;
	}
	for (size_t k = 0; k < s->setup->n_gpus; k++) {
		meter_advance(&s->meters[k], s->now);
		result->energy_pj[k] = s->meters[k].energy_pj;
		result->energy_total_pj += result->energy_pj[k];
		result->active[k] = s->meters[k].active;
	}
	s->setup->arbiter->conclude(s);
}

/* Jobs of a task that are released before the end of the window. */
static uint64_t jobs_of(const struct sched_task *task, nsec_t duration) {
	if (task->first_release >= duration) {
		return 0;
	}
	return task->period ? (duration - task->first_release - 1) / task->period + 1 : 1;
}

static int prepare_tasks(struct sim *s) {
	nsec_t *responses = s->responses;

	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		int r;

		s->tasks[i].n_max = jobs_of(&s->setup->tasks[i], s->setup->duration);
		s->tasks[i].responses = responses;
		responses += s->tasks[i].n_max;
		s->result.tasks[i].lateness_max = INT64_MIN;
		s->result.tasks[i].home = -1;
		r = push_release(s, i);
		if (r < 0) {
			return r;
		}
	}
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
	s->max_jobs = n_jobs + 1;
	s->jobs = calloc(s->max_jobs, sizeof(*s->jobs));
	s->tasks = calloc(setup->n_tasks + 1, sizeof(*s->tasks));
	s->responses = calloc(n_jobs + 1, sizeof(*s->responses));
	s->result.tasks = calloc(setup->n_tasks + 1, sizeof(*s->result.tasks));
	s->result.n_tasks = setup->n_tasks;
	if (!s->jobs || !s->tasks || !s->responses || !s->result.tasks) {
		return -ENOMEM;
	}
	for (size_t k = 0; k < setup->n_gpus; k++) {
		s->meters[k].power = &setup->gpus[k].power;
	}
	r = setup->arbiter->open(s);
	return r < 0 ? r : prepare_tasks(s);
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
	return setup->arbiter && setup->n_gpus >= 1 && setup->n_gpus <= SCHED_GPUS_MAX &&
	       setup->duration >= 1 && setup->duration <= SIM_DURATION_MAX &&
	       (unsigned)setup->exec < _SIM_EXEC_N &&
	       (unsigned)setup->params.late < _SCHED_LATE_N &&
	       (unsigned)setup->params.power < _SCHED_POWER_N &&
	       (unsigned)setup->terms < _SIM_TERMS_N && setup->cap_percent <= 100 &&
	       setup->overhead <= PROFILE_TIME_MAX &&
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
		*ret = s.result;
	} else {
		sim_result_deinit(&s.result);
	}
	setup->arbiter->close(s.arbiter_state);
	event_queue_deinit(&s.events);
	cycle_deinit(&s.cycle);
	free(s.jobs);
	free(s.tasks);
	free(s.responses);
	return r;
}

void sim_result_deinit(struct sim_result *r) {
	free(r->tasks);
	*r = (struct sim_result){0};
}
