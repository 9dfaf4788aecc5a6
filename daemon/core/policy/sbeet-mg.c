/*
 * sbeet-mg.c: sBEET-mg: tasks distributed offline (Alg. 4), jobs moved at run time (Alg. 5).
 */
#include "daemon/core/partition.h"
#include "daemon/core/sbeet.h"

/* A job on its way through Alg. 5. */
struct migration {
	const struct sbeet *b;
	size_t index;
	const struct timeline_job *job;
	unsigned home; /* pi_x */
};

static bool fits(const struct migration *m) {
	return m->b->params->reading == SCHED_READING_FIT;
}

/* The place on GPU pi_x as soon as @n_sms are free there. */
static bool place_at_home(const struct migration *m, unsigned n_sms, struct timeline_place *ret) {
	if (!timeline_earliest(&m->b->base, m->b->params, m->job, m->home, n_sms, ret)) {
		return false;
	}
	if (m->job->divisible && ret->n_sms > n_sms) {
		ret->n_sms = n_sms;
	}
	return true;
}

/* sBEET on every other GPU of Pi_i that is not full, and not idle if only active ones count; the
 * best one (lines 10 to 15 and 33 to 36; line 35 prints pi_x for pi_k). */
static struct sbeet_choice elsewhere(const struct migration *m, bool active_only) {
	struct sbeet_choice best = {.found = false};

	for (size_t i = 0; i < m->job->task->n_gpus; i++) {
		unsigned k = m->job->task->order[i];
		struct sbeet_choice c;

		if (k == m->home || sbeet_full(m->b, k) || (active_only && sbeet_idle(m->b, k)) ||
		    !sched_may_run(m->job->gpu_wanted, m->job->gpus, k)) {
			continue;
		}
		c = sbeet_allocate(m->b, m->index, k);
		if (fits(m) && !c.feasible) {
			c.found = false; /* Alg. 2 returns an idle GPU's least bad schedule too */
		}
		if (sbeet_better(m->b, &c, &best)) {
			best = c;
		}
	}
	return best;
}

/* Lines 2 to 20. */
static struct sbeet_choice from_idle_home(const struct migration *m) {
	struct sbeet_choice home = {.found = false}, other;
	struct timeline_place place;
	bool tried = place_at_home(m, m->job->task->m_opt[m->home], &place);

	if (tried) {
		home = sbeet_generate(m->b, m->index, &place);
		home.found = home.feasible;
	}
	other = elsewhere(m, true);
	if (sbeet_better(m->b, &other, &home)) {
		home = other;
	}
	if (home.found && (home.misses == 0 || !fits(m))) {
		return home;
	}
	if (!sbeet_is_late(m->b, m->index) &&
	    place_at_home(m, sched_gpu(m->b->s, m->home)->model.limit, &place)) {
		struct sbeet_choice whole = sbeet_generate(m->b, m->index, &place); /* line 17 */

		/* beyond the text: not where another choice makes fewer jobs late */
		home.found = tried && fits(m) && home.misses < whole.misses;
		return home.found ? home : whole;
	}
	return home;
}

/* Lines 24 to 38: nothing is found where it is better to wait for m_opt SMs at home. */
static struct sbeet_choice from_full_home(const struct migration *m) {
	struct sbeet_choice wait = {.found = false}, other;
	struct timeline_place place;

	if (place_at_home(m, m->job->task->m_opt[m->home], &place)) {
		wait = sbeet_generate(m->b, m->index, &place);
		wait.found = wait.feasible && !(fits(m) && wait.late); /* line 31: E4 is infinite */
	}
	other = elsewhere(m, false);
	if (sbeet_better(m->b, &other, &wait)) {
		return other;
	}
	wait.found = false;
	return wait;
}

/* Lines 21 to 23; and where that makes the job late, beyond the text, a GPU on which it is not. */
static struct sbeet_choice from_used_home(const struct migration *m) {
	struct sbeet_choice home = sbeet_allocate(m->b, m->index, m->home), other;

	if (!fits(m) || (home.found && home.feasible)) {
		return home;
	}
	other = elsewhere(m, false);
	return other.found ? other : home;
}

/* When the job would be over at the soonest if it waited for m_opt or for all SMs of a GPU. */
static nsec_t waits_until(const struct migration *m) {
	const struct timeline_job *job = m->job;
	nsec_t soonest = UINT64_MAX;

	for (size_t i = 0; i < job->task->n_gpus; i++) {
		unsigned k = job->task->order[i];
		unsigned counts[] = {job->task->m_opt[k], sched_gpu(m->b->s, k)->model.limit};

		for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
			struct timeline_place place;

			if (timeline_earliest(&m->b->base, m->b->params, job, k, counts[n],
					      &place) &&
			    place.start > m->b->now) {
				timeline_predict(&m->b->base, m->b->params, job, &place);
				soonest = place.finish < soonest ? place.finish : soonest;
			}
		}
	}
	return soonest;
}

/* Beyond the text: of all GPUs that have room, the one on which the late job is over first, if
 * others are late no more often, and it is not over sooner if it waits. */
static struct sbeet_choice least_late(const struct migration *m, nsec_t waits) {
	struct sbeet_choice best = {.found = false};

	for (size_t i = 0; i < m->job->task->n_gpus; i++) {
		unsigned k = m->job->task->order[i];
		struct sbeet_choice c;

		if (sbeet_full(m->b, k) || !sched_may_run(m->job->gpu_wanted, m->job->gpus, k)) {
			continue;
		}
		c = sbeet_allocate(m->b, m->index, k);
		c.found &= c.feasible || c.keeps_busy;
		if (sbeet_better(m->b, &c, &best)) {
			best = c;
		}
	}
	best.found &= best.place.finish <= waits;
	return best;
}

/* Alg. 5; and in the fit reading what is to become of a job that is late by it. */
static struct sbeet_choice migrate(const struct sbeet *b, size_t index) {
	const struct timeline_job *job = &b->ready->list[index].job;
	struct migration m = {.b = b, .index = index, .job = job, .home = sbeet_home(job)};
	struct sbeet_choice c, other;
	nsec_t waits;

	c = sbeet_idle(b, m.home)   ? from_idle_home(&m)
	    : sbeet_full(b, m.home) ? from_full_home(&m)
				    : from_used_home(&m);
	if (!fits(&m) || (c.found && !c.late)) {
		return c;
	}
	waits = waits_until(&m);
	if (!c.found && !b->ready->list[index].hopeless &&
	    (!job->deadline || waits <= job->deadline)) {
		return c;
	}
	other = least_late(&m, waits);
	return other.found ? other : c;
}

static enum explain_reason reason_of(const struct sbeet *b, size_t index,
				     const struct sbeet_choice *c) {
	unsigned home = sbeet_home(&b->ready->list[index].job);
	enum explain_reason reason = sbeet_reason(b, index, c);

	if (c->found && c->place.gpu != home && reason == EXPLAIN_START_CHEAPEST) {
		return EXPLAIN_START_AWAY;
	}
	if (c->found && c->place.gpu == home && sbeet_idle(b, home) && !c->feasible &&
	    c->place.n_sms >= sched_gpu(b->s, home)->model.limit) {
		return EXPLAIN_START_WHOLE;
	}
	return reason;
}

/* No GPU that the job may use has room. */
static bool all_are_full(const struct sbeet *b, size_t index) {
	const struct timeline_job *job = &b->ready->list[index].job;

	for (size_t i = 0; i < job->task->n_gpus; i++) {
		unsigned k = job->task->order[i];

		if (sched_may_run(job->gpu_wanted, job->gpus, k) && !sbeet_full(b, k)) {
			return false;
		}
	}
	return true;
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct sbeet_rules rules = {all_are_full, migrate, reason_of};

	sbeet_decide(s, now, &rules, actions);
}

const struct sched_policy policy_sbeet_mg = {
	.name = "sbeet-mg",
	.summary =
		"sbeet on several GPUs: tasks have a home, jobs move where that saves energy; "
		"live a program is placed when it starts, and moves if it can follow",
	.plans = true,
	.decide = decide,
	.distribute = partition_by_energy,
	.priority = "which task chooses its GPU first",
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_ANYWHERE,
	.params = SCHED_PARAMS_SBEET,
};
