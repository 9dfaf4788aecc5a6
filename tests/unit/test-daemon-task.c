/*
 * test-daemon-task.c: a task's name, and the releases and deadlines of its jobs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/task.h"
#include "proto/validate.h"

#define START 1000000000ull

static struct task make(nsec_t period, nsec_t deadline, nsec_t offset) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct task task;

	spec.period_ns = period;
	spec.deadline_ns = deadline;
	spec.offset_ns = offset;
	task_init(&task, &spec, "app", START);
	return task;
}

static void task_is_named_after_its_program(void **state) {
	static const struct {
		const char *program, *name;
	} cases[] = {
		{"app", "app"},
		{"my app", "my_app"},
		{".hidden", "_hidden"},
		{"-x", "_x"},
		{"a.out", "a.out"},
		{"", "unnamed"},
		{"\xc3\xa9t\xc3\xa9", "__t__"},
	};
	struct task task;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		task_init(&task, NULL, cases[i].program, START);
		assert_string_equal(task.name, cases[i].name);
		assert_int_equal(validate_name(task.name), 0);
	}
}

static void task_keeps_what_was_declared(void **state) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	char name[] = "camera";
	struct task task;

	spec.name = name;
	spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	spec.priority = -7;
	task_init(&task, &spec, "app", START);
	assert_string_equal(task.name, "camera");
	assert_int_equal(task.task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	assert_int_equal(task.priority, -7);
}

static void task_without_period_is_released_when_opened(void **state) {
	struct task task = make(0, 0, 0);

	assert_int_equal(task_release(&task, START + 5), START + 5);
	assert_int_equal(task_deadline(&task, START + 5), 0);
	task = make(0, 30, 0);
	assert_int_equal(task_deadline(&task, task_release(&task, START + 5)), START + 35);
}

static void task_deadline_is_the_period_unless_declared(void **state) {
	struct task task = make(100, 0, 0);

	assert_int_equal(task_deadline(&task, START), START + 100);
	task = make(100, 60, 0);
	assert_int_equal(task_deadline(&task, START), START + 60);
}

static void task_with_offset_keeps_to_its_grid(void **state) {
	struct task task = make(800, 0, 300);

	assert_int_equal(task_release(&task, START + 10),
			 START + 10); /* before the first release */
	assert_int_equal(task_release(&task, START + 300), START + 300);
	assert_int_equal(task_release(&task, START + 301), START + 300);
	assert_int_equal(task_release(&task, START + 1099), START + 300);
	assert_int_equal(task_release(&task, START + 1100), START + 1100);
	assert_int_equal(task_release(&task, START + 300 + 8000000), START + 300 + 8000000);
}

static void task_without_offset_starts_its_grid_with_the_first_job(void **state) {
	struct task task = make(800, 0, 0);

	assert_int_equal(task_release(&task, START + 123), START + 123);
	assert_int_equal(task_release(&task, START + 500), START + 123);
	assert_int_equal(task_release(&task, START + 930), START + 923);
}

/* The first job of a program is often late: then all others seem early. */
static void task_without_offset_moves_its_grid_to_early_jobs(void **state) {
	struct task task = make(800, 0, 0);

	assert_int_equal(task_release(&task, START + 50), START + 50);
	assert_int_equal(task_release(&task, START + 800), START + 800);
	assert_int_equal(task_release(&task, START + 1605), START + 1600);
	assert_int_equal(task_release(&task, START + 1600 + 700),
			 START + 2300); /* the last eighth */
	assert_int_equal(task_release(&task, START + 2300 + 699), START + 2300);
}

/* A job that opens at @at and is over soon. */
static nsec_t job_at(struct task *task, nsec_t at) {
	nsec_t release = task_release(task, at);

	task_idle(task, at + 10);
	return release;
}

/* It warms up, then waits for whatever its period begins with. */
static void task_grid_follows_a_program_that_is_steadily_behind(void **state) {
	struct task task = make(800, 400, 0);

	assert_int_equal(job_at(&task, START), START);
	assert_int_equal(job_at(&task, START + 20), START);
	assert_int_equal(job_at(&task, START + 800 + 310), START + 800);
	assert_int_equal(job_at(&task, START + 1600 + 305), START + 1600);
	assert_int_equal(job_at(&task, START + 2400 + 300), START + 2700);
	assert_int_equal(job_at(&task, START + 3200 + 301), START + 3500);
}

/* One that is now and then in time keeps its grid: the others are late. */
static void task_grid_stays_where_some_job_keeps_to_it(void **state) {
	struct task task = make(800, 400, 0);

	assert_int_equal(job_at(&task, START), START);
	for (unsigned i = 1; i < 30; i++) {
		nsec_t late = i % 3 ? 300 : 100;

		assert_int_equal(job_at(&task, START + i * 800 + late), START + i * 800);
	}
}

/* A job that opens late because the one before it was long says nothing of the grid. */
static void task_grid_stays_while_jobs_queue_up(void **state) {
	struct task task = make(800, 400, 0);
	nsec_t at = START;

	for (unsigned i = 0; i < 10; i++, at += 800) {
		assert_int_equal(task_release(&task, at + (i ? 150 : 0)), at);
		task_idle(&task, at + 800 + 149);
	}
}

static void task_grid_begins_anew_after_two_periods_of_rest(void **state) {
	struct task task = make(800, 400, 0), fixed = make(800, 0, 300);

	assert_int_equal(job_at(&task, START), START);
	assert_int_equal(job_at(&task, START + 10 + 1599), START + 1600);
	assert_int_equal(job_at(&task, START + 2800), START + 2400);
	assert_int_equal(job_at(&task, START + 10000), START + 10000);
	assert_int_equal(job_at(&task, START + 10800), START + 10800);
	assert_int_equal(job_at(&fixed, START + 300), START + 300);
	assert_int_equal(job_at(&fixed, START + 300 + 8500), START + 300 + 8000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_is_named_after_its_program),
		cmocka_unit_test(task_keeps_what_was_declared),
		cmocka_unit_test(task_without_period_is_released_when_opened),
		cmocka_unit_test(task_deadline_is_the_period_unless_declared),
		cmocka_unit_test(task_with_offset_keeps_to_its_grid),
		cmocka_unit_test(task_without_offset_starts_its_grid_with_the_first_job),
		cmocka_unit_test(task_without_offset_moves_its_grid_to_early_jobs),
		cmocka_unit_test(task_grid_follows_a_program_that_is_steadily_behind),
		cmocka_unit_test(task_grid_stays_where_some_job_keeps_to_it),
		cmocka_unit_test(task_grid_stays_while_jobs_queue_up),
		cmocka_unit_test(task_grid_begins_anew_after_two_periods_of_rest),
	};

	return cmocka_run_group_tests_name("daemon-task", tests, NULL, NULL);
}
