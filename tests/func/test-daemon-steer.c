/*
 * test-daemon-steer.c: policy `steer` from reported jobs to plans: who has one, and how long.
 */
#include "planned.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void reported_jobs_lead_to_a_plan(void **state) {
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned(&a, &b, &plan);
	t = look(&b);
	assert_int_equal(t.plan.predicted_jobs, plan.predicted[1].released);
	assert_int_equal(t.plan.predicted_misses, plan.predicted[1].missed);
	assert_int_equal(t.plan.predicted_response_ns,
			 plan.predicted[1].response / plan.predicted[1].done);
	assert_true(t.plan.since_ns > 0);
	assert_true(t.plan.slow == 1);
	assert_int_equal(t.plan.jobs, 0);
	assert_int_equal(t.plan.response_ns, 0);
	report(&b, 1, 10 * MS);
	report(&b, 1, 80 * MS);
	harness_settle();
	t = look(&b);
	assert_int_equal(t.plan.jobs, 2);
	assert_int_equal(t.plan.misses, 1);
	assert_int_equal(t.plan.response_ns, 45 * MS + PLAN_WAKE); /* it slept before both */
	assert_int_equal(look(&a).plan.jobs, 0);
	assert_int_equal(explained("long", "measured: 1 of 2 jobs late, mean response 45ms"), 1);
	assert_int_equal(explained("short", "measured: 0 of 0 jobs late"), 1);
	assert_int_equal(explained("short", "predicted: 0 of "), 1);
	assert_int_equal(explained("short", "plan 1 since"), 1);
	assert_int_equal(explained("--json=short long", "\"plans\":1"), 1);
	assert_int_equal(explained("--json=short long", "\"mean_response_ns\":45037500"), 1);
	close_program(&a);
	close_program(&b);
}

/* What a program without a deadline may have beside a single one is measured, not planned. */
static void one_program_with_a_deadline_has_no_plan(void **state) {
	struct program a = open_short(), other = open_program("other", 0, 0, &short_work), b;

	report_shape(&a);
	usleep(A_WHILE);
	assert_false(look(&a).planned);
	assert_true(steered_terms(&other.s, 0).n > 0);
	b = open_long();
	report(&b, 64, b.period / 10);
	wait_for(&a, 1, NULL);
	close_program(&a);
	close_program(&b);
	close_program(&other);
}

/* Nor beside several that take little of the GPU's time, however they come. */
static void programs_that_take_little_have_no_plan(void **state) {
	struct program a = open_short(), b = open_program("tiny", 10 * MS, 10 * MS, &short_work);
	struct program other = open_program("other", 0, 0, &short_work), c;

	report_shape(&a);
	report_shape(&b);
	usleep(A_WHILE);
	assert_false(look(&a).planned);
	assert_false(look(&b).planned);
	assert_true(steered_terms(&other.s, 0).n > 0);
	c = open_long();
	report(&c, 64, c.period / 10);
	wait_for(&a, 1, NULL);
	close_program(&a);
	close_program(&b);
	close_program(&c);
	close_program(&other);
}

/* A program whose jobs were too many for its socket says so, and everybody else is told. */
static void jobs_that_nobody_told_of_are_shown(void **state) {
	Sbeet__Control__Status *status;
	struct program a, b;
	struct plan plan;

	open_planned(&a, &b, &plan);
	steered_began(&b.s, 0,
		      &(struct began){.job = ++b.jobs,
				      .terms = atomic_load(&b.s.page->gpu[0].word),
				      .release = b.next,
				      .finished = b.next + MS,
				      .work = b.work,
				      .dropped = 41});
	harness_settle();
	assert_int_equal(look(&b).plan.jobs, 1);
	assert_int_equal(look(&b).plan.unreported, 41);
	assert_int_equal(look(&a).plan.unreported, 0);
	assert_int_equal(explained("long", "the program could not tell of 41 more"), 1);
	assert_int_equal(explained("long", "41 more that it could not tell of"), 1);
	assert_int_equal(explained("short", "tell of"), 0);
	assert_int_equal(explained("--json=short long", "\"unreported\":41"), 2);
	status = status_get();
	assert_int_equal(status->sessions[0]->unreported + status->sessions[1]->unreported, 41);
	status_free(status);
	close_program(&a);
	close_program(&b);
}

static void other_programs_lead_to_another_plan(void **state) {
	struct program a, b, c, other;
	struct terms rule[3];
	struct plan plan;
	nsec_t since;

	open_planned(&a, &b, &plan);
	/* It has a deadline, and nobody knows what it does: nothing can be predicted. */
	c = open_program("unknown", 50 * MS, 50 * MS, &short_work);
	assert_false(look(&a).planned);
	assert_false(look(&c).planned);
	expect_plan(&a, &b, false, 1, &plan, rule);
	rule[1].level--; /* below the unknown one */
	assert_terms(&b, &rule[1]);
	steered_leave(&c.s);
	assert_int_equal(wait_for(&b, 1, NULL).plan.plans, 1);
	assert_terms(&b, &plan.terms[1]);
	/* One without a deadline is planned for from the start; who looks longer finds another
	 * plan. */
	other = open_program("other", 0, 0, &short_work);
	expect_plan(&a, &b, true, 1, &plan, rule);
	wait_for_terms((const struct program *[]){&a, &b, &other}, 3, plan.terms);
	/* Programs that ask, and so have no terms, change nothing. */
	since = wait_for(&a, 1, NULL).plan.since_ns;
	shim_close(&(struct shim){.fd = shim_open("asks", MASK_ALL).fd});
	harness_settle();
	usleep(A_WHILE);
	assert_int_equal(look(&a).plan.since_ns, since);
	/* Alone it needs no plan. */
	steered_leave(&other.s);
	steered_leave(&b.s);
	assert_false(look(&a).planned);
	assert_int_equal(explained("short", "predicted"), 0);
	assert_int_equal(explained("--json=short short", "\"plan\":null"), 1);
	assert_int_equal(steered_terms(&a.s, 0).n, 0);
	close_program(&a);
}

/* They keep their plan until the next one, and who comes is put beside it. */
static void programs_without_a_deadline_come_and_go(void **state) {
	struct program a, b, other;
	struct plan plan;

	open_planned(&a, &b, &plan);
	for (unsigned i = 0; i < 20; i++) {
		other = open_program("other", 0, 0, &short_work);
		assert_true(look(&a).planned && look(&b).planned && look(&other).planned);
		assert_true(steered_terms(&other.s, 0).n > 0);
		steered_leave(&other.s);
		assert_true(look(&a).planned && look(&b).planned);
	}
	wait_for(&a, 2, NULL);
	close_program(&a);
	close_program(&b);
}

/* However fast they do, there is a plan. */
static void coming_and_going_stops_no_plan(void **state) {
	struct program a = open_short(), b = open_long(), other;
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	report_shape(&a);
	report(&b, 64, b.period / 10);
	while (!look(&a).planned) {
		assert_true(nsec_now() < until);
		other = open_program("other", 0, 0, &short_work);
		steered_leave(&other.s);
	}
	assert_true(look(&b).planned);
	close_program(&a);
	close_program(&b);
}

static void set_fault(const char *fault) {
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/nvml-fault", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(fault, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool is_lost(const Sbeet__Control__Status *status, void *data) {
	return status->gpus[0]->lost == *(bool *)data;
}

/* The programs ask for their jobs, and learn from their driver. */
static void a_lost_gpu_has_no_terms(void **state) {
	struct program a, b;
	struct plan plan;
	bool lost = true;
	struct told t;

	open_planned(&a, &b, &plan);
	set_fault("lost");
	status_until(is_lost, &lost);
	harness_settle();
	assert_int_equal(atomic_load(&a.s.page->gpu[0].word), 0);
	assert_int_equal(atomic_load(&b.s.page->gpu[0].word), 0);
	t = look(&b);
	assert_false(t.planned);
	assert_string_equal(t.reason, "the GPU is lost: the driver can't reach it");
	assert_true(explained("long", "the GPU is lost") >= 1);
	steered_request(a.s.fd, &a.s, 1000);
	shim_granted(a.s.fd, 1000);
	/* It is back: what is known of the programs' jobs still is. */
	set_fault("");
	lost = false;
	status_until(is_lost, &lost);
	wait_for(&b, 1, NULL);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* Its jobs may be others from now on: until they are known the rule holds. */
static void a_task_that_is_changed_is_planned_anew(void **state) {
	struct program a, b;
	struct plan plan;

	open_planned(&a, &b, &plan);
	set_deadline("long", 55 * MS);
	assert_false(look(&a).planned);
	assert_false(look(&b).planned);
	assert_int_not_equal(steered_terms(&b.s, 0).n, plan.terms[1].n);
	report_shape(&b);
	assert_int_equal(wait_for(&b, 1, NULL).plan.jobs, 0);
	close_program(&a);
	close_program(&b);
}

/* Jobs of nothing at every nanosecond, of as many programs as are planned for: the longest that a
 * plan takes. Without a sanitizer only a planner that does not end shows. */
static void sbeetd_ends_while_a_plan_is_made(void **state) {
	static const struct work work = {.launches = 1, .waves = 1};
	struct program p[MODEL_TASKS_MAX];

	for (size_t i = 0; i < MODEL_TASKS_MAX; i++) {
		p[i] = open_program("tiny", 1, 1, &work);
		report_shape(&p[i]);
	}
	usleep(A_WHILE); /* now it is being made */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	for (size_t i = 0; i < MODEL_TASKS_MAX; i++) {
		close_program(&p[i]);
	}
}

/* One that lies about its jobs is planned for as it says, or keeps the others from being predicted
 * as long as it is there: no more. */
static void hostile_numbers_harm_nobody_else(void **state) {
	static const struct work lies[] = {
		{0, 0},		 {0, UINT64_MAX}, {UINT64_MAX, 0}, {UINT64_MAX, UINT64_MAX},
		{1, UINT64_MAX}, {UINT64_MAX, 1}, {1, 0},	   {100000, 100000},
		{1, 1},
	};
	struct program a, b, liar;
	struct plan plan;

	open_planned(&a, &b, &plan);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		liar = open_program("tiny", MS, MS, &lies[i]);
		report_shape(&liar);
		report(&liar, 1, 5000 * NSEC_PER_SEC);
		shim_expect_silence(liar.s.fd);
		assert_true(steered_terms(&a.s, 0).steered);
		assert_true(steered_terms(&b.s, 0).steered);
		assert_int_equal(look(&b).plan.misses, 0);
		steered_leave(&liar.s);
	}
	wait_for(&a, 1, NULL);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* More than can be planned for: the last ones may use all. */
static void too_many_programs_run_without_a_plan(void **state) {
	struct program p[MODEL_TASKS_MAX + 2];
	struct told t;

	for (size_t i = 0; i < MODEL_TASKS_MAX + 2; i++) {
		p[i] = open_program("short", 5 * MS, 2 * MS, &short_work);
		report(&p[i], 1, MS);
	}
	harness_settle();
	for (size_t i = MODEL_TASKS_MAX; i < MODEL_TASKS_MAX + 2; i++) {
		t = look(&p[i]);
		assert_string_equal(t.reason, "too many programs are there to plan for");
		assert_true(steered_terms(&p[i].s, 0).steered);
		assert_int_equal(steered_terms(&p[i].s, 0).n, 0);
	}
	steered_leave(&p[0].s);
	assert_string_not_equal(look(&p[MODEL_TASKS_MAX]).reason,
				"too many programs are there to plan for");
	for (size_t i = 1; i < MODEL_TASKS_MAX + 2; i++) {
		close_program(&p[i]);
	}
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, planned_setup, planned_clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		STARTED(reported_jobs_lead_to_a_plan),
		STARTED(one_program_with_a_deadline_has_no_plan),
		STARTED(programs_that_take_little_have_no_plan),
		STARTED(jobs_that_nobody_told_of_are_shown),
		STARTED(other_programs_lead_to_another_plan),
		STARTED(programs_without_a_deadline_come_and_go),
		STARTED(coming_and_going_stops_no_plan),
		STARTED(a_lost_gpu_has_no_terms),
		STARTED(a_task_that_is_changed_is_planned_anew),
		STARTED(sbeetd_ends_while_a_plan_is_made),
		STARTED(hostile_numbers_harm_nobody_else),
		STARTED(too_many_programs_run_without_a_plan),
	};

	return cmocka_run_group_tests_name("daemon-steer", tests, NULL, NULL);
}
