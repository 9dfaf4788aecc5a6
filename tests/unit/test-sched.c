/*
 * test-sched.c: the scheduling core and its policies: single decisions, and random histories whose
 * every step must keep the rules.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/ready.h"
#include "daemon/core/sched.h"

static struct sched *make(const char *policy, const unsigned *sms, size_t n,
			  enum sched_sharing sharing) {
	struct sched *s;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), 64), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sched_add_gpu(s, sms[i], sharing), i);
	}
	return s;
}

static struct sched *make_one(const char *policy, unsigned sms, enum sched_sharing sharing) {
	return make(policy, &sms, 1, sharing);
}

static sched_job_id arrive(struct sched *s, uint64_t owner, int gpu, bool divisible) {
	struct sched_job job = {
		.task = SCHED_TASK_NONE, .owner = owner, .gpu_wanted = gpu, .divisible = divisible};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

/* Decides; expects exactly these grants, in this order. */
static void expect_grants(struct sched *s, size_t n, ...) {
	struct sched_actions actions;
	va_list args;

	sched_decide(s, 1, &actions);
	assert_int_equal(actions.n, n);
	va_start(args, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(actions.list[i].kind, SCHED_ACTION_GRANT);
		assert_int_equal(actions.list[i].job, va_arg(args, sched_job_id));
	}
	va_end(args);
	sched_decide(s, 2, &actions);
	assert_int_equal(actions.n, 0);
}

static void expect_sms(const struct sched *s, sched_job_id id, int gpu, const char *expected) {
	const struct sched_job *job = sched_job(s, id);
	char text[SMSET_TEXT_MAX];

	assert_non_null(job);
	assert_int_equal(job->state, SCHED_JOB_RUNNING);
	assert_int_equal(job->gpu, gpu);
	smset_print(&job->sms, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void sched_refuses_what_it_cannot_hold(void **state) {
	struct sched_job job = {.task = SCHED_TASK_NONE, .gpu_wanted = 1};
	struct sched *s;
	sched_job_id id = 77;

	assert_int_equal(sched_new(&s, NULL, 1), -EINVAL);
	assert_int_equal(sched_new(&s, sched_policy_find("even"), 0), -EINVAL);
	assert_null(sched_policy_find("none"));
	s = make_one("even", 8, SCHED_SHARING_MPS);
	assert_int_equal(sched_add_gpu(s, 0, SCHED_SHARING_MPS), -EINVAL);
	assert_int_equal(sched_add_gpu(s, 257, SCHED_SHARING_MPS), -EINVAL);
	assert_int_equal(sched_add_gpu(s, 8, _SCHED_SHARING_N), -EINVAL);
	for (int i = 1; i < SCHED_GPUS_MAX; i++) {
		assert_int_equal(sched_add_gpu(s, 256, SCHED_SHARING_MPS), i);
	}
	assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), -ENOSPC);
	job.gpu_wanted = SCHED_GPUS_MAX;
	assert_int_equal(sched_arrive(s, &job, &id), -EINVAL);
	job.gpu_wanted = 0;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(sched_arrive(s, &job, &id), 0);
	}
	id = 77;
	assert_int_equal(sched_arrive(s, &job, &id), -ENOSPC);
	assert_int_equal(id, 77);
	sched_finish(s, 5, 0, false);
	assert_null(sched_job(s, 5));
	assert_null(sched_job(s, SCHED_JOB_NONE));
	assert_int_equal(sched_arrive(s, &job, &id), 0);
	assert_int_equal(id, 5);
	assert_null(sched_free(s));
	assert_null(sched_free(NULL));
}

static void fcfs_gives_the_whole_gpu_in_order(void **state) {
	struct sched *s = make_one("fcfs", 5, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, -1, true);
	sched_job_id c = arrive(s, 1, 0, false);

	expect_grants(s, 1, a);
	expect_sms(s, a, 0, "0-4");
	sched_finish(s, b, 0, false); /* cancelled */
	expect_grants(s, 0);
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, c);
	expect_sms(s, c, 0, "0-4");
	sched_free(s);
}

static void fcfs_does_not_let_one_gpu_hold_up_another(void **state) {
	struct sched *s = make("fcfs", (unsigned[]){4, 6}, 2, SCHED_SHARING_EXCLUSIVE);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 1, 0, true);
	sched_job_id c = arrive(s, 2, 1, true), d = arrive(s, 3, -1, true);

	expect_grants(s, 2, a, c);
	expect_sms(s, c, 1, "0-5");
	sched_finish(s, c, 0, false);
	expect_grants(s, 1, d);
	expect_sms(s, d, 1, "0-5");
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, b);
	sched_free(s);
}

static void even_splits_in_halves(void **state) {
	struct sched *s = make_one("even", 5, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true);
	sched_job_id c = arrive(s, 3, 0, true);

	expect_grants(s, 2, a, b);
	expect_sms(s, a, 0, "0-1");
	expect_sms(s, b, 0, "2-4");
	sched_finish(s, b, 0, false);
	expect_grants(s, 1, c);
	expect_sms(s, c, 0, "2-4");
	sched_free(s);
}

static void even_does_not_split_a_single_sm(void **state) {
	struct sched *s = make_one("even", 1, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true);

	expect_grants(s, 1, a);
	expect_sms(s, a, 0, "0");
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, b);
	sched_free(s);
}

static void even_lets_one_owner_at_a_time_on_an_exclusive_gpu(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_EXCLUSIVE);
	sched_job_id a1 = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true);
	sched_job_id a2 = arrive(s, 1, 0, true), a3 = arrive(s, 1, 0, true);

	/* a2 would fit beside a1, but then owner 1 could keep owner 2 out for ever. */
	expect_grants(s, 1, a1);
	sched_finish(s, a1, 0, false);
	expect_grants(s, 1, b);
	sched_finish(s, b, 0, false);
	expect_grants(s, 2, a2, a3);
	expect_sms(s, a2, 0, "0-3");
	expect_sms(s, a3, 0, "4-7");
	sched_free(s);
}

/* And it is not kept out by those that share. */
static void even_runs_a_job_apart_alone_on_a_shared_gpu(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), apart = arrive(s, 2, 0, true);
	sched_job_id b = arrive(s, 3, 0, true), c = arrive(s, 4, 0, true);

	sched_set_apart(s, apart, 1, true);
	expect_grants(s, 1, a);
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, apart);
	expect_grants(s, 0);
	sched_finish(s, apart, 0, false);
	expect_grants(s, 2, b, c);
	sched_free(s);
}

static void even_follows_the_sharing(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_EXCLUSIVE);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true), c;

	expect_grants(s, 1, a);
	sched_set_sharing(s, 0, SCHED_SHARING_MPS);
	expect_grants(s, 1, b);
	sched_set_sharing(s, 0, SCHED_SHARING_EXCLUSIVE);
	sched_finish(s, a, 0, false);
	c = arrive(s, 1, 0, true);
	expect_grants(s, 0);
	sched_finish(s, b, 0, false);
	expect_grants(s, 1, c);
	sched_free(s);
}

static void even_does_not_starve_a_job_that_needs_all(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true);
	sched_job_id whole = arrive(s, 3, 0, false), late = arrive(s, 4, 0, true);

	expect_grants(s, 2, a, b);
	sched_finish(s, a, 0, false);
	expect_grants(s, 0); /* the GPU drains for it */
	sched_finish(s, b, 0, false);
	expect_grants(s, 1, whole);
	expect_sms(s, whole, 0, "0-7");
	sched_finish(s, whole, 0, false);
	expect_grants(s, 1, late);
	sched_free(s);
}

static void even_goes_on_when_the_one_that_needs_all_leaves(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), whole, late;

	expect_grants(s, 1, a);
	whole = arrive(s, 2, 0, false);
	late = arrive(s, 3, 0, true);
	expect_grants(s, 0);
	sched_finish(s, whole, 0, false); /* its process died */
	expect_grants(s, 1, late);
	sched_free(s);
}

/* Who wants more than half is alone, and waits for that without being passed. */
static void even_gives_more_than_half_to_who_needs_it(void **state) {
	struct sched *s = make_one("even", 8, SCHED_SHARING_MPS);
	struct sched_job big = {.task = SCHED_TASK_NONE,
				.owner = 2,
				.gpu_wanted = 0,
				.divisible = true,
				.spec.min_sms = 5};
	sched_job_id a = arrive(s, 1, 0, true), b, c;

	expect_grants(s, 1, a);
	assert_int_equal(sched_arrive(s, &big, &b), 0);
	c = arrive(s, 3, 0, true);
	expect_grants(s, 0);
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, b);
	expect_sms(s, b, 0, "0-7");
	sched_finish(s, b, 0, false);
	expect_grants(s, 1, c);
	expect_sms(s, c, 0, "0-3");
	sched_free(s);
}

static void even_drains_one_gpu_only(void **state) {
	struct sched *s = make("even", (unsigned[]){8, 8}, 2, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 1, 1, true), whole, late;

	expect_grants(s, 2, a, b);
	whole = arrive(s, 2, -1, false);
	late = arrive(s, 3, -1, true);
	expect_grants(s, 1, late);
	expect_sms(s, late, 1, "4-7");
	sched_finish(s, a, 0, false);
	expect_grants(s, 1, whole);
	expect_sms(s, whole, 0, "0-7");
	sched_free(s);
}

static void sched_keeps_its_books_when_the_policy_changes(void **state) {
	struct sched *s = make_one("fcfs", 8, SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 0, true), b = arrive(s, 2, 0, true);
	sched_job_id c = arrive(s, 3, 0, true);

	expect_grants(s, 1, a);
	sched_set_policy(s, sched_policy_find("even"));
	assert_string_equal(sched_get_policy(s)->name, "even");
	expect_grants(s, 0); /* slot 1 is free, its SMs are not */
	sched_finish(s, a, 0, false);
	expect_grants(s, 2, b, c);
	sched_set_policy(s, sched_policy_find("fcfs"));
	sched_finish(s, b, 0, false);
	a = arrive(s, 1, 0, true);
	expect_grants(s, 0);
	sched_finish(s, c, 0, false);
	expect_grants(s, 1, a);
	sched_free(s);
}

/* --- random histories ----------------------------------------------------------------------- */

#define GPUS	   3
#define OWNERS	   5
#define JOBS	   40
#define STEPS	   4000
#define LENGTH_MAX 12 /* steps that a job runs at most */
#define SEEDS	   25

/* splitmix64 (Steele, Lea, Flood 2014): a few lines, the same everywhere. */
static uint64_t next_random(uint64_t *seed) {
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned below(uint64_t *seed, unsigned n) {
	return (unsigned)(next_random(seed) % n);
}

/* What the test itself knows of each job. */
struct known {
	enum sched_job_state state;
	uint64_t owner, arrival;
	int gpu_wanted;
	bool divisible;
	unsigned since;	 /* step of the arrival, then of the grant */
	unsigned length; /* steps that it will run */
	unsigned ahead;	 /* jobs in the system when it arrived */
	bool realtime;
};

struct history {
	struct sched *s;
	uint64_t seed;
	struct known jobs[JOBS];
	unsigned n_jobs, step;
	uint64_t arrivals;
	uint64_t digest; /* of all actions, in order */
	bool by_arrival; /* the policy lets nobody overtake */
};

static void check_gpu(const struct history *h, size_t index) {
	const struct sched_gpu *gpu = sched_gpu(h->s, index);
	struct smset all = smset_range(0, gpu->n_sms), used = SMSET_EMPTY;
	uint64_t owner = 0;
	unsigned n_running = 0, n_in_slots = 0;

	for (sched_job_id id = 0; id < JOBS; id++) {
		const struct sched_job *job = sched_job(h->s, id);

		assert_int_equal(job ? job->state : SCHED_JOB_FREE, h->jobs[id].state);
		if (!job || job->state != SCHED_JOB_RUNNING || job->gpu != (int)index) {
			continue;
		}
		assert_false(smset_empty(&job->sms));
		assert_true(smset_within(&job->sms, &all));
		assert_true(smset_disjoint(&job->sms, &used));
		assert_true(job->divisible || smset_equal(&job->sms, &all));
		assert_true(job->gpu_wanted < 0 || job->gpu_wanted == (int)index);
		assert_int_equal(gpu->slots[job->slot], id);
		assert_true(gpu->sharing == SCHED_SHARING_MPS || n_running == 0 ||
			    job->owner == owner);
		used = smset_or(&used, &job->sms);
		owner = job->owner;
		n_running++;
	}
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		n_in_slots += gpu->slots[i] != SCHED_JOB_NONE;
	}
	assert_int_equal(n_running, n_in_slots);
	used = smset_minus(&all, &used);
	assert_true(smset_equal(&used, &gpu->free));
}

/* An idle GPU has nobody who waits for it, and nobody waits for ever. */
static void check_waiting(const struct history *h, size_t index) {
	const struct sched_gpu *gpu = sched_gpu(h->s, index);

	for (size_t i = 0; i < JOBS; i++) {
		const struct known *job = &h->jobs[i];

		if (job->state == SCHED_JOB_WAITING) {
			assert_true(smset_count(&gpu->free) < gpu->n_sms ||
				    (job->gpu_wanted >= 0 && job->gpu_wanted != (int)index));
			assert_true(!h->by_arrival ||
				    h->step - job->since <= (job->ahead + GPUS + 1) * LENGTH_MAX);
		}
	}
}

/* Nobody who came later got the GPU that an earlier job of the same owner, or a real-time one,
 * still waits for. */
static void check_order(const struct history *h, const struct known *granted, int gpu) {
	for (size_t i = 0; i < JOBS; i++) {
		const struct known *job = &h->jobs[i];

		assert_false(job->state == SCHED_JOB_WAITING && job->gpu_wanted == gpu &&
			     job->arrival < granted->arrival &&
			     (job->owner == granted->owner || job->realtime));
	}
}

/* Parts of a GPU that comes in groups have each group or none of it. */
static void check_groups(const struct history *h, const struct sched_job *job) {
	const struct sched_gpu *gpu = sched_gpu(h->s, (size_t)job->gpu);
	const struct sched_gpu_model *model = &gpu->model;

	for (unsigned first = 0; model->last_group > 0 && first < gpu->n_sms;) {
		bool last = first + model->last_group == gpu->n_sms;
		struct smset group = smset_range(first, last ? model->last_group : model->step);

		assert_true(smset_within(&group, &job->sms) || smset_disjoint(&group, &job->sms));
		first += smset_count(&group);
	}
}

/* A job that comes in groups has one more than it wants at most, and the last may be larger. */
static void check_bounds(const struct history *h, const struct sched_job *job) {
	const struct sched_gpu_model *model = &sched_gpu(h->s, (size_t)job->gpu)->model;
	unsigned n = smset_count(&job->sms);
	unsigned more = model->last_group > 0 ? model->last_group : model->step;

	if (job->divisible) {
		assert_true(job->spec.max_sms == 0 || n < job->spec.max_sms + more);
		assert_true(n >= job->spec.min_sms || n >= model->limit ||
			    (job->spec.max_sms > 0 && n + model->step > job->spec.max_sms));
	}
}

static void decide(struct history *h) {
	struct sched_actions actions;

	sched_decide(h->s, h->step, &actions);
	for (size_t i = 0; i < actions.n; i++) {
		sched_job_id id = actions.list[i].job;
		struct known *job = &h->jobs[id];

		assert_int_equal(actions.list[i].kind, SCHED_ACTION_GRANT);
		assert_int_equal(job->state, SCHED_JOB_WAITING); /* so never granted twice */
		job->state = SCHED_JOB_RUNNING;
		job->since = h->step;
		if (h->by_arrival) {
			check_order(h, job, sched_job(h->s, id)->gpu);
		}
		assert_int_equal(sched_job(h->s, id)->granted, h->step);
		check_groups(h, sched_job(h->s, id));
		check_bounds(h, sched_job(h->s, id));
		h->digest = (h->digest ^ id ^ (uint64_t)sched_job(h->s, id)->gpu << 8 ^
			     sched_job(h->s, id)->sms.words[0] << 16 ^ h->step) *
			    0x100000001b3;
	}
	for (size_t i = 0; i < GPUS; i++) {
		check_gpu(h, i);
		check_waiting(h, i);
	}
}

static void random_arrival(struct history *h) {
	struct sched_job job = {
		.task = SCHED_TASK_NONE,
		.owner = 1 + below(&h->seed, OWNERS),
		.gpu_wanted = (int)below(&h->seed, GPUS + 1) - 1,
		.divisible = below(&h->seed, 4) > 0,
		.spec.min_sms = below(&h->seed, 3) ? 0 : below(&h->seed, 70),
		.spec.max_sms = below(&h->seed, 3) ? 0 : below(&h->seed, 70),
		.job_class = (enum sched_class)below(&h->seed, 2),
		.spec.priority = (int)below(&h->seed, 21) - 10,
		.deadline = below(&h->seed, 100),
	};
	unsigned length = 1 + below(&h->seed, LENGTH_MAX);
	sched_job_id id;
	int r = sched_arrive(h->s, &job, &id);

	assert_int_equal(r, h->n_jobs == JOBS ? -ENOSPC : 0);
	if (r == 0) {
		assert_int_equal(h->jobs[id].state, SCHED_JOB_FREE);
		h->jobs[id] = (struct known){SCHED_JOB_WAITING,
					     job.owner,
					     h->arrivals++,
					     job.gpu_wanted,
					     job.divisible,
					     h->step,
					     length,
					     h->n_jobs,
					     job.job_class == SCHED_CLASS_REALTIME};
		h->n_jobs++;
	}
}

static void end_job(struct history *h, sched_job_id id) {
	sched_finish(h->s, id, 0, false);
	h->jobs[id].state = SCHED_JOB_FREE;
	h->n_jobs--;
}

static void random_step(struct history *h) {
	h->step++;
	for (sched_job_id id = 0; id < JOBS; id++) {
		struct known *job = &h->jobs[id];

		if ((job->state == SCHED_JOB_RUNNING && h->step - job->since >= job->length) ||
		    (job->state != SCHED_JOB_FREE && below(&h->seed, 200) == 0)) {
			end_job(h, id);
		}
	}
	for (unsigned n = below(&h->seed, 4); n > 0; n--) {
		random_arrival(h);
	}
}

/* Some of the GPUs: 1 to 8 SMs a group, the last one takes what is left over, and more. */
static void divide_into_groups(struct history *h) {
	for (size_t i = 0; i < GPUS; i++) {
		struct sched_gpu_model model = sched_gpu(h->s, i)->model;
		unsigned n = sched_gpu(h->s, i)->n_sms;

		model.step = 1 + below(&h->seed, 8);
		model.last_group = model.step + n % model.step;
		if (below(&h->seed, 2) == 0 && n >= 4 * model.step) {
			assert_int_equal(sched_set_gpu_model(h->s, i, &model), 0);
		}
	}
}

/* @switching: between policies, all the time. Returns a digest of all decisions. */
static uint64_t run_history(const char *policy, uint64_t seed, bool switching) {
	struct history h = {.seed = seed};

	h.by_arrival = strcmp(policy, "even") == 0 || strcmp(policy, "fcfs") == 0;

	assert_int_equal(sched_new(&h.s, sched_policy_find(policy), JOBS), 0);
	for (int i = 0; i < GPUS; i++) {
		assert_int_equal(sched_add_gpu(h.s, 1 + below(&h.seed, i == 0 ? 256 : 9),
					       (enum sched_sharing)below(&h.seed, 2)),
				 i);
	}
	divide_into_groups(&h);
	while (h.step < STEPS) {
		random_step(&h);
		if (switching && below(&h.seed, 10) == 0) {
			sched_set_policy(h.s,
					 sched_policy_find(below(&h.seed, 2) ? "even" : "fcfs"));
		}
		decide(&h);
	}
	assert_true(h.arrivals > STEPS / 4); /* the history was no idle one */
	sched_free(h.s);
	return h.digest;
}

static void random_histories_keep_the_rules(void **state) {
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		for (size_t i = 0; sched_policies()[i]; i++) {
			const char *name = sched_policies()[i]->name;

			run_history(name, seed, false);
		}
		run_history("even", seed, true);
		run_history("fcfs", seed, true);
	}
}

static void same_history_same_decisions(void **state) {
	uint64_t even = run_history("even", 99, false);

	assert_true(even == run_history("even", 99, false));
	assert_true(even != run_history("even", 98, false));
	assert_true(even != run_history("fcfs", 99, false));
}

/* Owner 1 asks for many jobs; the others come later, and are served in turn all the same. */
static void sched_lets_best_effort_owners_take_turns(void **state) {
	static const char *const policies[] = {"fcfs", "even", "lookahead"};
	static const uint64_t expected[] = {1, 1, 2, 3, 1, 3, 1, 1};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct sched *s = make_one(policies[i], 8, SCHED_SHARING_MPS);
		sched_job_id running = arrive(s, 1, 0, false);
		struct sched_actions actions;

		sched_decide(s, 1, &actions);
		assert_int_equal(actions.n, 1);
		for (size_t k = 0; k < 20; k++) {
			arrive(s, 1, 0, false);
		}
		arrive(s, 2, 0, false);
		arrive(s, 3, 0, false);
		arrive(s, 3, 0, false);
		for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++) {
			assert_int_equal(sched_job(s, running)->owner, expected[k]);
			sched_finish(s, running, 0, false);
			sched_decide(s, 2 + k, &actions);
			assert_int_equal(actions.n, 1);
			running = actions.list[0].job;
		}
		sched_free(s);
	}
}

/* Who has been served long ago has saved up nothing. */
static void sched_gives_no_credit_for_idle_time(void **state) {
	static const uint64_t expected[] = {2, 1, 2, 1, 2, 2};
	struct sched *s = make_one("fcfs", 8, SCHED_SHARING_MPS);
	sched_job_id running = arrive(s, 1, 0, false);
	struct sched_actions actions;

	for (size_t k = 0; k < 9; k++) {
		arrive(s, 1, 0, false);
	}
	sched_decide(s, 1, &actions);
	for (size_t k = 0; k < 7; k++) { /* seven are done, one runs, two wait */
		sched_finish(s, running, 0, false);
		sched_decide(s, 2 + k, &actions);
		running = actions.list[0].job;
	}
	for (size_t k = 0; k < 4; k++) {
		arrive(s, 2, 0, false);
	}
	for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++) {
		sched_finish(s, running, 0, false);
		sched_decide(s, 20 + k, &actions);
		assert_int_equal(actions.n, 1);
		running = actions.list[0].job;
		assert_int_equal(sched_job(s, running)->owner, expected[k]);
	}
	sched_free(s);
}

/* Nobody overtakes a real-time job by taking turns. */
static void sched_keeps_real_time_jobs_in_their_place(void **state) {
	struct sched *s = make_one("fcfs", 8, SCHED_SHARING_MPS);
	struct sched_job urgent = {.task = SCHED_TASK_NONE,
				   .owner = 9,
				   .gpu_wanted = 0,
				   .job_class = SCHED_CLASS_REALTIME};
	static const uint64_t expected[] = {1, 1, 9, 2};
	struct sched_actions actions;
	sched_job_id id;

	arrive(s, 1, 0, false);
	arrive(s, 1, 0, false);
	assert_int_equal(sched_arrive(s, &urgent, &id), 0);
	arrive(s, 2, 0, false);
	for (size_t k = 0; k < 4; k++) {
		sched_decide(s, 1 + k, &actions);
		assert_int_equal(actions.n, 1);
		assert_int_equal(sched_job(s, actions.list[0].job)->owner, expected[k]);
		sched_finish(s, actions.list[0].job, 0, false);
	}
	sched_free(s);
}

static sched_task_id add_task(struct sched *s, const struct profile_table *profile, nsec_t period,
			      nsec_t deadline, nsec_t first_release) {
	struct sched_task task = {.period = period,
				  .deadline = deadline,
				  .first_release = first_release,
				  .profiles = {profile},
				  .fixed_gpu = -1};
	sched_task_id id;

	assert_int_equal(sched_add_task(s, &task, &id), 0);
	return id;
}

static sched_job_id release(struct sched *s, sched_task_id task, unsigned min_sms, nsec_t now) {
	struct sched_job job = {.task = task,
				.owner = task + 1,
				.gpu_wanted = 0,
				.divisible = min_sms < 8,
				.spec.min_sms = min_sms,
				.job_class = SCHED_CLASS_REALTIME,
				.release = now,
				.deadline = now + sched_task(s, task)->deadline};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

/* As live: no job is ever given up. Of 8 SMs; a long job of 10 s may take 30 s, and a short one of
 * 1 s has 2 s and is expected after 1 s. */
static struct sched *make_long_and_short(const char *policy, struct profile_table tables[static 2],
					 sched_task_id *ret_long, sched_task_id *ret_short) {
	struct sched *s = make_one(policy, 8, SCHED_SHARING_MPS);
	struct sched_params params;

	sched_params_default(&params);
	params.skip_hopeless = false;
	assert_int_equal(sched_set_params(s, &params), 0);
	assert_int_equal(profile_table_linear(&tables[0], 8, 0, 0, 80 * NSEC_PER_SEC, 1000), 0);
	assert_int_equal(profile_table_linear(&tables[1], 8, 0, 0, 8 * NSEC_PER_SEC, 1000), 0);
	*ret_long = add_task(s, &tables[0], 1000 * NSEC_PER_SEC, 30 * NSEC_PER_SEC, NSEC_PER_SEC);
	*ret_short =
		add_task(s, &tables[1], 1000 * NSEC_PER_SEC, 2 * NSEC_PER_SEC, 2 * NSEC_PER_SEC);
	return s;
}

static void nobody_looks_again_while_nothing_can_start(void **state) {
	static const char *const policies[] = {"sbeet", "sbeet-mg", "lookahead", "even", "fcfs"};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct sched_actions actions;
		struct profile_table tables[2];
		sched_task_id long_task, short_task;
		struct sched *s = make_long_and_short(policies[i], tables, &long_task, &short_task);
		sched_job_id first = release(s, short_task, 8, NSEC_PER_SEC), second;

		sched_decide(s, NSEC_PER_SEC, &actions);
		assert_int_equal(sched_job(s, first)->state, SCHED_JOB_RUNNING);
		second = release(s, long_task, 4, NSEC_PER_SEC);
		sched_decide(s, NSEC_PER_SEC, &actions);
		assert_int_equal(sched_job(s, second)->state, SCHED_JOB_WAITING);
		assert_int_equal(sched_next_look(s), 0);
		sched_free(s);
	}
}

/* The next release, or if that is overdue an eighth of the time that is left, and no longer than
 * that. */
static void jobs_held_back_are_looked_at_in_time(void **state) {
	struct profile_table tables[2];
	sched_task_id long_task, short_task;
	struct sched *s = make_long_and_short("sbeet", tables, &long_task, &short_task);
	struct sched_actions actions;
	sched_job_id held;

	release(s, short_task, 8, NSEC_PER_SEC);
	sched_decide(s, NSEC_PER_SEC, &actions);
	held = release(s, long_task, 4, NSEC_PER_SEC); /* to be over at 31 s, and takes 10 s */
	ready_hold_back(s, held, NSEC_PER_SEC);
	assert_int_equal(sched_next_look(s), 21 * NSEC_PER_SEC);
	add_task(s, &tables[1], 1000 * NSEC_PER_SEC, 2 * NSEC_PER_SEC, 5 * NSEC_PER_SEC);
	ready_hold_back(s, held, NSEC_PER_SEC);
	assert_int_equal(sched_next_look(s), 5 * NSEC_PER_SEC);
	sched_decide(s, 5 * NSEC_PER_SEC, &actions);
	assert_int_equal(sched_next_look(s), 0);
	ready_hold_back(s, held, 5 * NSEC_PER_SEC);
	assert_int_equal(sched_next_look(s), 7 * NSEC_PER_SEC);
	sched_decide(s, 21 * NSEC_PER_SEC, &actions);
	ready_hold_back(s, held, 21 * NSEC_PER_SEC);
	assert_int_equal(sched_next_look(s), 21 * NSEC_PER_SEC + NSEC_PER_MSEC);
	sched_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sched_lets_best_effort_owners_take_turns),
		cmocka_unit_test(sched_gives_no_credit_for_idle_time),
		cmocka_unit_test(sched_keeps_real_time_jobs_in_their_place),
		cmocka_unit_test(sched_refuses_what_it_cannot_hold),
		cmocka_unit_test(fcfs_gives_the_whole_gpu_in_order),
		cmocka_unit_test(fcfs_does_not_let_one_gpu_hold_up_another),
		cmocka_unit_test(even_splits_in_halves),
		cmocka_unit_test(even_does_not_split_a_single_sm),
		cmocka_unit_test(even_lets_one_owner_at_a_time_on_an_exclusive_gpu),
		cmocka_unit_test(even_runs_a_job_apart_alone_on_a_shared_gpu),
		cmocka_unit_test(even_follows_the_sharing),
		cmocka_unit_test(even_does_not_starve_a_job_that_needs_all),
		cmocka_unit_test(even_goes_on_when_the_one_that_needs_all_leaves),
		cmocka_unit_test(even_gives_more_than_half_to_who_needs_it),
		cmocka_unit_test(even_drains_one_gpu_only),
		cmocka_unit_test(sched_keeps_its_books_when_the_policy_changes),
		cmocka_unit_test(nobody_looks_again_while_nothing_can_start),
		cmocka_unit_test(jobs_held_back_are_looked_at_in_time),
		cmocka_unit_test(random_histories_keep_the_rules),
		cmocka_unit_test(same_history_same_decisions),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
