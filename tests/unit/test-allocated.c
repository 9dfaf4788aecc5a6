/*
 * test-allocated.c: SMs of allocations: which ones they get, and that their jobs run on these
 * alone, whatever the policy, and nobody waits for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/allocated.h"
#include "daemon/core/groups.h"
#include "daemon/core/sched.h"

/* 46 SMs in groups of 4; the last one has the 2 that are left, and 4 more. */
static struct sched_gpu_model divided_model(void) {
	struct sched_gpu_model model = {.power.n_sms = 46, .limit = 46, .step = 1};

	sched_divide(&model, 4);
	return model;
}

static void expect_pick(const char *from, unsigned n, const char *expected) {
	struct sched_gpu_model model = divided_model();
	struct smset left, picked;
	char text[SMSET_TEXT_MAX];

	assert_int_equal(smset_parse(from, &left), 0);
	picked = allocated_pick(&model, &left, n);
	smset_print(&picked, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void pick_takes_whole_groups(void **state) {
	expect_pick("0-45", 20, "0-19");
	expect_pick("0-45", 22, "24-45");
	expect_pick("0-45", 46, "0-45");
	expect_pick("20-45", 20, "28-45"); /* with the last group of 10: 18, without 16 */
	expect_pick("20-45", 26, "20-45");
	expect_pick("20-45", 1, "20-23"); /* the smallest group is more */
	expect_pick("36-45", 4, "36-45");
	expect_pick("1-3", 4, "");
}

static void pick_prefers_a_row(void **state) {
	expect_pick("0-3,8-15", 8, "8-15");
	expect_pick("0-3,8-11,16-19", 12, "0-3,8-11,16-19"); /* there is none */
}

static struct sched *make(const char *policy, enum sched_sharing sharing) {
	struct smset a = smset_range(0, 20), b = smset_range(20, 20);
	struct sched *s;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), 64), 0);
	assert_int_equal(sched_add_gpu(s, 46, sharing), 0);
	sched_set_allocation(s, 1, 0, &a);
	sched_set_allocation(s, 2, 0, &b);
	return s;
}

static sched_job_id arrive(struct sched *s, unsigned allocation, uint64_t owner, bool divisible,
			   unsigned max_sms) {
	struct sched_job job = {.task = SCHED_TASK_NONE,
				.owner = owner,
				.allocation = allocation,
				.spec.max_sms = max_sms,
				.divisible = divisible};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

static void decide(struct sched *s) {
	struct sched_actions actions;

	sched_decide(s, 1, &actions);
}

static void expect_sms(const struct sched *s, sched_job_id id, const char *expected) {
	char text[SMSET_TEXT_MAX];

	assert_int_equal(sched_job(s, id)->state, SCHED_JOB_RUNNING);
	smset_print(&sched_job(s, id)->sms, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void expect_waits(const struct sched *s, sched_job_id id) {
	assert_int_equal(sched_job(s, id)->state, SCHED_JOB_WAITING);
}

static void jobs_run_on_their_own_sms(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sched *s = make((*p)->name, SCHED_SHARING_MPS);
		sched_job_id a = arrive(s, 1, 1, true, 0), b = arrive(s, 2, 2, true, 46);
		sched_job_id again = arrive(s, 1, 3, true, 0);

		decide(s);
		expect_sms(s, a, "0-19");
		expect_sms(s, b, "20-39");
		expect_waits(s, again); /* for its allocation's other program, not for SMs */
		sched_finish(s, a, 2, true);
		decide(s);
		expect_sms(s, again, "0-19");
		sched_free(s);
	}
}

static void jobs_may_want_less(void **state) {
	struct sched *s = make("fcfs", SCHED_SHARING_MPS);
	sched_job_id id = arrive(s, 2, 1, true, 6);

	decide(s);
	expect_sms(s, id, "20-25");
	sched_free(s);
}

/* Those of no allocation may not have the SMs that one waits for. */
static void jobs_are_not_passed_by_others(void **state) {
	struct sched *s = make("even", SCHED_SHARING_MPS);
	sched_job_id low = arrive(s, 0, 1, true, 0), high = arrive(s, 0, 2, true, 0), a, next;

	decide(s);
	expect_sms(s, low, "0-22");
	expect_sms(s, high, "23-45");
	a = arrive(s, 2, 3, true, 0);
	next = arrive(s, 0, 1, true, 0);
	sched_finish(s, low, 2, true);
	decide(s);
	expect_waits(s, a);
	expect_waits(s, next);
	sched_finish(s, high, 3, true);
	decide(s);
	expect_sms(s, a, "20-39");
	expect_waits(s, next);
	sched_finish(s, a, 4, true);
	decide(s);
	expect_sms(s, next, "0-22");
	sched_free(s);
}

/* Nor do others wait for ever, also where they need the whole GPU. */
static void jobs_let_earlier_ones_go_first(void **state) {
	struct sched *s = make("fcfs", SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 1, true, 0), whole, b;

	decide(s);
	whole = arrive(s, 0, 2, false, 0);
	b = arrive(s, 2, 3, true, 0);
	decide(s);
	expect_waits(s, whole);
	expect_waits(s, b); /* though its SMs are free */
	sched_finish(s, a, 2, true);
	decide(s);
	expect_sms(s, whole, "0-45");
	expect_waits(s, b);
	sched_finish(s, whole, 3, true);
	decide(s);
	expect_sms(s, b, "20-39");
	sched_free(s);
}

static void jobs_without_parts_get_the_whole_gpu(void **state) {
	struct sched *s = make("fcfs", SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 1, true, 0), whole = arrive(s, 2, 2, false, 0);

	decide(s);
	expect_waits(s, whole);
	sched_finish(s, a, 2, true);
	decide(s);
	expect_sms(s, whole, "0-45");
	sched_free(s);
}

/* Without MPS one process at a time runs: the next ones take turns. */
static void jobs_take_turns_where_processes_do(void **state) {
	struct sched *s = make("fcfs", SCHED_SHARING_EXCLUSIVE);
	sched_job_id a = arrive(s, 1, 1, true, 0), b = arrive(s, 2, 2, true, 0), more;

	decide(s);
	expect_sms(s, a, "0-19");
	expect_waits(s, b);
	more = arrive(s, 1, 1, true, 0);
	sched_finish(s, a, 2, true);
	decide(s);
	expect_sms(s, b, "20-39");
	expect_waits(s, more);
	sched_finish(s, b, 3, true);
	decide(s);
	expect_sms(s, more, "0-19");
	sched_free(s);
}

static void jobs_wait_on_a_drained_gpu(void **state) {
	struct sched *s = make("fcfs", SCHED_SHARING_MPS);
	sched_job_id a = arrive(s, 1, 1, true, 0);

	sched_drain_gpu(s, 0, true);
	decide(s);
	expect_waits(s, a);
	sched_drain_gpu(s, 0, false);
	decide(s);
	expect_sms(s, a, "0-19");
	sched_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pick_takes_whole_groups),
		cmocka_unit_test(pick_prefers_a_row),
		cmocka_unit_test(jobs_run_on_their_own_sms),
		cmocka_unit_test(jobs_may_want_less),
		cmocka_unit_test(jobs_are_not_passed_by_others),
		cmocka_unit_test(jobs_let_earlier_ones_go_first),
		cmocka_unit_test(jobs_without_parts_get_the_whole_gpu),
		cmocka_unit_test(jobs_take_turns_where_processes_do),
		cmocka_unit_test(jobs_wait_on_a_drained_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
