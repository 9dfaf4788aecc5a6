/* schedule-search.c: see schedule.h. */
#include "daemon/sim/schedule.h"
#include "daemon/sim/sim.h"

struct search {
	const struct schedule_search *s;
	struct schedule_worst *worst;
	struct schedule_setup setup;
	nsec_t offsets[RTA_TASKS_MAX];
	uint64_t random, all;
};

static nsec_t longer(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

static nsec_t below(struct search *x, nsec_t n) {
	return n > 0 ? sim_random(&x->random) % n : 0;
}

/* Return: whether to go on. */
static bool run(struct search *x, enum schedule_offsets kind, struct schedule_result *result) {
	struct schedule_worst *w = x->worst;

	schedule_simulate(&x->setup, result);
	for (size_t i = 0; i < x->setup.set->n_tasks; i++) {
		w->longest[kind][i] = longer(w->longest[kind][i], result->longest[i]);
	}
	w->jobs += result->jobs;
	w->runs++;
	return !x->s->on_progress || x->s->on_progress(x->s->userdata, w->runs, x->all);
}

static bool critical(struct search *x) {
	struct schedule_result result;

	for (size_t i = 0; i < x->setup.set->n_tasks; i++) {
		x->offsets[i] = 0;
	}
	x->setup.drawn = x->setup.hostile = false;
	x->setup.duration = x->s->setup.duration;
	x->setup.seed = 0;
	return run(x, SCHEDULE_CRITICAL, &result);
}

static bool at_random(struct search *x) {
	const struct rta_set *set = x->setup.set;
	struct schedule_result result;

	for (unsigned n = 0; n < x->s->n_random; n++) {
		for (size_t i = 0; i < set->n_tasks; i++) {
			x->offsets[i] = below(x, set->tasks[i].period);
		}
		x->setup.drawn = n % 2;
		x->setup.seed = sim_random(&x->random) | 1;
		if (!run(x, SCHEDULE_RANDOM, &result)) {
			return false;
		}
	}
	return true;
}

/* Releases task @k so that one of its jobs comes @before the moment @at, or as much after it. */
static void place(struct search *x, size_t k, nsec_t at, nsec_t before, bool after) {
	const nsec_t period = x->setup.set->tasks[k].period;
	const nsec_t rest = before % period;

	x->offsets[k] = (at % period + (after ? rest : period - rest)) % period;
}

/* A small step for one task: to come right with, before or after what delays the target. */
static void move(struct search *x, size_t target, nsec_t at, nsec_t response) {
	const struct rta_set *set = x->setup.set;
	const size_t k = below(x, set->n_tasks);
	const struct rta_task *t = &set->tasks[k];
	const nsec_t work = t->n_gpu > 0 && t->g != RTA_FOREVER ? rta_add(t->c, t->g) : t->c;

	if (k == target) {
		return;
	}
	switch (below(x, 6)) {
	case 0:
		place(x, k, at, 0, false);
		break;
	case 1:
		place(x, k, at, 1 + below(x, 2 * rta_add(set->epsilon, 1)), false);
		break;
	case 2:
		place(x, k, at, below(x, rta_add(work, 2)), false);
		break;
	case 3:
		place(x, k, at, below(x, t->period), false);
		break;
	case 4:
		place(x, k, at, below(x, response + 1), true);
		break;
	default: {
		nsec_t step = below(x, rta_add(set->epsilon, 2));

		place(x, k, x->offsets[k], step, below(x, 2));
	}
	}
}

/*
 * Climbs: the target's release stands still, one other moves at a time, and goes back if the
 * target's job then takes less time. Runs are short, as only a few periods around it count.
 */
static bool adversarial(struct search *x, size_t target) {
	const struct rta_set *set = x->setup.set;
	struct schedule_result result;
	nsec_t at = 0, best = 0;

	for (size_t i = 0; i < set->n_real_time; i++) {
		at = longer(at, set->tasks[i].period);
	}
	x->setup.drawn = false;
	x->setup.duration = rta_add(at, 2 * set->tasks[target].period);
	x->setup.seed = 0;
	x->setup.hostile = false;
	for (size_t i = 0; i < set->n_tasks; i++) {
		place(x, i, at, 0, false);
	}
	x->offsets[target] = at;
	for (unsigned n = 0; n < x->s->n_adversarial; n++) {
		nsec_t before[RTA_TASKS_MAX];
		const bool hostile = x->setup.hostile;
		uint64_t seed = x->setup.seed;

		for (size_t i = 0; i < set->n_tasks; i++) {
			before[i] = x->offsets[i];
		}
		for (uint64_t moves = n == 0 ? 0 : 1 + below(x, 3); moves > 0; moves--) {
			move(x, target, at, best);
		}
		x->setup.seed = below(x, 4) == 0 ? sim_random(&x->random) | 1 : seed;
		x->setup.hostile ^= below(x, 4) == 0;
		if (!run(x, SCHEDULE_ADVERSARIAL, &result)) {
			return false;
		}
		if (result.longest[target] < best) {
			for (size_t i = 0; i < set->n_tasks; i++) {
				x->offsets[i] = before[i];
			}
			x->setup.seed = seed;
			x->setup.hostile = hostile;
		} else {
			best = result.longest[target];
		}
	}
	return true;
}

bool schedule_search(const struct schedule_search *s, struct schedule_worst *ret) {
	const size_t n = s->setup.set->n_real_time;
	struct search x = {.s = s, .worst = ret, .setup = s->setup, .random = s->setup.seed};
	bool on;

	*ret = (struct schedule_worst){0};
	x.setup.offsets = x.offsets;
	x.all = 1 + s->n_random + (uint64_t)s->n_adversarial * n;
	on = critical(&x) && at_random(&x);
	for (size_t i = 0; on && i < n; i++) {
		on = adversarial(&x, i);
	}
	return on;
}

nsec_t schedule_longest(const struct schedule_worst *w, size_t i) {
	nsec_t longest = 0;

	for (enum schedule_offsets k = 0; k < _SCHEDULE_OFFSETS_N; k++) {
		longest = longer(longest, w->longest[k][i]);
	}
	return longest;
}
