/* optimum.c: see optimum.h. */
#include "optimum.h"
#include "daemon/core/sched.h"
#include "daemon/sim/grants.h"

#include <stdbool.h>
#include <string.h>

#define UNIT (NSEC_PER_MSEC / 4)

static uint64_t between(uint64_t *random, uint64_t low, uint64_t high) {
	return low + sim_random(random) % (high - low + 1);
}

/* Not quite linear, so that m_opt is not always all SMs; a job draws more than idle SMs do. */
static void make_profile(struct profile_table *p, unsigned n_sms, uint64_t *random) {
	nsec_t work = between(random, 8, 60) * UNIT, fixed = between(random, 0, 4) * UNIT;
	uint32_t power = (uint32_t)between(random, 1000, 4000);

	profile_table_init(p, n_sms, between(random, 0, 2) * UNIT, between(random, 0, 2) * UNIT);
	for (unsigned m = 1; m <= n_sms; m++) {
		nsec_t t = work / m + fixed;

		profile_table_set(p, m, t, t, m * power);
	}
	profile_table_finish(p);
}

void optimum_case_make(struct optimum_case *ret, uint64_t seed) {
	uint64_t random = seed;

	memset(ret, 0, sizeof(*ret));
	ret->n_gpus = between(&random, 1, OPTIMUM_GPUS);
	ret->n_jobs = between(&random, 3, OPTIMUM_JOBS);
	ret->duration = 10 * NSEC_PER_SEC;
	for (size_t k = 0; k < ret->n_gpus; k++) {
		unsigned n_sms = (unsigned)between(&random, 2, OPTIMUM_SMS);

		ret->gpus[k] = (struct sched_gpu_model){
			.power = {.n_sms = n_sms,
				  .static_mw = (uint32_t)between(&random, 2000, 20000),
				  .idle_mw_per_sm = (uint32_t)between(&random, 200, 1000)},
			.limit = n_sms,
			.step = 1};
	}
	for (size_t i = 0; i < ret->n_jobs; i++) {
		struct sched_task *task = &ret->tasks[i];
		nsec_t least = UINT64_MAX;

		for (size_t k = 0; k < ret->n_gpus; k++) {
			struct profile_table *p = &ret->profiles[i][k];
			unsigned n_sms = ret->gpus[k].power.n_sms;

			make_profile(p, n_sms, &random);
			task->profiles[k] = p;
			least = profile_total(p, n_sms) < least ? profile_total(p, n_sms) : least;
		}
		task->period = ret->duration; /* one job, whose release is known beforehand */
		task->first_release = between(&random, 0, 12 * ret->n_jobs) * UNIT;
		task->deadline = least * between(&random, 100, 350) / 100;
		task->spec.priority = -(int)i;
		task->fixed_gpu = -1;
	}
}

/* A schedule up to the present moment. Its energy is exact: jobs come in the order of starts. */
struct node {
	nsec_t now;
	unsigned waiting; /* bits: jobs that have not started */
	size_t n_running;
	struct {
		unsigned gpu, n_sms;
		nsec_t end;
	} running[2 * OPTIMUM_GPUS];
	nsec_t active_until[OPTIMUM_GPUS];
	unsigned misses;
	uint64_t energy_pj;
};

struct search {
	const struct optimum_case *c;
	uint64_t least_pj[OPTIMUM_JOBS]; /* no run of the job in time adds less */
	nsec_t fastest[OPTIMUM_JOBS];
	struct optimum_value best;
};

static bool is_better(const struct optimum_value *a, const struct optimum_value *b) {
	return a->misses != b->misses ? a->misses < b->misses : a->energy_pj < b->energy_pj;
}

/* What no continuation of the schedule can be better than. */
static struct optimum_value bound(const struct search *s, const struct node *n) {
	struct optimum_value v = {n->misses, n->energy_pj};

	for (size_t i = 0; i < s->c->n_jobs; i++) {
		const struct sched_task *task = &s->c->tasks[i];
		nsec_t from = task->first_release > n->now ? task->first_release : n->now;

		if (!(n->waiting >> i & 1)) {
			continue;
		}
		if (from + s->fastest[i] > task->first_release + task->deadline) {
			v.misses++;
		} else {
			v.energy_pj += s->least_pj[i];
		}
	}
	return v;
}

static nsec_t next_event(const struct search *s, const struct node *n) {
	nsec_t next = UINT64_MAX;

	for (size_t i = 0; i < s->c->n_jobs; i++) {
		nsec_t release = s->c->tasks[i].first_release;

		if ((n->waiting >> i & 1) && release > n->now && release < next) {
			next = release;
		}
	}
	for (size_t i = 0; i < n->n_running; i++) {
		next = n->running[i].end < next ? n->running[i].end : next;
	}
	return next;
}

/* SMs that a further job can have on the GPU; 0 also where two jobs run. */
static unsigned room(const struct search *s, const struct node *n, unsigned gpu) {
	unsigned left = s->c->gpus[gpu].limit, jobs = 0;

	for (size_t i = 0; i < n->n_running; i++) {
		if (n->running[i].gpu == gpu) {
			left -= n->running[i].n_sms;
			jobs++;
		}
	}
	return jobs < 2 ? left : 0;
}

static void start(const struct search *s, struct node *n, size_t job, unsigned gpu, unsigned m) {
	const struct sched_task *task = &s->c->tasks[job];
	const struct profile_table *p = &s->c->profiles[job][gpu];
	const struct power_gpu *power = &s->c->gpus[gpu].power;
	nsec_t end = n->now + profile_total(p, m);
	nsec_t alone_from = n->active_until[gpu] > n->now ? n->active_until[gpu] : n->now;

	n->energy_pj += (p->power_mw[m] - (uint64_t)power->idle_mw_per_sm * m) * (end - n->now);
	if (end > alone_from) {
		n->energy_pj += (uint64_t)power->idle_mw_per_sm * power->n_sms * (end - alone_from);
		n->active_until[gpu] = end;
	}
	n->misses += end > task->first_release + task->deadline;
	n->waiting &= ~(1u << job);
	n->running[n->n_running].gpu = gpu;
	n->running[n->n_running].n_sms = m;
	n->running[n->n_running++].end = end;
}

static void advance(struct node *n, nsec_t to) {
	size_t left = 0;

	for (size_t i = 0; i < n->n_running; i++) {
		if (n->running[i].end > to) {
			n->running[left++] = n->running[i];
		}
	}
	n->n_running = left;
	n->now = to;
}

/* All that can follow. At one moment jobs start by number, from @from on: the order in which they
 * are named makes no difference. */
static void explore(struct search *s, const struct node *n, size_t from) {
	struct optimum_value least = bound(s, n);
	nsec_t next = next_event(s, n);

	if (!is_better(&least, &s->best)) {
		return;
	}
	for (size_t i = from; i < s->c->n_jobs; i++) {
		if (!(n->waiting >> i & 1) || s->c->tasks[i].first_release > n->now) {
			continue;
		}
		for (unsigned k = 0; k < s->c->n_gpus; k++) {
			for (unsigned m = room(s, n, k); m > 0; m--) {
				struct node after = *n;

				start(s, &after, i, k, m);
				explore(s, &after, i + 1);
			}
		}
	}
	if (next < UINT64_MAX) {
		struct node after = *n;

		advance(&after, next);
		explore(s, &after, 0);
		return;
	}
	/* nothing comes any more: what still waits never runs */
	least.misses = n->misses + (unsigned)__builtin_popcount(n->waiting);
	least.energy_pj = n->energy_pj;
	if (is_better(&least, &s->best)) {
		s->best = least;
	}
}

struct optimum_value optimum_search(const struct optimum_case *c) {
	struct search s = {.c = c, .best = {UINT32_MAX, UINT64_MAX}};
	struct node root = {.waiting = (1u << c->n_jobs) - 1};

	for (size_t i = 0; i < c->n_jobs; i++) {
		s.least_pj[i] = UINT64_MAX;
		s.fastest[i] = UINT64_MAX;
		for (unsigned k = 0; k < c->n_gpus; k++) {
			const struct profile_table *p = &c->profiles[i][k];

			for (unsigned m = 1; m <= c->gpus[k].limit; m++) {
				nsec_t t = profile_total(p, m);
				uint64_t own = p->power_mw[m] -
					       (uint64_t)c->gpus[k].power.idle_mw_per_sm * m;

				s.fastest[i] = t < s.fastest[i] ? t : s.fastest[i];
				s.least_pj[i] = own * t < s.least_pj[i] ? own * t : s.least_pj[i];
			}
		}
	}
	explore(&s, &root, 0);
	return s.best;
}

int optimum_policy(const struct optimum_case *c, const struct sched_policy *policy,
		   struct optimum_value *ret) {
	struct sim_setup setup = {
		.arbiter = &sim_grants,
		.gpus = c->gpus,
		.n_gpus = c->n_gpus,
		.tasks = c->tasks,
		.n_tasks = c->n_jobs,
		.policy = policy,
		.duration = c->duration,
	};
	struct sim_result result;
	int r;

	sched_params_default(&setup.params);
	/* as the search has it, whatever the policy */
	setup.params.jobs_per_gpu = SCHED_SLOTS_MIN;
	setup.params.power = SCHED_POWER_HELD;
	r = sim_run(&setup, &result);
	if (r < 0) {
		return r;
	}
	ret->misses = (unsigned)result.count.missed;
	ret->energy_pj = result.energy_total_pj;
	for (size_t k = 0; k < c->n_gpus; k++) {
		ret->energy_pj -= (uint64_t)c->gpus[k].power.static_mw * c->duration;
	}
	sim_result_deinit(&result);
	return 0;
}
