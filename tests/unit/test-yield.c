/*
 * test-yield.c: kernels that wait at gates for jobs of others, in the model of a shared GPU and in
 * plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/steer-tasks.h"

static const struct model_place everywhere = {.regions = {true, true}};

static void go_on_until(struct model *m, nsec_t end) {
	while (model_next(m) <= end) {
		model_advance(m, model_next(m));
	}
}

static void begin(struct model *m, unsigned task, nsec_t now) {
	go_on_until(m, now);
	model_begin(m, task, now, now, 0, 1);
	model_advance(m, now);
}

/* Two tasks of long kernels, everywhere; the first one is awaited. */
static void run_gated(bool gates, struct model_result ret[2]) {
	const struct model_gpu gpu = {.sms = {56, 76}};
	const struct model_wake wake = {0, 0};
	struct model_task tasks[2] = {
		task(6 * MS, 13 * MS / 5, 2, 20 * NSEC_PER_USEC, 6 * MS / 5).model,
		task(20 * MS, 20 * MS, 10, 20 * NSEC_PER_USEC, 10 * MS).model,
	};
	struct model_place places[2] = {{.regions = {true, true}, .awaited = gates},
					{.regions = {true, true}, .yields = gates}};

	model_run(&gpu, &wake, tasks, places, 2, NSEC_PER_SEC, 1, NULL, ret);
}

/* From its first operation to its end the other one begins no kernel. */
static void who_yields_begins_no_kernel_beside_an_urgent_job(void **state) {
	struct model_result free_for_all[2], gated[2];

	(void)state;
	run_gated(false, free_for_all);
	run_gated(true, gated);
	assert_true(free_for_all[0].missed > 0);
	assert_int_equal(gated[0].missed, 0);
	assert_true(gated[0].longest < free_for_all[0].longest);
	assert_int_equal(gated[1].missed, 0); /* what is left is enough */
	assert_int_equal(gated[1].done, free_for_all[1].done);
}

/* Two jobs that are due together, or the other way round. */
static void nobody_yields_to_who_is_due_later(void **state) {
	const struct model_gpu gpu = {.sms = {56, 76}};
	struct model_task tasks[2] = {task(20 * MS, 20 * MS, 1, MS / 10, MS).model,
				      task(20 * MS, 2 * MS, 1, MS / 10, MS).model};
	struct model_place places[2] = {{.regions = {true, true}, .awaited = true},
					{.regions = {true, true}, .yields = true}};
	struct model m;

	(void)state;
	model_init(&m, &gpu, tasks, places, 2);
	model_begin(&m, 0, 0, 0, 0, 1);
	model_advance(&m, 0);
	model_begin(&m, 1, MS / 2, MS / 2, 0, 1); /* due at 2.5 ms, the other one at 20 */
	while (model_next(&m) < 5 * MS / 2) {
		model_advance(&m, model_next(&m));
	}
	assert_int_equal(m.jobs[1].phase, MODEL_IDLE);
}

/* Without the GPU's leave nobody does. */
static void tasks_yield_where_that_saves_jobs(void **state) {
	struct plan_gpu gated = h200;
	struct plan_task tasks[3] = {
		task(3 * MS, 13 * MS / 10, 20, 20 * NSEC_PER_USEC, MS),
		task(7 * MS, 7 * MS / 2, 60, 20 * NSEC_PER_USEC, 2 * MS),
		task(23 * MS, 20 * MS, 100, 20 * NSEC_PER_USEC, 5 * MS),
	};
	unsigned missed[2] = {0}, yielding = 0, gateless = 0;
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 3, PLAN_WHOLE, 0, NULL, &plan);
	for (unsigned i = 0; i < 3; i++) {
		missed[0] += plan.predicted[i].missed;
		assert_false(plan.terms[i].awaited || plan.terms[i].yields);
	}
	gated.gates = true;
	plan_make(&gated, tasks, 3, PLAN_WHOLE, 0, NULL, &plan);
	for (unsigned i = 0; i < 3; i++) {
		missed[1] += plan.predicted[i].missed;
		yielding += plan.terms[i].yields;
		assert_false(plan.terms[i].guarded);
		assert_true(plan.terms[i].awaited); /* by those who are due later */
	}
	assert_true(missed[1] < missed[0]);
	assert_true(yielding > 0 && yielding < 3);
	/* What is best without them is there, in case the prediction is wrong. */
	for (unsigned i = 0; i < 3; i++) {
		assert_false(plan.others[0].terms[i].awaited || plan.others[0].terms[i].yields);
		gateless += plan.others[0].predicted[i].missed;
	}
	assert_true(gateless >= missed[1] && gateless <= missed[0]);
	/* What is predicted of terms is predicted with them. */
	struct model_result again[3];

	assert_true(plan_predict(&gated, tasks, plan.terms, 3, again));
	assert_int_equal(again[0].missed, plan.predicted[0].missed);
}

/* A gate says when a kernel comes to the GPU, not when it begins there. */
static void what_is_past_its_gate_takes_its_turn(void **state) {
	const struct model_gpu gpu = {.sms = {56, 76}};
	struct model_task tasks[3] = {task(50 * MS, 40 * MS, 1, MS, 5 * MS).model,
				      task(50 * MS, 40 * MS, 1, MS, 5 * MS).model,
				      task(50 * MS, 10 * MS, 1, MS, MS).model};
	struct model_place places[3] = {everywhere, everywhere, everywhere};
	struct model m;

	(void)state;
	places[0].yields = places[1].yields = places[2].awaited = true;
	model_init(&m, &gpu, tasks, places, 3);
	begin(&m, 0, 0);
	begin(&m, 1, MS);
	begin(&m, 2, 2 * MS);
	go_on_until(&m, 6 * MS);
	assert_int_equal(m.jobs[1].phase, MODEL_RUNNING);
	assert_int_equal(m.jobs[2].phase, MODEL_QUEUED);
	/* Let each other go first, and the second one waits where it can be made to. */
	places[0].awaited = places[1].awaited = true;
	tasks[1].deadline += MS;
	model_init(&m, &gpu, tasks, places, 3);
	begin(&m, 0, 0);
	begin(&m, 1, MS);
	begin(&m, 2, 2 * MS);
	go_on_until(&m, 6 * MS);
	assert_int_equal(m.jobs[1].phase, MODEL_QUEUED);
	assert_int_equal(m.jobs[2].phase, MODEL_RUNNING);
}

/* A job that copies needs no SMs yet, or no more. */
static void others_go_on_while_a_job_copies(void **state) {
	const struct model_gpu gpu = {.sms = {56, 76}, .back = MS};
	struct model_task tasks[3] = {task(50 * MS, 10 * MS, 1, MS / 10, 2 * MS).model,
				      task(50 * MS, 40 * MS, 4, MS / 10, 2 * MS).model,
				      task(50 * MS, 41 * MS, 1, MS / 10, 5 * MS).model};
	struct model_place places[3] = {everywhere, everywhere, everywhere};
	struct model m;

	(void)state;
	tasks[0].copy_in = tasks[0].copy_out = MS;
	tasks[1].copy_in = tasks[2].copy_in = 0;
	places[0].awaited = places[1].yields = places[2].yields = true;
	model_init(&m, &gpu, tasks, places, 3);
	begin(&m, 0, MS);
	begin(&m, 1, MS + 1);
	begin(&m, 2, MS + 1);
	assert_int_equal(m.jobs[1].phase, MODEL_RUNNING); /* it ends before the copy */
	assert_int_equal(m.jobs[2].phase, MODEL_QUEUED);
	go_on_until(&m, 2 * MS + MS / 10); /* what began before then has ended */
	assert_int_equal(m.jobs[0].phase, MODEL_RUNNING);
	assert_int_equal(m.jobs[1].phase, MODEL_QUEUED);
	go_on_until(&m, 4 * MS + MS / 10);
	assert_int_equal(m.jobs[0].phase, MODEL_COPY_OUT);
	assert_int_equal(m.jobs[1].phase, MODEL_RUNNING);
	/* Without a copy back nobody hears of it before the job is over. */
	tasks[0].copy_out = 0;
	model_init(&m, &gpu, tasks, places, 3);
	begin(&m, 0, MS);
	begin(&m, 2, MS + 1);
	go_on_until(&m, 4 * MS + MS / 10);
	assert_int_equal(m.jobs[0].phase, MODEL_BACK);
	assert_int_equal(m.jobs[2].phase, MODEL_QUEUED);
	go_on_until(&m, 5 * MS + MS / 10);
	assert_int_equal(m.jobs[2].phase, MODEL_RUNNING);
}

/* Places may change while kernels wait, or run. */
static void gates_come_and_go(void **state) {
	const struct model_gpu gpu = {.sms = {56, 76}};
	struct model_task tasks[2] = {task(50 * MS, 10 * MS, 1, MS, 5 * MS).model,
				      task(50 * MS, 40 * MS, 2, MS, 4 * MS).model};
	struct model_place places[2] = {everywhere, everywhere};
	struct model m;

	(void)state;
	tasks[0].copy_in = tasks[1].copy_in = 0;
	model_init(&m, &gpu, tasks, places, 2);
	begin(&m, 1, MS);
	places[0].awaited = places[1].yields = true;
	model_moved(&m, 2 * MS);
	model_advance(&m, 2 * MS);
	assert_int_equal(m.jobs[1].phase, MODEL_RUNNING); /* it is past */
	begin(&m, 0, 2 * MS);
	go_on_until(&m, 7 * MS);
	assert_int_equal(m.jobs[1].phase, MODEL_QUEUED); /* its second one is not */
	assert_int_equal(m.jobs[0].phase, MODEL_RUNNING);
	go_on_until(&m, 20 * MS);
	assert_int_equal(m.jobs[1].phase, MODEL_IDLE);
	begin(&m, 0, 20 * MS);
	begin(&m, 1, 20 * MS + 1);
	assert_false(m.jobs[1].past);
	places[1].yields = false;
	model_moved(&m, 21 * MS);
	model_advance(&m, 21 * MS);
	assert_true(m.jobs[1].past);
}

/* ---- guard bands ---- */

#define PERIOD (2 * MS)

/* A job each 2 ms that needs 0.4, beside jobs of kernels of this length, without an end. */
static void run_guarded(bool guarded, nsec_t kernel, struct model_result ret[2]) {
	const struct model_gpu gpu = {.sms = {56, 76}, .guard = MS / 10, .overlap = MS / 10};
	const struct model_wake wake = {MS / 20, MS / 10};
	struct model_task tasks[2] = {
		task(PERIOD, MS * 8 / 10, 1, MS / 10, MS * 2 / 10).model,
		task(100 * MS, 90 * MS, 20, kernel, 20 * kernel).model,
	};
	struct model_place places[2] = {everywhere, everywhere};

	places[0].awaited = places[1].yields = true;
	places[0].guarded = guarded;
	model_run(&gpu, &wake, tasks, places, 2, NSEC_PER_SEC, 1, NULL, ret);
}

static void no_kernel_runs_into_a_job_that_is_expected(void **state) {
	struct model_result plain[2], guarded[2];

	(void)state;
	run_guarded(false, MS, plain);
	run_guarded(true, MS, guarded);
	assert_true(plain[0].missed > plain[0].released / 20);
	assert_int_equal(guarded[0].missed, 0);
	assert_int_equal(guarded[1].missed, 0);
	assert_true(guarded[1].response > plain[1].response);
}

/* It would wait for ever. */
static void what_fits_between_no_jobs_does_not_wait_for_the_next(void **state) {
	struct model_result plain[2], guarded[2];

	(void)state;
	run_guarded(false, 3 * MS, plain);
	run_guarded(true, 3 * MS, guarded);
	assert_int_equal(guarded[1].done, plain[1].done);
	assert_int_equal(guarded[1].response, plain[1].response);
}

/* A job that does not come is not waited for. */
static void an_expected_job_is_not_waited_for_for_long(void **state) {
	const struct model_gpu gpu = {.sms = {56, 76}, .guard = MS / 10, .overlap = MS / 10};
	struct model_task tasks[2] = {task(PERIOD, MS, 1, MS / 10, MS * 2 / 10).model,
				      task(100 * MS, 90 * MS, 1, MS, MS).model};
	struct model_place places[2] = {everywhere, everywhere};
	struct model m;

	(void)state;
	places[0].awaited = places[0].guarded = places[1].yields = true;
	model_init(&m, &gpu, tasks, places, 2);
	begin(&m, 0, MS);
	begin(&m, 1, PERIOD + MS / 2);
	go_on_until(&m, PERIOD + MS);
	assert_int_equal(m.jobs[1].phase, MODEL_QUEUED);
	go_on_until(&m, PERIOD + 3 * MS / 2); /* it was expected at 3.1 ms, behind its copy */
	assert_int_equal(m.jobs[1].phase, MODEL_RUNNING);
}

/* A kernel of 0.5 ms would be over when the next job wants its SMs, but others may share its gate.
 */
static enum model_phase phase_of_short(nsec_t behind) {
	const struct model_gpu gpu = {
		.sms = {56, 76}, .guard = MS / 10, .overlap = MS / 10, .behind = behind};
	struct model_task tasks[2] = {task(PERIOD, MS, 1, MS / 10, MS * 2 / 10).model,
				      task(100 * MS, 90 * MS, 1, MS / 2, MS / 2).model};
	struct model_place places[2] = {everywhere, everywhere};
	struct model m;

	places[0].awaited = places[0].guarded = places[1].yields = true;
	model_init(&m, &gpu, tasks, places, 2);
	begin(&m, 0, MS);
	begin(&m, 1, PERIOD + MS / 2);
	go_on_until(&m, PERIOD + MS * 7 / 10);
	return m.jobs[1].phase;
}

static void what_shares_a_gate_keeps_the_guard_band_together(void **state) {
	(void)state;
	assert_int_equal(phase_of_short(0), MODEL_RUNNING);
	assert_int_equal(phase_of_short(MS / 2), MODEL_RUNNING);
	assert_int_equal(phase_of_short(MS), MODEL_QUEUED);
}

/* What @deadline leaves to spare beyond 0.35 ms counts: a kernel would end 0.05 ms after the next
 * job is expected, at 3.1 ms. */
static enum model_phase phase_in_overlap(nsec_t deadline) {
	const struct model_gpu gpu = {.sms = {56, 76}, .guard = MS / 10, .overlap = MS / 10};
	struct model_task tasks[2] = {task(PERIOD, deadline, 1, MS / 10, MS * 2 / 10).model,
				      task(100 * MS, 90 * MS, 1, MS, MS).model};
	struct model_place places[2] = {everywhere, everywhere};
	struct model m;

	places[0].awaited = places[0].guarded = places[1].yields = true;
	model_init(&m, &gpu, tasks, places, 2);
	begin(&m, 0, MS);
	go_on_until(&m, PERIOD);
	begin(&m, 1, PERIOD + MS * 5 / 100);
	go_on_until(&m, PERIOD + MS * 16 / 100); /* its copy takes 0.1 ms */
	return m.jobs[1].phase;
}

static void kernels_run_a_little_into_a_job_that_has_time(void **state) {
	(void)state;
	assert_int_equal(phase_in_overlap(MS), MODEL_RUNNING);
	assert_int_equal(phase_in_overlap(MS * 46 / 100), MODEL_RUNNING); /* 0.11 to spare */
	assert_int_equal(phase_in_overlap(MS * 44 / 100), MODEL_QUEUED);
	assert_int_equal(phase_in_overlap(MS / 10), MODEL_QUEUED); /* hopeless */
}

/* Short deadlines beside long kernels of others that have time. */
static void guard_bands_are_planned_where_they_save_jobs(void **state) {
	struct plan_gpu gpu = h200;
	struct plan_task tasks[2] = {
		task(PERIOD, MS * 55 / 100, 4, MS / 20, MS * 2 / 10),
		task(100 * MS, 90 * MS, 30, MS, 30 * MS),
	};
	unsigned missed[2] = {0};
	struct plan plan;

	(void)state;
	gpu.gates = true;
	plan_make(&gpu, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	missed[0] = plan.predicted[0].missed + plan.predicted[1].missed;
	assert_false(plan.terms[0].guarded || plan.terms[1].guarded);
	gpu.guards = true;
	plan_make(&gpu, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	missed[1] = plan.predicted[0].missed + plan.predicted[1].missed;
	assert_true(missed[1] < missed[0]);
	assert_true(plan.terms[0].guarded && plan.terms[0].awaited && plan.terms[1].yields);
	/* The same without is another way. */
	for (unsigned i = 0; i < 2; i++) {
		struct terms t = plan.terms[i];

		t.guarded = false;
		assert_true(terms_equal(&plan.others[0].terms[i], &t));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_yields_begins_no_kernel_beside_an_urgent_job),
		cmocka_unit_test(nobody_yields_to_who_is_due_later),
		cmocka_unit_test(tasks_yield_where_that_saves_jobs),
		cmocka_unit_test(what_is_past_its_gate_takes_its_turn),
		cmocka_unit_test(others_go_on_while_a_job_copies),
		cmocka_unit_test(gates_come_and_go),
		cmocka_unit_test(no_kernel_runs_into_a_job_that_is_expected),
		cmocka_unit_test(what_fits_between_no_jobs_does_not_wait_for_the_next),
		cmocka_unit_test(an_expected_job_is_not_waited_for_for_long),
		cmocka_unit_test(what_shares_a_gate_keeps_the_guard_band_together),
		cmocka_unit_test(kernels_run_a_little_into_a_job_that_has_time),
		cmocka_unit_test(guard_bands_are_planned_where_they_save_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
