/* planning.c: see planning.h. */
#include "client/sim/planning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/analysis/serial.h"

static nsec_t gcd(nsec_t a, nsec_t b) {
	while (b) {
		nsec_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* When what happens may begin to repeat. */
struct horizon {
	nsec_t offset;	    /* all first releases lie before or at this */
	nsec_t hyperperiod; /* least common multiple of the periods; 0: none, or more than a day */
	nsec_t once_due;    /* the last deadline of a task that has one job */
	uint64_t n_jobs;    /* in a hyperperiod */
	bool periodic;
};

static struct horizon find_horizon(const struct scenario *s) {
	struct horizon h = {.hyperperiod = 1};

	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sched_task *t = &s->tasks[i];
		nsec_t due = t->first_release + t->deadline;

		h.offset = t->first_release > h.offset ? t->first_release : h.offset;
		if (t->period == 0) {
			h.once_due = due > h.once_due ? due : h.once_due;
			continue;
		}
		h.periodic = true;
		if (h.hyperperiod > 0 &&
		    (__builtin_mul_overflow(h.hyperperiod / gcd(h.hyperperiod, t->period),
					    t->period, &h.hyperperiod) ||
		     h.hyperperiod > SIM_DURATION_MAX)) {
			h.hyperperiod = 0;
		}
	}
	h.hyperperiod = h.periodic ? h.hyperperiod : 0;
	for (size_t i = 0; i < s->n_tasks; i++) {
		h.n_jobs += s->tasks[i].period ? h.hyperperiod / s->tasks[i].period : 0;
	}
	return h;
}

/* How far to look without a word of the user: two hyperperiods at least. */
static int find_duration(const struct horizon *h, nsec_t *ret) {
	uint64_t n = PLANNING_HYPERPERIODS_MAX, most;
	nsec_t end;

	if (!h->periodic) {
		end = h->once_due > 0 ? h->once_due : 1;
	} else {
		if (h->hyperperiod == 0 || h->hyperperiod > SIM_DURATION_MAX / 2 ||
		    h->offset > SIM_DURATION_MAX - 2 * h->hyperperiod) {
			return -ERANGE;
		}
		most = (SIM_DURATION_MAX - h->offset) / h->hyperperiod;
		n = n < most ? n : most;
		n = n < PLANNING_JOBS_MAX / h->n_jobs ? n : PLANNING_JOBS_MAX / h->n_jobs;
		end = h->offset + (n > 2 ? n : 2) * h->hyperperiod;
		end = end > h->once_due ? end : h->once_due;
	}
	if (end > SIM_DURATION_MAX) {
		return -ERANGE;
	}
	*ret = end;
	return 0;
}

/* A job that is late settles it, but for the other tasks: they get two hyperperiods. */
static bool go_on(void *userdata, const struct sim_boundary *b) {
	struct planning *p = userdata;

	p->repeats = b->repeats;
	return !b->repeats && (b->missed == 0 || b->n < 2);
}

bool planning_is_timed(const struct sched_task *t) {
	return t->deadline > 0;
}

/* How long the GPU is taken by a job of the task, all in all. */
static nsec_t time_on(const struct planning *p, const struct scenario *s, size_t task, size_t gpu) {
	const struct sched_gpu_model *model = &s->gpus[gpu].model;
	const struct profile_table *profile = s->tasks[task].profiles[gpu];

	return profile_total(profile, sched_whole_steps(model, model->limit)) +
	       p->sim.params.overhead +
	       (s->task_moves[task] ? p->sim.params.sched.migration_cost : 0);
}

/* On the slowest of its GPUs. */
static nsec_t longest_time(const struct planning *p, const struct scenario *s, size_t task) {
	nsec_t longest = 0;

	for (size_t k = 0; k < s->n_gpus; k++) {
		nsec_t time = s->tasks[task].profiles[k] ? time_on(p, s, task, k) : 0;

		longest = time > longest ? time : longest;
	}
	return longest;
}

/* Which tasks are in time by the bounds of one GPU: takes away those that are not. */
static void bound_on(const struct planning *p, const struct scenario *s, size_t gpu,
		     struct serial_task *room, bool *is_bounded) {
	bool by_period = p->sim.policy->serial == SCHED_SERIAL_PERIOD;
	size_t n = 0, at = 0;

	for (size_t i = 0; i < s->n_tasks; i++) {
		if (s->tasks[i].profiles[gpu]) {
			room[n++] = (struct serial_task){time_on(p, s, i, gpu), s->tasks[i].period};
		}
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sched_task *task = &s->tasks[i];
		nsec_t there;

		if (!task->profiles[gpu]) {
			continue;
		}
		there = room[at].time;
		if (s->task_moves[i]) {
			room[at].time = longest_time(p, s, i);
		}
		is_bounded[i] =
			is_bounded[i] && planning_is_timed(task) &&
			serial_bound(room, n, at, by_period, task->deadline) <= task->deadline;
		room[at++].time = there;
	}
}

/* For each task whether a bound says that it is in time. @ret: all false at first. */
static int find_bounds(const struct planning *p, const struct scenario *s, bool *ret) {
	struct serial_task *room;

	if (p->sim.policy->serial == SCHED_SERIAL_NONE ||
	    p->sim.params.sched.packing != SCHED_PACKING_WHOLE) {
		return 0;
	}
	room = calloc(s->n_tasks + 1, sizeof(*room));
	if (!room) {
		return -ENOMEM;
	}
	memset(ret, true, s->n_tasks * sizeof(*ret));
	for (size_t k = 0; k < s->n_gpus; k++) {
		bound_on(p, s, k, room, ret);
	}
	free(room);
	return 0;
}

/* A table holds the jobs of one hyperperiod, so only those of periodic tasks. */
static bool is_kept(const struct planning *p, const struct sched_task *task) {
	return p->table && p->repeats && task->period > 0;
}

static enum planning_verdict judge(const struct planning *p, const struct sched_task *task,
				   const struct sim_task_result *result, bool is_bounded) {
	return !planning_is_timed(task)			    ? PLANNING_UNTIMED
	       : result->count.missed > 0		    ? PLANNING_LATE
	       : (p->table ? is_kept(p, task) : is_bounded) ? PLANNING_IN_TIME
							    : PLANNING_NOT_KNOWN;
}

static int judge_all(struct planning *p, const struct scenario *s) {
	bool *is_bounded = calloc(s->n_tasks + 1, sizeof(*is_bounded));
	int r = is_bounded ? find_bounds(p, s, is_bounded) : -ENOMEM;

	p->all = PLANNING_IN_TIME;
	for (size_t i = 0; r == 0 && i < s->n_tasks; i++) {
		p->each[i] = judge(p, &s->tasks[i], &p->sim.result.tasks[i], is_bounded[i]);
		if (p->each[i] == PLANNING_LATE ||
		    (p->each[i] == PLANNING_NOT_KNOWN && p->all == PLANNING_IN_TIME)) {
			p->all = p->each[i];
		}
	}
	free(is_bounded);
	return r;
}

int planning_run(struct planning *ret, const struct scenario *s) {
	struct horizon h = find_horizon(s);
	int r = 0;

	ret->hyperperiod = h.hyperperiod;
	ret->sim.stays = true;
	ret->repeats = false;
	ret->each = NULL;
	if (ret->sim.duration == 0) {
		r = find_duration(&h, &ret->sim.duration);
	}
	if (r == 0) {
		ret->each = calloc(s->n_tasks + 1, sizeof(*ret->each));
		r = ret->each ? 0 : -ENOMEM;
	}
	if (r < 0) {
		return r;
	}
	if (h.hyperperiod > 0) {
		ret->sim.boundary = h.offset;
		ret->sim.hyperperiod = h.hyperperiod;
		ret->sim.on_boundary = go_on;
		ret->sim.userdata = ret;
	}
	r = simulation_run(&ret->sim, s);
	if (r < 0) {
		free(ret->each);
		ret->each = NULL;
		return r;
	}
	if (!h.periodic) {
		ret->repeats = ret->sim.result.end >= h.once_due; /* nobody can be late any more */
	}
	r = judge_all(ret, s);
	if (r < 0) {
		planning_deinit(ret);
	}
	return r;
}

void planning_deinit(struct planning *p) {
	simulation_deinit(&p->sim);
	free(p->each);
	p->each = NULL;
}

const char *planning_verdict_text(enum planning_verdict verdict) {
	static const char *const texts[_PLANNING_VERDICT_N] = {
		[PLANNING_IN_TIME] = "in time",
		[PLANNING_LATE] = "late",
		[PLANNING_NOT_KNOWN] = "not known",
		[PLANNING_UNTIMED] = "no deadline",
	};

	return texts[verdict];
}
