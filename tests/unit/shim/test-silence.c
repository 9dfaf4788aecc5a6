/*
 * test-silence.c: after which pauses sbeetd is asked, and counts as stuck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/silence.h"

#define LIMIT 100

static void silence_asks_before_it_gives_up(void **state) {
	struct silence s = {0};

	assert_int_equal(silence_add(&s, 49, LIMIT, 0), SILENCE_WAIT);
	assert_int_equal(silence_add(&s, 1, LIMIT, 0), SILENCE_ASK);
	assert_int_equal(silence_add(&s, 49, LIMIT, 0), SILENCE_WAIT);
	assert_int_equal(silence_add(&s, 1, LIMIT, 0), SILENCE_OVER);
	assert_int_equal(silence_add(&s, 1, LIMIT, 0), SILENCE_OVER);
}

static void silence_gives_an_answer_its_time_after_a_long_pause(void **state) {
	struct silence s = {0};

	assert_int_equal(silence_add(&s, 1000, LIMIT, 0), SILENCE_ASK);
	assert_int_equal(silence_add(&s, 49, LIMIT, 0), SILENCE_WAIT);
	assert_int_equal(silence_add(&s, 1, LIMIT, 0), SILENCE_OVER);
}

static void silence_begins_anew_after_an_answer(void **state) {
	struct silence s = {0};

	for (int i = 0; i < 3; i++) {
		assert_int_equal(silence_add(&s, 99, LIMIT, 0), SILENCE_ASK);
		assert_int_equal(silence_add(&s, 49, LIMIT, 0), SILENCE_WAIT);
		silence_end(&s);
	}
}

static void silence_tells_once_where_it_is_patient(void **state) {
	struct silence s = {0};

	assert_int_equal(silence_add(&s, 50, LIMIT, 30), SILENCE_ASK);
	assert_int_equal(silence_add(&s, 50, LIMIT, 30), SILENCE_TELL);
	assert_int_equal(silence_add(&s, 29, LIMIT, 30), SILENCE_WAIT);
	assert_int_equal(silence_add(&s, 1, LIMIT, 30), SILENCE_OVER);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_asks_before_it_gives_up),
		cmocka_unit_test(silence_gives_an_answer_its_time_after_a_long_pause),
		cmocka_unit_test(silence_begins_anew_after_an_answer),
		cmocka_unit_test(silence_tells_once_where_it_is_patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
