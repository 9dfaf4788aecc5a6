/*
 * test-client-children.c: processes that use a GPU for sbeetctl, and fail, die or hang there.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/examine/children.h"

#define GUARD (600 * NSEC_PER_SEC) /* nothing waits for it */

static char error[256];

static int run(unsigned n, children_fn fn, void *userdata, nsec_t limit) {
	*error = '\0';
	return children_run(n, fn, userdata, limit, error, sizeof(error));
}

static int count(void *userdata, unsigned index, char *why, size_t size) {
	atomic_fetch_add((atomic_uint *)userdata, index + 1);
	(void)why;
	(void)size;
	return 0;
}

static void children_all_run(void **state) {
	atomic_uint *sum = children_memory(sizeof(*sum));

	(void)state;
	assert_int_equal(run(3, count, sum, GUARD), 0);
	assert_int_equal(atomic_load(sum), 6);
	assert_string_equal(error, "");
	children_memory_free(sum, sizeof(*sum));
}

/* The others wait for one that never comes. */
static int fail_one(void *userdata, unsigned index, char *why, size_t size) {
	const unsigned *which = userdata;

	if (index == *which) {
		snprintf(why, size, "no memory on the GPU");
		return -1;
	}
	for (;;) {
		pause();
	}
}

static void children_end_when_one_fails(void **state) {
	(void)state;
	for (unsigned which = 0; which < 3; which++) {
		assert_int_equal(run(3, fail_one, &which, GUARD), -EIO);
		assert_string_equal(error, "no memory on the GPU");
	}
}

static int die(void *userdata, unsigned index, char *why, size_t size) {
	(void)userdata;
	(void)why;
	(void)size;
	while (index > 0) {
		pause();
	}
	return raise(SIGKILL);
}

static void children_end_when_one_dies(void **state) {
	(void)state;
	assert_int_equal(run(2, die, NULL, GUARD), -EIO);
	assert_string_equal(error, "process 0 on the GPU was ended by signal 9");
}

static void children_are_given_up_after_the_limit(void **state) {
	unsigned none = 7;

	(void)state;
	assert_int_equal(run(2, fail_one, &none, NSEC_PER_MSEC), -ETIMEDOUT);
	assert_string_equal(error, "the GPU did not answer for 0 s");
}

static void children_are_no_more_than_there_is_room_for(void **state) {
	atomic_uint sum = 0;

	(void)state;
	assert_int_equal(run(17, count, &sum, GUARD), -ENOMEM);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_all_run),
		cmocka_unit_test(children_end_when_one_fails),
		cmocka_unit_test(children_end_when_one_dies),
		cmocka_unit_test(children_are_given_up_after_the_limit),
		cmocka_unit_test(children_are_no_more_than_there_is_room_for),
	};

	return cmocka_run_group_tests_name("client-children", tests, NULL, NULL);
}
