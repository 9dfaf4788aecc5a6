/* test-account.c: a GPU's energy by the model, while jobs come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/watch/account.h"

#define S NSEC_PER_SEC

static const struct power_gpu power = {8, 10000, 500};

static uint64_t at(const struct account_gpu *g, nsec_t time) {
	uint64_t mj = 0;

	assert_true(account_gpu_at(g, time, &mj));
	return mj;
}

static void energy_is_the_integral(void **state) {
	struct account_gpu g;

	account_gpu_init(&g, &power, 5 * S);
	assert_int_equal(at(&g, 6 * S), 10000);
	account_gpu_add(&g, 4, 8000, 7 * S);	 /* 10 + 8 + 4 * 0.5 W */
	account_gpu_add(&g, 2, 3000, 8 * S);	 /* 10 + 11 + 2 * 0.5 W */
	account_gpu_remove(&g, 4, 8000, 10 * S); /* 10 + 3 + 6 * 0.5 W */
	account_gpu_remove(&g, 2, 3000, 11 * S);
	assert_int_equal(at(&g, 8 * S), 20000 + 20000);
	assert_int_equal(at(&g, 9 * S), 40000 + 22000); /* while more has happened since */
	assert_int_equal(at(&g, 12 * S), 40000 + 44000 + 16000 + 10000);
	assert_int_equal(account_gpu_unknown(&g, 12 * S), 0);
}

static void jobs_of_unknown_power_are_told(void **state) {
	struct account_gpu g;

	account_gpu_init(&g, &power, 0);
	account_gpu_add(&g, 4, 0, 1 * S);
	account_gpu_add(&g, 4, 0, 2 * S);
	assert_int_equal(account_gpu_unknown(&g, 3 * S), 2 * S);
	account_gpu_remove(&g, 4, 0, 4 * S);
	account_gpu_remove(&g, 4, 0, 5 * S);
	assert_int_equal(account_gpu_unknown(&g, 9 * S), 4 * S);
}

static void what_is_not_known_is_not_told(void **state) {
	static const struct power_gpu unknown = {8, 0, 0};
	struct account_gpu g;
	uint64_t mj;

	account_gpu_init(&g, &unknown, 0);
	assert_false(account_gpu_at(&g, S, &mj));
	account_gpu_init(&g, &power, S);
	assert_false(account_gpu_at(&g, S - 1, &mj));
	for (nsec_t i = 0; i < ACCOUNT_POINTS; i++) {
		account_gpu_add(&g, 1, 1, (2 + 2 * i) * S);
		account_gpu_remove(&g, 1, 1, (3 + 2 * i) * S);
	}
	assert_false(account_gpu_at(&g, 2 * S, &mj)); /* forgotten */
	assert_true(account_gpu_at(&g, (2 + ACCOUNT_POINTS) * S, &mj));
}

static void years_do_not_overflow(void **state) {
	static const struct power_gpu big = {8, 1000000, 0};
	struct account_gpu g;

	account_gpu_init(&g, &big, 0);
	assert_int_equal(at(&g, 10 * 365 * 86400ull * S), 10 * 365 * 86400ull * 1000000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(energy_is_the_integral),
		cmocka_unit_test(jobs_of_unknown_power_are_told),
		cmocka_unit_test(what_is_not_known_is_not_told),
		cmocka_unit_test(years_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
