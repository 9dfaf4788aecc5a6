/*
 * test-explain.c: what the core tells of its decisions, under every policy, and that telling
 * changes none of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/explain.h"
#include "daemon/sim/grants.h"

#define MS NSEC_PER_MSEC

static struct profile_table big, small;

static struct sched *make(const char *policy, size_t n) {
	const struct sched_gpu_model model = {
		.power = {.n_sms = 8, .static_mw = 10000, .idle_mw_per_sm = 500},
		.limit = 8,
		.step = 1};
	struct sched *s;

	assert_int_equal(profile_table_linear(&big, 8, 0, 0, 80 * MS, 1000), 0);
	assert_int_equal(profile_table_linear(&small, 8, 0, 0, 16 * MS, 1000), 0);
	assert_int_equal(sched_new(&s, sched_policy_find(policy), 64), 0);
	assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	assert_int_equal(sched_set_explain(s, n), 0);
	return s;
}

static sched_task_id add_task(struct sched *s, const struct profile_table *profile,
			      nsec_t deadline) {
	struct sched_task task = {.period = 10 * deadline,
				  .deadline = deadline,
				  .first_release = 10000 * MS,
				  .profiles = {profile},
				  .fixed_gpu = -1};
	sched_task_id id;

	assert_int_equal(sched_add_task(s, &task, &id), 0);
	sched_distribute(s);
	return id;
}

static sched_job_id arrive(struct sched *s, sched_task_id task, uint64_t tag, nsec_t now,
			   nsec_t deadline) {
	struct sched_job job = {.task = task,
				.owner = tag,
				.gpu_wanted = -1,
				.divisible = true,
				.release = now,
				.deadline = deadline ? now + deadline : 0,
				.tag = tag,
				.label = "name"};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

static size_t decide(struct sched *s, nsec_t now) {
	struct sched_actions actions;

	sched_decide(s, now, &actions);
	return actions.n;
}

static const struct explain_entry *newest(const struct sched *s) {
	const struct explain *e = sched_explain(s);

	assert_true(explain_count(e) > 0);
	return explain_get(e, explain_count(e) - 1);
}

static const struct explain_try *chosen(const struct explain_entry *e) {
	const struct explain_try *found = NULL;

	for (size_t i = 0; i < e->n_tries; i++) {
		if (e->tries[i].chosen) {
			assert_null(found);
			found = &e->tries[i];
		}
	}
	return found;
}

static void explain_names_all_reasons(void **state) {
	for (enum explain_reason r = EXPLAIN_NONE; r < _EXPLAIN_REASON_N; r++) {
		assert_non_null(explain_reason_name(r));
		assert_non_null(explain_reason_text(r));
		for (enum explain_reason q = EXPLAIN_NONE; q < r; q++) {
			assert_string_not_equal(explain_reason_name(r), explain_reason_name(q));
		}
	}
}

static void explain_tells_what_sbeet_compared(void **state) {
	struct sched *s = make("sbeet", 8);
	sched_task_id a = add_task(s, &big, 1000 * MS);
	sched_job_id id = arrive(s, a, 7, 5 * MS, 1000 * MS);
	const struct explain_entry *e;
	const struct explain_try *t;

	assert_int_equal(decide(s, 6 * MS), 1);
	e = newest(s);
	assert_int_equal(e->tag, 7);
	assert_string_equal(e->label, "name");
	assert_string_equal(e->policy, "sbeet");
	assert_int_equal(e->last, 6 * MS);
	assert_int_equal(e->reason, EXPLAIN_START_CHEAPEST);
	assert_int_equal(e->gpu, 0);
	assert_int_equal(e->n_tries, 8); /* each SM count */
	t = chosen(e);
	assert_non_null(t);
	assert_int_equal(t->n_sms, smset_count(&e->sms));
	assert_int_equal(t->finish, e->finish);
	assert_true(t->feasible);
	for (size_t i = 0; i < e->n_tries; i++) {
		assert_int_equal(e->tries[i].finish,
				 6 * MS + profile_total(&big, e->tries[i].n_sms));
		assert_true(e->tries[i].energy_pj >= t->energy_pj);
	}
	sched_finish(s, id, 50 * MS, true);
	assert_int_equal(newest(s)->ended, 50 * MS);
	assert_true(newest(s)->completed);
	sched_free(s);
}

/* The long job leaves room, on which the short one would make nobody late: yet there is no slot. */
static void explain_tells_why_a_job_waits(void **state) {
	struct sched *s = make("fcfs", 8);
	sched_task_id a = add_task(s, &big, 1000 * MS);

	arrive(s, a, 1, 0, 1000 * MS);
	arrive(s, a, 2, 0, 1000 * MS);
	assert_int_equal(decide(s, 0), 1);
	assert_int_equal(newest(s)->tag, 2);
	assert_int_equal(newest(s)->gpu, -1);
	assert_int_equal(newest(s)->reason, EXPLAIN_WAIT_FULL);
	assert_null(chosen(newest(s)));
	sched_free(s);
}

static void explain_tells_of_a_drained_gpu(void **state) {
	struct sched *s = make("fcfs", 8);

	sched_drain_gpu(s, 0, true);
	arrive(s, SCHED_TASK_NONE, 1, 0, 0);
	assert_int_equal(decide(s, 0), 0);
	assert_int_equal(newest(s)->reason, EXPLAIN_WAIT_DRAINED);
	/* Drained or not, a GPU in use by another process is what this job waits for. */
	assert_int_equal(sched_add_gpu(s, 4, SCHED_SHARING_EXCLUSIVE), 1);
	assert_int_equal(decide(s, 1), 1);
	arrive(s, SCHED_TASK_NONE, 2, 2, 0);
	assert_int_equal(decide(s, 2), 0);
	assert_int_equal(newest(s)->tag, 2);
	assert_int_equal(newest(s)->reason, EXPLAIN_WAIT_OWNER);
	sched_drain_gpu(s, 0, false);
	assert_int_equal(decide(s, 3), 1);
	assert_int_equal(newest(s)->reason, EXPLAIN_START_NEXT);
	sched_free(s);
}

/* The scheduler keeps the GPU for a job that has waited too long. No admin drained it. */
static void explain_tells_a_kept_gpu_from_a_drained_one(void **state) {
	struct sched *s = make("lookahead", 8);
	struct sched_job whole = {.owner = 2, .gpu_wanted = -1, .deadline = 100 * MS, .tag = 2};
	struct sched_params params = *sched_get_params(s);
	sched_job_id id;

	params.max_wait = 1;
	assert_int_equal(sched_set_params(s, &params), 0);
	whole.task = add_task(s, &big, 100 * MS);
	arrive(s, SCHED_TASK_NONE, 1, 0, 0);
	assert_int_equal(decide(s, 0), 1); /* on half of the GPU */
	assert_int_equal(sched_arrive(s, &whole, &id), 0);
	arrive(s, SCHED_TASK_NONE, 3, 0, 0);
	assert_int_equal(decide(s, 1001 * MS), 0);
	assert_int_equal(newest(s)->tag, 3);
	assert_int_equal(newest(s)->reason, EXPLAIN_WAIT_TURN);
	assert_int_equal(explain_get(sched_explain(s), 1)->tag, 2);
	assert_int_equal(explain_get(sched_explain(s), 1)->reason, EXPLAIN_WAIT_FULL);
	sched_free(s);
}

static void explain_keeps_one_entry_of_a_long_wait(void **state) {
	struct sched *s = make("fcfs", 4);
	sched_task_id a = add_task(s, &big, 1000 * MS);
	sched_job_id first = arrive(s, a, 1, 0, 1000 * MS);

	arrive(s, a, 2, 0, 1000 * MS);
	for (nsec_t now = 0; now < 100; now++) {
		decide(s, now);
	}
	assert_int_equal(explain_count(sched_explain(s)), 2);
	assert_int_equal(newest(s)->times, 100);
	assert_int_equal(newest(s)->first, 0);
	assert_int_equal(newest(s)->last, 99);
	sched_finish(s, first, 100, true);
	assert_int_equal(decide(s, 100), 1);
	assert_int_equal(explain_count(sched_explain(s)), 3);
	assert_int_equal(newest(s)->reason, EXPLAIN_START_NEXT);
	sched_free(s);
}

static void explain_forgets_the_oldest(void **state) {
	struct sched *s = make("fcfs", 3);

	for (uint64_t i = 1; i <= 10; i++) {
		sched_job_id id = arrive(s, SCHED_TASK_NONE, i, i, 0);

		assert_int_equal(decide(s, i), 1);
		sched_finish(s, id, i, i % 2);
	}
	assert_int_equal(explain_count(sched_explain(s)), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct explain_entry *e = explain_get(sched_explain(s), i);

		assert_int_equal(e->number, 8 + i);
		assert_int_equal(e->tag, 8 + i);
		assert_int_equal(e->completed, (8 + i) % 2);
	}
	assert_int_equal(sched_set_explain(s, 0), 0);
	assert_null(sched_explain(s));
	arrive(s, SCHED_TASK_NONE, 1, 0, 0);
	assert_int_equal(decide(s, 100), 1);
	sched_free(s);
}

/* Nobody knows how long it takes, and half of the GPU is as much as it may have. */
static void explain_tells_of_fillers(void **state) {
	struct sched *s = make("lookahead", 8);

	add_task(s, &small, 100 * MS);
	arrive(s, SCHED_TASK_NONE, 1, 0, 0);
	arrive(s, SCHED_TASK_NONE, 2, 0, 0);
	assert_int_equal(decide(s, 0), 1);
	assert_int_equal(newest(s)->tag, 2);
	assert_int_equal(newest(s)->reason, EXPLAIN_WAIT_DEADLINES);
	assert_int_equal(explain_get(sched_explain(s), 0)->reason, EXPLAIN_START_FILLER);
	assert_int_equal(explain_get(sched_explain(s), 0)->finish, 0);
	sched_free(s);
}

/* A flood of waiting jobs costs a bounded number of entries a decision. */
static void explain_is_bounded_per_decision(void **state) {
	struct sched *s = make("even", 256);

	for (uint64_t i = 0; i < 60; i++) {
		arrive(s, SCHED_TASK_NONE, i + 1, 0, 0);
	}
	assert_int_equal(decide(s, 1), 2);
	assert_int_equal(explain_count(sched_explain(s)), 2 + 32);
	sched_free(s);
}

/* What does not fit is counted, once each, and for its own decision only. */
static void explain_counts_the_choices_it_leaves_out(void **state) {
	struct explain_entry entry = {.order = 1, .policy = "sbeet", .gpu = -1};
	struct explain_try try = {.gpu = 1};
	struct explain *e;

	assert_int_equal(explain_new(&e, 4), 0);
	explain_begin(e, 1);
	for (unsigned i = 0; i < EXPLAIN_TRIES_MAX + 5; i++) {
		try.n_sms = (uint16_t)(i + 1);
		explain_try(e, &try);
	}
	explain_commit(e, &entry, 0);
	assert_int_equal(explain_get(e, 0)->n_tries, EXPLAIN_TRIES_MAX);
	assert_int_equal(explain_get(e, 0)->n_left_out, 5);

	entry.order = 2;
	explain_begin(e, 2);
	explain_try(e, &try);
	explain_commit(e, &entry, 0);
	assert_int_equal(explain_get(e, 1)->n_tries, 1);
	assert_int_equal(explain_get(e, 1)->n_left_out, 0);
	explain_free(e);
}

/* ---- every policy ---- */

struct history {
	uint64_t fingerprint;
	size_t n;
	bool explained; /* are entries expected */
};

static void take_segment(void *userdata, const struct sim_segment *segment) {
	struct history *h = userdata;

	h->fingerprint = h->fingerprint * 31 + segment->start;
	h->fingerprint = h->fingerprint * 31 + segment->end;
	h->fingerprint = h->fingerprint * 31 + smset_count(&segment->sms) * 8 + segment->gpu;
}

static void take_entry(void *userdata, const struct explain_entry *e) {
	struct history *h = userdata;
	const struct explain_try *t = chosen(e);

	h->n++;
	assert_true(e->reason > EXPLAIN_NONE && e->reason < _EXPLAIN_REASON_N);
	assert_true(e->first <= e->last && e->times >= 1);
	assert_true(e->release <= e->first);
	if (e->gpu < 0) {
		assert_true(e->reason >= EXPLAIN_WAIT_FULL);
		assert_true(!t || t->wait);
		return;
	}
	assert_true(e->reason < EXPLAIN_WAIT_FULL);
	assert_non_null(t);
	assert_false(t->wait);
	assert_int_equal(t->gpu, e->gpu);
	assert_int_equal(t->n_sms, smset_count(&e->sms));
	assert_int_equal(t->start, e->last);
	assert_int_equal(t->finish, e->finish);
	assert_true(!e->ended || e->ended <= e->finish); /* times are drawn up to the worst */
}

static struct history simulate(const struct sched_policy *policy, size_t n_explain) {
	struct sched_gpu_model gpus[2] = {{.power = {8, 10000, 500}, .limit = 8, .step = 1},
					  {.power = {4, 5000, 400}, .limit = 4, .step = 1}};
	static struct profile_table tables[2][2];
	struct sched_task tasks[5] = {0};
	struct history h = {.explained = n_explain > 0};
	struct sim_setup setup = {.arbiter = &sim_grants,
				  .gpus = gpus,
				  .n_gpus = 2,
				  .tasks = tasks,
				  .n_tasks = 5,
				  .policy = policy,
				  .duration = 3000 * MS,
				  .exec = SIM_EXEC_SHARE,
				  .exec_share_permille = 500,
				  .seed = 1,
				  .on_segment = take_segment,
				  .n_explain = n_explain,
				  .on_explained = take_entry,
				  .userdata = &h};
	struct sim_result result;

	sched_params_default(&setup.params);
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(profile_table_linear(&tables[i][k], k ? 4 : 8, MS / 10,
							      MS / 10, (i ? 30 : 120) * MS, 900),
					 0);
		}
	}
	for (size_t i = 0; i < 5; i++) {
		tasks[i] = (struct sched_task){.period = (20 + 7 * i) * MS,
					       .deadline = (18 + 5 * i) * MS,
					       .profiles = {&tables[i % 2][0], &tables[i % 2][1]},
					       .fixed_gpu = (int)(i % 2),
					       .fixed_sms = smset_range(i < 2 ? 0 : 2, 2)};
	}
	assert_int_equal(sim_run(&setup, &result), 0);
	sim_result_deinit(&result);
	return h;
}

static void explain_changes_no_decision(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct history without = simulate(*p, 0), with = simulate(*p, 1500);

		assert_int_equal(without.n, 0);
		assert_true(with.n > 100);
		assert_int_equal(with.fingerprint, without.fingerprint);
	}
}

/* ---- what is said of deadlines ---- */

struct claims {
	unsigned late, away; /* jobs that started late; that left their home */
	bool compares_gpus;
};

static void check_claims(void *userdata, const struct explain_entry *e) {
	struct claims *claims = userdata;
	const struct explain_try *t = chosen(e);
	bool late;

	if (e->gpu < 0) {
		return;
	}
	late = e->finish > e->deadline;
	claims->late += late;
	claims->away += e->reason == EXPLAIN_START_AWAY;
	if (late) {
		assert_int_not_equal(e->reason, EXPLAIN_START_CHEAPEST);
		assert_int_not_equal(e->reason, EXPLAIN_START_AWAY);
		assert_false(t->feasible);
	}
	for (size_t i = 0; i < e->n_tries && claims->compares_gpus && late; i++) {
		assert_false(e->tries[i].feasible);
	}
}

/* One big and one small GPU that costs little and is where everybody would like to go. */
static void run_claims(const char *policy, uint64_t seed, bool skip_hopeless,
		       struct claims *claims) {
	static struct profile_table tables[5][2];
	struct sched_gpu_model gpus[2] = {{.power = {8, 10000, 500}, .limit = 8, .step = 1},
					  {.power = {4, 5000, 100}, .limit = 4, .step = 1}};
	struct sched_task tasks[5] = {0};
	struct sim_setup setup = {.arbiter = &sim_grants,
				  .gpus = gpus,
				  .n_gpus = 2,
				  .tasks = tasks,
				  .n_tasks = 5,
				  .policy = sched_policy_find(policy),
				  .duration = 2000 * MS,
				  .seed = seed,
				  .n_explain = 1000,
				  .on_explained = check_claims,
				  .userdata = claims};
	struct sim_result result;
	uint64_t random = seed;

	sched_params_default(&setup.params);
	setup.params.skip_hopeless = skip_hopeless;
	for (size_t i = 0; i < 5; i++) {
		nsec_t work = (20 + sim_random(&random) % 200) * MS;
		nsec_t period = (30 + sim_random(&random) % 120) * MS;

		assert_int_equal(profile_table_linear(&tables[i][0], 8, 0, 0, work, 5000), 0);
		assert_int_equal(profile_table_linear(&tables[i][1], 4, 0, 0, work, 500), 0);
		tasks[i] = (struct sched_task){.period = period,
					       .deadline = period / 2,
					       .first_release = sim_random(&random) % period,
					       .profiles = {&tables[i][0], &tables[i][1]},
					       .fixed_gpu = -1};
	}
	assert_int_equal(sim_run(&setup, &result), 0);
	sim_result_deinit(&result);
}

/* Nobody is said to be in time who is not, and sbeet-mg starts no job late that it could start in
 * time, whether or not hopeless jobs are skipped. */
static void explain_is_true_of_deadlines(void **state) {
	static const char *const policies[] = {"sbeet", "sbeet-mg", "lookahead"};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct claims claims = {.compares_gpus = strcmp(policies[i], "sbeet-mg") == 0};

		for (uint64_t seed = 1; seed <= 20; seed++) {
			run_claims(policies[i], seed, true, &claims);
			run_claims(policies[i], seed, false, &claims);
		}
		assert_true(claims.late > 0); /* or nothing was tested */
		assert_true(claims.away > 0 || !claims.compares_gpus);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain_names_all_reasons),
		cmocka_unit_test(explain_tells_what_sbeet_compared),
		cmocka_unit_test(explain_tells_why_a_job_waits),
		cmocka_unit_test(explain_tells_of_a_drained_gpu),
		cmocka_unit_test(explain_tells_a_kept_gpu_from_a_drained_one),
		cmocka_unit_test(explain_keeps_one_entry_of_a_long_wait),
		cmocka_unit_test(explain_forgets_the_oldest),
		cmocka_unit_test(explain_tells_of_fillers),
		cmocka_unit_test(explain_counts_the_choices_it_leaves_out),
		cmocka_unit_test(explain_is_bounded_per_decision),
		cmocka_unit_test(explain_changes_no_decision),
		cmocka_unit_test(explain_is_true_of_deadlines),
	};

	return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
