/*
 * test-quota.c: charges per user are bounded, independent, and given back to the last one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/quota.h"

static const struct quota_limits limits = {
	.most = {[QUOTA_SESSIONS] = 2, [QUOTA_JOBS] = 10, [QUOTA_BYTES] = UINT64_MAX},
};

static void quota_charges_up_to_the_limit(void **state) {
	struct quota_user *user;
	struct quota *quota;

	assert_int_equal(quota_new(&quota, &limits), 0);
	assert_int_equal(quota_user_ref(quota, 1000, &user), 0);
	assert_int_equal(quota_charge(user, QUOTA_JOBS, 9), 0);
	assert_int_equal(quota_charge(user, QUOTA_JOBS, 2), QUOTA_E_EXCEEDED);
	assert_int_equal(quota_charged(user, QUOTA_JOBS), 9);
	assert_int_equal(quota_charge(user, QUOTA_JOBS, 1), 0);
	assert_int_equal(quota_charge(user, QUOTA_JOBS, 1), QUOTA_E_EXCEEDED);
	assert_int_equal(quota_charge(user, QUOTA_JOBS, UINT64_MAX), QUOTA_E_EXCEEDED);
	assert_int_equal(quota_charge(user, QUOTA_SESSIONS, 2), 0); /* kinds do not mix */
	quota_release(user, QUOTA_JOBS, 10);
	quota_release(user, QUOTA_SESSIONS, 2);
	assert_int_equal(quota_charged(user, QUOTA_JOBS), 0);
	assert_null(quota_user_unref(user));
	assert_true(quota_empty(quota));
	assert_null(quota_free(quota));
}

static void quota_does_not_wrap_around(void **state) {
	struct quota_user *user;
	struct quota *quota;

	assert_int_equal(quota_new(&quota, &limits), 0);
	assert_int_equal(quota_user_ref(quota, 0, &user), 0);
	assert_int_equal(quota_charge(user, QUOTA_BYTES, UINT64_MAX - 1), 0);
	assert_int_equal(quota_charge(user, QUOTA_BYTES, 2), QUOTA_E_EXCEEDED);
	quota_release(user, QUOTA_BYTES, UINT64_MAX - 1);
	quota_user_unref(user);
	quota_free(quota);
}

static void quota_keeps_users_apart(void **state) {
	struct quota_user *a, *b, *again;
	struct quota *quota;

	assert_int_equal(quota_new(&quota, &limits), 0);
	assert_int_equal(quota_user_ref(quota, 1, &a), 0);
	assert_int_equal(quota_user_ref(quota, 2, &b), 0);
	assert_int_equal(quota_user_ref(quota, 1, &again), 0);
	assert_ptr_equal(a, again);
	assert_ptr_not_equal(a, b);
	assert_int_equal(quota_charge(a, QUOTA_SESSIONS, 2), 0);
	assert_int_equal(quota_charge(again, QUOTA_SESSIONS, 1), QUOTA_E_EXCEEDED);
	assert_int_equal(quota_charge(b, QUOTA_SESSIONS, 2), 0);
	quota_release(b, QUOTA_SESSIONS, 2);
	quota_user_unref(b);
	quota_user_unref(again);
	assert_false(quota_empty(quota));
	assert_int_equal(quota_charged(a, QUOTA_SESSIONS), 2);
	quota_release(a, QUOTA_SESSIONS, 2);
	quota_user_unref(a);
	assert_true(quota_empty(quota));
	quota_user_unref(NULL);
	quota_free(quota);
	quota_free(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quota_charges_up_to_the_limit),
		cmocka_unit_test(quota_does_not_wrap_around),
		cmocka_unit_test(quota_keeps_users_apart),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
