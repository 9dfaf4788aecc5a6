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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_is_named_after_its_program),
		cmocka_unit_test(task_keeps_what_was_declared),
		cmocka_unit_test(task_without_period_is_released_when_opened),
		cmocka_unit_test(task_deadline_is_the_period_unless_declared),
		cmocka_unit_test(task_with_offset_keeps_to_its_grid),
		cmocka_unit_test(task_without_offset_starts_its_grid_with_the_first_job),
		cmocka_unit_test(task_without_offset_moves_its_grid_to_early_jobs),
	};

	return cmocka_run_group_tests_name("daemon-task", tests, NULL, NULL);
}
