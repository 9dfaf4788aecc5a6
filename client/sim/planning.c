/* planning.c: see planning.h. */
#include "client/sim/planning.h"

#include <errno.h>
#include <stdlib.h>

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

static enum planning_verdict judge(const struct planning *p, const struct sched_task *task,
				   const struct sim_task_result *result) {
	return !planning_is_timed(task)	  ? PLANNING_UNTIMED
	       : result->count.missed > 0 ? PLANNING_LATE
	       : p->repeats		  ? PLANNING_IN_TIME
					  : PLANNING_NOT_KNOWN;
}

int planning_run(struct planning *ret, const struct scenario *s) {
	struct horizon h = find_horizon(s);
	int r = 0;

	ret->hyperperiod = h.hyperperiod;
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
	ret->all = ret->repeats ? PLANNING_IN_TIME : PLANNING_NOT_KNOWN;
	for (size_t i = 0; i < s->n_tasks; i++) {
		ret->each[i] = judge(ret, &s->tasks[i], &ret->sim.result.tasks[i]);
		if (ret->each[i] == PLANNING_LATE) {
			ret->all = PLANNING_LATE;
		}
	}
	return 0;
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
