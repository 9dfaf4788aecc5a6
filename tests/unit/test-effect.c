/*
 * test-effect.c: whether preempting and short time slices help, judged by how long jobs take, and
 * what is kept of that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/preempt/effect.h"
#include "daemon/preempt/known.h"

#define US NSEC_PER_USEC

static struct effect effect;
static nsec_t now;

static int setup(void **state) {
	memset(&effect, 0, sizeof(effect));
	now = 1000 * US;
	return 0;
}

/* Jobs that take so long in each way, a tenth more or less, until none is timed any more. Return:
 * how many were. */
static unsigned run_jobs(unsigned others, bool sliced, const nsec_t took[_EFFECT_WAY_N]) {
	unsigned n = 0;

	while (effect_begin(&effect, others, sliced, now)) {
		nsec_t t = took[effect.way];

		now += t - t / 10 + t / 10 * (n % 3);
		effect_end(&effect, true, now);
		n++;
	}
	return n;
}

static void ways_take_turns(void **state) {
	const nsec_t took[] = {2000 * US, 500 * US, 350 * US};

	assert_true(effect_needs_own_slices(&effect, 1));
	assert_int_equal(run_jobs(1, false, took), 2 * EFFECT_JOBS);
	assert_false(effect_needs_own_slices(&effect, 1));
	assert_int_equal(run_jobs(1, true, took), EFFECT_JOBS);
	assert_true(effect_needs_own_slices(&effect, 2));
}

static void a_faster_way_works(void **state) {
	const nsec_t took[] = {2000 * US, 500 * US, 350 * US};

	assert_int_equal(effect_judge(&effect, 1, EFFECT_PREEMPTED), EFFECT_UNKNOWN);
	run_jobs(1, false, took);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_PREEMPTED), EFFECT_WORKS);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_SLICED), EFFECT_UNKNOWN);
	run_jobs(1, true, took);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_SLICED), EFFECT_WORKS);
	assert_int_equal(effect_time(&effect, 1, EFFECT_PREEMPTED), 500 * US);
	assert_int_equal(effect_judge(&effect, 2, EFFECT_PREEMPTED), EFFECT_UNKNOWN);
}

/* Jobs alone take 100 us, which preempting would show. */
static void no_difference_is_no_effect(void **state) {
	nsec_t began = now;

	for (unsigned i = 0; i < 2 * EFFECT_JOBS; i++) {
		assert_true(effect_begin(&effect, 1, false, now));
		now += i % 8 < 2 ? 100 * US : 2000 * US;
		effect_end(&effect, true, now);
	}
	assert_true(now > began);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_PREEMPTED), EFFECT_FAILS);
}

/* Where others delay no job, nothing can be seen. */
static void long_jobs_say_nothing(void **state) {
	const nsec_t took[] = {50000 * US, 49500 * US, 49500 * US};

	run_jobs(1, false, took);
	run_jobs(1, true, took);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_PREEMPTED), EFFECT_UNKNOWN);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_SLICED), EFFECT_UNKNOWN);
}

/* They are cut off: how long they would have been nobody knows. */
static void jobs_beyond_the_limit_say_nothing(void **state) {
	unsigned n = 0;

	while (effect_begin(&effect, 1, n >= 2 * EFFECT_JOBS, now)) {
		now += n % 8 < 2 ? 100 * US : EFFECT_LIMIT_NS;
		effect_end(&effect, true, now);
		n++;
	}
	assert_int_equal(effect_judge(&effect, 1, EFFECT_PREEMPTED), EFFECT_UNKNOWN);
	assert_int_equal(effect_judge(&effect, 1, EFFECT_SLICED), EFFECT_UNKNOWN);
}

static void a_change_in_the_middle_does_not_count(void **state) {
	for (unsigned i = 0; i < 100; i++) {
		assert_true(effect_begin(&effect, 1, false, now));
		now += 10 * US;
		effect_end(&effect, false, now);
	}
	assert_int_equal(effect_time(&effect, 1, EFFECT_LEFT), 0);
	effect_end(&effect, true, now); /* none runs */
	assert_int_equal(effect.cells[0].n[EFFECT_LEFT], 0);
}

static void many_others_are_one_case(void **state) {
	const nsec_t took[] = {8000 * US, 2000 * US, 0};

	run_jobs(7, false, took);
	assert_int_equal(effect_judge(&effect, EFFECT_OTHERS, EFFECT_PREEMPTED), EFFECT_WORKS);
	assert_int_equal(effect_judge(&effect, 100, EFFECT_PREEMPTED), EFFECT_WORKS);
}

/* ---- what is kept ---- */

static char directory[] = "/tmp/sbeet-effect-XXXXXX";
static const uint8_t uuid[PROTO_UUID_BYTES] = {1, 2, 0xab};

static void what_is_known_is_kept(void **state) {
	struct order_gpu gpu = {.effect_ns = {{2000, 500, 300}, {3000, 700, 0}},
				.effect = {{0, EFFECT_WORKS, EFFECT_FAILS}, {0, EFFECT_WORKS, 0}}};
	struct order_gpu back = {.preempted = 7}, none = {0};

	assert_int_equal(known_load(directory, uuid, "580.1", &none), -ENOENT);
	assert_int_equal(known_save(directory, uuid, "580.1", &gpu), 0);
	assert_int_equal(known_load(directory, uuid, "580.1", &back), 0);
	assert_memory_equal(back.effect_ns, gpu.effect_ns, sizeof(gpu.effect_ns));
	assert_memory_equal(back.effect, gpu.effect, sizeof(gpu.effect));
	assert_int_equal(back.preempted, 7);
	/* Another driver may do something else. */
	assert_int_equal(known_load(directory, uuid, "580.2", &none), -ENOENT);
	assert_int_equal(known_load(directory, uuid, "580.10", &none), -ENOENT);
	assert_int_equal(none.effect_ns[0][EFFECT_LEFT], 0);
	assert_int_equal(known_save("/nonexistent", uuid, "580.1", &gpu), -ENOENT);
}

static void garbage_is_not_believed(void **state) {
	static const char *const bad[] = {
		"",
		"580.1\n0 1 1 1 1 1 1\n",
		"580.1\n5 1 1 1 1 1 1\n",
		"580.1\n1 1 1 1 1 1 3\n",
		"580.1\n1 1 1 1 1 1\n",
		"580.1\n1 1 1 1 1 1 1 x\n",
		"580.1\n1 1 1 1 1 1 1\n1 18446744073709551615 1 1 1 1 1\n"};
	struct order_gpu gpu = {0}, none = {0};
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/preempt-0102ab00000000000000000000000000", directory);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(bad[i], f);
		fclose(f);
		assert_int_equal(known_load(directory, uuid, "580.1", &gpu), -EBADMSG);
		assert_memory_equal(&gpu, &none, sizeof(gpu));
	}
	unlink(path);
}

/* Nor waited for, nor read to its end. */
static void what_is_no_small_file_is_not_read(void **state) {
	struct order_gpu gpu = {0}, none = {0};
	char path[128];

	snprintf(path, sizeof(path), "%s/preempt-0102ab00000000000000000000000000", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(known_load(directory, uuid, "580.1", &gpu), -EINVAL);
	unlink(path);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(truncate(path, 1 << 30), 0);
	assert_int_equal(known_load(directory, uuid, "580.1", &gpu), -EFBIG);
	assert_memory_equal(&gpu, &none, sizeof(gpu));
	unlink(path);
	rmdir(directory);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(ways_take_turns),
		CASE(a_faster_way_works),
		CASE(no_difference_is_no_effect),
		CASE(long_jobs_say_nothing),
		CASE(jobs_beyond_the_limit_say_nothing),
		CASE(a_change_in_the_middle_does_not_count),
		CASE(many_others_are_one_case),
		CASE(what_is_known_is_kept),
		CASE(garbage_is_not_believed),
		CASE(what_is_no_small_file_is_not_read),
	};

	if (!mkdtemp(directory)) {
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
