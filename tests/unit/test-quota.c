/*
 * test-quota.c: charges per user are bounded and independent, and accounts outlive connections for
 * as long as something is owed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/base/quota.h"

#define NOW (1000 * NSEC_PER_SEC)

static const struct quota_limits limits = {
	.most = {[QUOTA_SESSIONS] = 2, [QUOTA_JOBS] = 10, [QUOTA_BYTES] = UINT64_MAX},
};

static void quota_charges_up_to_the_limit(void **state) {
	struct quota_user *user;
	struct quota *quota;

	assert_int_equal(quota_new(&quota, &limits), 0);
	assert_int_equal(quota_user_ref(quota, 1000, NOW, &user), 0);
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
	assert_int_equal(quota_user_ref(quota, 0, NOW, &user), 0);
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
	assert_int_equal(quota_user_ref(quota, 1, NOW, &a), 0);
	assert_int_equal(quota_user_ref(quota, 2, NOW, &b), 0);
	assert_int_equal(quota_user_ref(quota, 1, NOW, &again), 0);
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

static struct quota *make(uint64_t rate) {
	const struct quota_limits with_rate = {.rate = rate};
	struct quota *quota;

	assert_int_equal(quota_new(&quota, &with_rate), 0);
	return quota;
}

static struct quota_user *hold(struct quota *quota, uid_t uid, nsec_t now) {
	struct quota_user *user;

	assert_int_equal(quota_user_ref(quota, uid, now, &user), 0);
	return user;
}

/* Packets of one connection that are read without waiting. */
static unsigned send_packets(struct quota *quota, uid_t uid, nsec_t now) {
	struct quota_user *user = hold(quota, uid, now);
	nsec_t wait = 0;
	unsigned n = 0;

	if (quota_first_packet(user, now, &wait) == 0) {
		while (wait == 0) {
			n++;
			wait = quota_packet(user, now);
		}
	}
	quota_user_unref(user);
	return n;
}

static void quota_keeps_the_rate_over_reconnections(void **state) {
	struct quota *quota = make(100);

	assert_int_equal(send_packets(quota, 1000, NOW), 100);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(send_packets(quota, 1000, NOW), 0);
	}
	assert_int_equal(send_packets(quota, 1001, NOW), 100);
	assert_int_equal(send_packets(quota, 1000, NOW + 10 * NSEC_PER_SEC), 100);
	quota_free(quota);
}

/* A fifth of the time, whoever of the user asks, also after all connections have gone. */
static void quota_lets_others_have_most_of_the_time(void **state) {
	struct quota *quota = make(0);
	struct quota_user *user = hold(quota, 1000, NOW), *other = hold(quota, 1001, NOW);
	const nsec_t took = 100 * NSEC_PER_USEC;

	quota_answered(user, took, NOW);
	quota_answered(user, took, NOW);
	assert_int_equal(quota_answers_owed(user, NOW), 0);
	quota_user_unref(user);
	user = hold(quota, 1000, NOW);
	for (unsigned i = 1; i <= 10; i++) {
		quota_answered(user, took, NOW);
		assert_int_equal(quota_answers_owed(user, NOW), i * 5 * took);
	}
	assert_int_equal(quota_answers_owed(other, NOW), 0);
	assert_int_equal(quota_answers_owed(user, NOW + 50 * took), 0);
	quota_user_unref(user);
	quota_user_unref(other);
	quota_free(quota);
}

/* First packets wait their turn, each behind those before it, up to the bound. */
static void quota_refuses_connections_that_would_wait_too_long(void **state) {
	struct quota *quota = make(100);
	struct quota_user *user = hold(quota, 1000, NOW);
	nsec_t wait = 0, before = 0;
	unsigned n = 0;

	while (quota_first_packet(user, NOW, &wait) == 0) {
		assert_true(wait == 0 || wait > before);
		assert_true(++n < 1000);
		before = wait;
	}
	assert_int_equal(n, 100 + 100);
	assert_true(wait == QUOTA_WAIT_MAX);
	assert_int_equal(quota_first_packet(user, NOW + NSEC_PER_SEC, &wait), 0);
	quota_user_unref(user);
	quota_free(quota);
}

static void quota_charges_what_is_done_in_one_piece(void **state) {
	struct quota *quota = make(0);
	struct quota_user *user = hold(quota, 1000, NOW), *other = hold(quota, 1001, NOW);
	unsigned empty = 0, full = 0;

	while (quota_work_owed(user, NOW) == 0) {
		quota_work(user, 1, 0, NOW);
		assert_true(++empty < 100000);
	}
	while (quota_work_owed(other, NOW) == 0) {
		quota_work(other, 1, 512, NOW);
		assert_true(++full < 100000);
	}
	assert_true(full > 1 && full * 10 < empty);
	user = quota_user_unref(user);
	user = hold(quota, 1000, NOW);
	assert_true(quota_work_owed(user, NOW) > 0);
	for (unsigned i = 0; i < 100000; i++) {
		quota_work(user, 1, 512, NOW);
	}
	assert_true(quota_work_owed(user, NOW) == QUOTA_WAIT_MAX);
	assert_true(quota_work_owed(user, NOW + QUOTA_WAIT_MAX) == 0);
	quota_user_unref(user);
	quota_user_unref(other);
	quota_free(quota);
}

static void quota_forgets_users_who_owe_nothing(void **state) {
	struct quota *quota = make(100);

	send_packets(quota, 1000, NOW);
	send_packets(quota, 1001, NOW);
	assert_int_equal(quota_n_users(quota), 2);
	assert_true(quota_empty(quota));
	quota_user_unref(hold(quota, 1002, NOW + 2 * NSEC_PER_SEC + NSEC_PER_SEC / 50));
	assert_int_equal(quota_n_users(quota), 1);
	quota_free(quota);
}

/* Whoever owns many uids pushes out only those that owe less than each of them. */
static void quota_forgets_first_who_owes_least(void **state) {
	struct quota *quota = make(100);
	struct quota_user *user;

	send_packets(quota, 1000, NOW);
	for (uid_t uid = 2000; uid < 2000 + 4 * QUOTA_IDLE_MAX; uid++) {
		user = hold(quota, uid, NOW);
		quota_packet(user, NOW);
		quota_user_unref(user);
		assert_true(quota_n_users(quota) <= QUOTA_IDLE_MAX);
	}
	assert_int_equal(quota_n_users(quota), QUOTA_IDLE_MAX);
	assert_int_equal(send_packets(quota, 1000, NOW), 0);
	quota_free(quota);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quota_charges_up_to_the_limit),
		cmocka_unit_test(quota_does_not_wrap_around),
		cmocka_unit_test(quota_keeps_users_apart),
		cmocka_unit_test(quota_keeps_the_rate_over_reconnections),
		cmocka_unit_test(quota_refuses_connections_that_would_wait_too_long),
		cmocka_unit_test(quota_lets_others_have_most_of_the_time),
		cmocka_unit_test(quota_charges_what_is_done_in_one_piece),
		cmocka_unit_test(quota_forgets_users_who_owe_nothing),
		cmocka_unit_test(quota_forgets_first_who_owes_least),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
