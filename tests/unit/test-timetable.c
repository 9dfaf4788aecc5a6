/*
 * test-timetable.c: policy `table`: jobs start by the clock, on their SMs, and no sooner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include <errno.h>

#include "daemon/core/sched.h"
#include "daemon/core/timetable.h"

#define MS NSEC_PER_MSEC
#define H  (100 * MS)

/* Task 1 at 10 ms, task 2 at 30 and, on the same SMs, task 1 at 70. SMs 6 and 7 are left alone. */
static struct timetable_entry entries[] = {
	{.task = 1, .sms = {{0x0f}}, .start = 10 * MS, .length = 16 * MS},
	{.task = 2, .sms = {{0x3c}}, .start = 30 * MS, .length = 40 * MS},
	{.task = 1, .sms = {{0x0f}}, .start = 70 * MS, .length = 16 * MS},
};
static struct timetable table = {.hyperperiod = H, .n = 3, .list = entries};
static struct profile_table profile;
static struct sched *s;
static sched_task_id tasks[3]; /* the last one is not in the table */
static char why[128];

static int setup(void **state) {
	assert_int_equal(sched_new(&s, sched_policy_find("table"), 16), 0);
	assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), 0);
	assert_int_equal(profile_table_linear(&profile, 8, 0, 0, 64 * MS, 100), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct sched_task task = {.period = H,
					  .deadline = H,
					  .fixed_gpu = -1,
					  .table_task = (i + 1) % 3,
					  .profiles = {&profile}};

		assert_int_equal(sched_add_task(s, &task, &tasks[i]), 0);
	}
	for (size_t i = 0; i < table.n; i++) {
		entries[i].used = 0;
	}
	assert_int_equal(timetable_check(&table, s, why, sizeof(why)), 0);
	sched_set_timetable(s, &table);
	sched_distribute(s);
	return 0;
}

static int teardown(void **state) {
	sched_free(s);
	return 0;
}

static sched_job_id arrive(unsigned task, nsec_t now) {
	struct sched_job job = {.task = task ? tasks[task - 1] : SCHED_TASK_NONE,
				.owner = task + 1,
				.gpu_wanted = -1,
				.divisible = true,
				.release = now};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

/* Decides at @now; returns how many start. */
static size_t decide(nsec_t now) {
	struct sched_actions actions;

	sched_decide(s, now, &actions);
	return actions.n;
}

static bool runs_on(sched_job_id id, unsigned first, unsigned n) {
	struct smset sms = smset_range(first, n);

	return sched_job(s, id)->state == SCHED_JOB_RUNNING &&
	       smset_equal(&sched_job(s, id)->sms, &sms);
}

static void jobs_start_at_their_time_and_no_sooner(void **state) {
	sched_job_id a = arrive(1, 1000 * H), b = arrive(2, 1000 * H);

	/* all SMs are idle, and nobody starts */
	assert_int_equal(decide(1000 * H), 0);
	assert_int_equal(sched_next_look(s), 1000 * H + 10 * MS);
	assert_int_equal(decide(1000 * H + 10 * MS - 1), 0);
	assert_int_equal(decide(1000 * H + 10 * MS), 1);
	assert_true(runs_on(a, 0, 4));

	/* it is over early: the next one keeps its time */
	sched_finish(s, a, 1000 * H + 12 * MS, true);
	assert_int_equal(decide(1000 * H + 12 * MS), 0);
	assert_int_equal(sched_next_look(s), 1000 * H + 30 * MS);
	assert_int_equal(decide(1000 * H + 30 * MS), 1);
	assert_true(runs_on(b, 2, 4));
	sched_finish(s, b, 1000 * H + 60 * MS, true);
}

static void an_entry_has_one_job_in_a_repetition(void **state) {
	sched_job_id a = arrive(1, 0), next = arrive(1, 0);

	assert_int_equal(decide(10 * MS), 1);
	sched_finish(s, a, 10 * MS + 1, true);
	assert_int_equal(decide(10 * MS + 1), 0);
	assert_int_equal(decide(70 * MS), 1);
	assert_true(runs_on(next, 0, 4));
	sched_finish(s, next, 80 * MS, true);
	next = arrive(1, 90 * MS);
	assert_int_equal(decide(90 * MS), 0);
	assert_int_equal(decide(H + 10 * MS), 1);
	assert_true(runs_on(next, 0, 4));
}

/* The first entry has 4 ms until the second needs SMs of it, the second none until the third: but
 * an eighth of its length. */
static void a_late_job_starts_where_that_delays_nobody(void **state) {
	sched_job_id a = arrive(1, 14 * MS), b;

	assert_int_equal(decide(14 * MS), 1);
	sched_finish(s, a, 20 * MS, true);
	b = arrive(2, 35 * MS);
	assert_int_equal(decide(35 * MS), 1);
	sched_finish(s, b, 60 * MS, true);

	a = arrive(1, H + 14 * MS + 1);
	assert_int_equal(decide(H + 14 * MS + 1), 0);
	b = arrive(2, H + 35 * MS + 1);
	assert_int_equal(decide(H + 35 * MS + 1), 0);
	assert_int_equal(decide(H + 70 * MS), 1);
	assert_true(runs_on(a, 0, 4));
}

/* One that goes on for too long keeps its SMs: the next one waits for them, or for its next time.
 */
static void nobody_gets_sms_that_are_held(void **state) {
	sched_job_id a = arrive(1, 0), b = arrive(2, 0);

	assert_int_equal(decide(10 * MS), 1);
	assert_int_equal(decide(30 * MS), 0);
	sched_finish(s, a, 34 * MS, true);
	assert_int_equal(decide(34 * MS), 1);
	assert_true(runs_on(b, 2, 4));
}

static void others_get_what_the_table_leaves_alone(void **state) {
	sched_job_id free = arrive(0, 0), third = arrive(3, 0);

	assert_int_equal(decide(0), 1);
	assert_true(runs_on(free, 6, 2));
	assert_int_equal(decide(10 * MS), 0);
	sched_finish(s, free, 11 * MS, true);
	assert_int_equal(decide(11 * MS), 1);
	assert_true(runs_on(third, 6, 2));
}

static void tables_that_cannot_be_followed_are_refused(void **state) {
	static const struct {
		struct timetable_entry changed; /* in place of the second one */
		const char *why;
	} bad[] = {
		{{.task = 2, .sms = {{0x3c}}, .start = 25 * MS, .length = 40 * MS},
		 "jobs 0 and 1 have SMs at the same time"},
		{{.task = 2, .sms = {{0x3c}}, .start = 60 * MS, .length = 20 * MS},
		 "jobs 1 and 2 have SMs at the same time"},
		{{.task = 2, .sms = {{0x3c}}, .start = 90 * MS, .length = 21 * MS},
		 "jobs 1 and 0 have SMs at the same time"},
		{{.task = 2, .gpu = 1, .sms = {{0x3c}}, .length = MS},
		 "job 1: there is no such GPU"},
		{{.task = 2, .sms = {{0x1ff}}, .length = MS},
		 "job 1: its SMs are not within the GPU's limit"},
		{{.task = 2, .length = MS}, "job 1: its SMs are not within the GPU's limit"},
		{{.task = 2, .sms = {{0x30}}, .start = H, .length = MS},
		 "job 1: its times are not within the hyperperiod"},
		{{.task = 2, .sms = {{0x30}}, .length = 0},
		 "job 1: its times are not within the hyperperiod"},
		{{.task = 2, .sms = {{0x30}}, .length = H + 1},
		 "job 1: its times are not within the hyperperiod"},
	};
	struct sched_gpu_model divided = {.power = {.n_sms = 8}, .limit = 8, .step = 1};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct timetable_entry list[3] = {entries[0], bad[i].changed, entries[2]};
		struct timetable t = {.hyperperiod = H, .n = 3, .list = list};

		*why = '\0';
		assert_int_equal(timetable_check(&t, s, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, bad[i].why);
	}
	sched_divide(&divided, 4);
	assert_int_equal(sched_set_gpu_model(s, 0, &divided), 0);
	assert_int_equal(timetable_check(&table, s, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "job 1: its SMs are not whole groups of the GPU");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(jobs_start_at_their_time_and_no_sooner),
		CASE(an_entry_has_one_job_in_a_repetition),
		CASE(a_late_job_starts_where_that_delays_nobody),
		CASE(nobody_gets_sms_that_are_held),
		CASE(others_get_what_the_table_leaves_alone),
		CASE(tables_that_cannot_be_followed_are_refused),
	};

	return cmocka_run_group_tests_name("timetable", tests, NULL, NULL);
}
