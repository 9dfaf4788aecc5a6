/*
 * test-client-letters.c: a task's letter in the maps of SMs: its own, and the same for as long as
 * it is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/live/letters.h"
#include "client/live/snapshot.h"

#define TASKS_MAX 40

/* What the tasks @names, NULL at the end, are given, in one word. */
static const char *give(struct letters *l, const char *const *names) {
	static char given[TASKS_MAX + 1];
	struct snapshot_task tasks[TASKS_MAX] = {0};
	struct snapshot s = {.tasks = tasks};

	for (; *names; names++) {
		tasks[s.n_tasks++].name = *names;
	}
	assert_int_equal(letters_give(l, &s), 0);
	for (size_t i = 0; i < s.n_tasks; i++) {
		given[i] = tasks[i].letter;
	}
	given[s.n_tasks] = '\0';
	return given;
}

#define GIVE(l, ...) give(l, (const char *const[]){__VA_ARGS__, NULL})

static void a_task_gets_a_letter_of_its_name(void **state) {
	struct letters l = {0};

	assert_string_equal(GIVE(&l, "camera", "planner", "train"), "CPT");
	letters_deinit(&l);
	assert_string_equal(GIVE(&l, "camera", "canny", "caaaa", "42"), "CABD");
	letters_deinit(&l);
}

static void a_letter_stays_whoever_comes_and_goes(void **state) {
	struct letters l = {0};

	assert_string_equal(GIVE(&l, "camera", "canny"), "CA");
	assert_string_equal(GIVE(&l, "canny"), "A");
	assert_string_equal(GIVE(&l, "arm", "canny"), "RA");
	assert_string_equal(GIVE(&l, "canny", "camera", "arm"), "ACR");
	letters_deinit(&l);
}

static void beyond_the_alphabet_there_is_none(void **state) {
	static char names[TASKS_MAX][8];
	const char *list[TASKS_MAX + 1] = {NULL};
	struct letters l = {0};
	const char *given;

	for (size_t i = 0; i < 28; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		list[i] = names[i];
	}
	given = give(&l, list);
	assert_string_equal(given, "ABCDEFGHIJKLMNOPQRSTUVWXYZ++");
	/* Who has none gets the first that is free. */
	assert_string_equal(GIVE(&l, "27", "1"), "AB");
	letters_deinit(&l);
}

static void a_job_has_the_letter_of_its_task(void **state) {
	Sbeet__Control__Job job = SBEET__CONTROL__JOB__INIT, other = SBEET__CONTROL__JOB__INIT;
	Sbeet__Control__Job *jobs[] = {&job, &other};
	struct snapshot_task task = {.name = "camera"};
	char given[2];
	struct snapshot s = {
		.tasks = &task, .n_tasks = 1, .jobs = jobs, .n_jobs = 2, .letters = given};
	struct letters l = {0};

	job.task = (char *)"camera";
	other.task = (char *)"nobody's";
	assert_int_equal(letters_give(&l, &s), 0);
	assert_int_equal(given[0], 'C');
	assert_int_equal(given[1], LETTER_NONE);
	letters_deinit(&l);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_gets_a_letter_of_its_name),
		cmocka_unit_test(a_letter_stays_whoever_comes_and_goes),
		cmocka_unit_test(beyond_the_alphabet_there_is_none),
		cmocka_unit_test(a_job_has_the_letter_of_its_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
