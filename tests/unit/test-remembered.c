/*
 * test-remembered.c: which programs go on from which.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/session/remembered.h"

static struct remembered remembered;

static const struct remembered_program camera = {
	.uid = 7, .program = "vision", .task = "camera", .period = 5, .deadline = 4};

static const struct work_seen seen = {.jobs = 11, .launches = 22};

static int forget(void **state) {
	remembered = (struct remembered){0};
	return 0;
}

/* Return: the line; 0: nobody. */
static uint64_t take(const struct remembered_program *who, nsec_t now) {
	struct work_seen what;
	uint64_t line = 0;

	if (remembered_take(&remembered, who, now, &line, &what)) {
		assert_int_equal(what.jobs, seen.jobs);
	}
	return line;
}

static void the_same_program_goes_on_once(void **state) {
	struct remembered_program others[] = {camera, camera, camera, camera, camera};

	(void)state;
	others[0].uid++;
	others[1].program[0] = 'V';
	others[2].task[0] = 'C';
	others[3].period++;
	others[4].deadline++;
	remembered_add(&remembered, &camera, 3, &seen, 100);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(take(&others[i], 200), 0);
	}
	assert_int_equal(take(&camera, 200), 3);
	assert_int_equal(take(&camera, 200), 0);
}

static void of_several_the_last_one_counts(void **state) {
	(void)state;
	remembered_add(&remembered, &camera, 3, &seen, 100);
	remembered_add(&remembered, &camera, 4, &seen, 300);
	remembered_add(&remembered, &camera, 5, &seen, 200);
	assert_int_equal(take(&camera, 400), 4);
	assert_int_equal(take(&camera, 400), 5);
	assert_int_equal(take(&camera, 400), 3);
}

static void it_is_forgotten_after_a_while(void **state) {
	(void)state;
	remembered_add(&remembered, &camera, 3, &seen, 100);
	assert_int_equal(take(&camera, 101 + REMEMBERED_FOR), 0);
	assert_int_equal(take(&camera, 100 + REMEMBERED_FOR), 3);
}

static void the_oldest_make_room(void **state) {
	struct remembered_program who = camera;

	(void)state;
	for (unsigned i = 0; i < REMEMBERED_MAX + 2; i++) {
		who.period = i;
		remembered_add(&remembered, &who, i + 1, &seen, 100 + i);
	}
	for (unsigned i = 0; i < REMEMBERED_MAX + 2; i++) {
		who.period = i;
		assert_int_equal(take(&who, 1000), i < 2 ? 0 : i + 1);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_same_program_goes_on_once, forget),
		cmocka_unit_test_setup(of_several_the_last_one_counts, forget),
		cmocka_unit_test_setup(it_is_forgotten_after_a_while, forget),
		cmocka_unit_test_setup(the_oldest_make_room, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
