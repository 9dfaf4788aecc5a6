/*
 * test-gate.c: who comes and goes too often waits, for a bounded time, and nobody else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/base/gate.h"

#define NOW (1000 * NSEC_PER_SEC)

static const struct ucred someone = {.pid = 100, .uid = 1000}, other = {.pid = 101, .uid = 1000};

static struct gate *make(void) {
	struct gate *gate;

	assert_int_equal(gate_new(&gate), 0);
	return gate;
}

/* Comes and goes until it has to wait. Return: how often it did. */
static unsigned wear_out(struct gate *gate, const struct ucred *cred, bool faulty) {
	unsigned n = 0;

	while (gate_enter(gate, cred, NOW) == 0) {
		gate_leave(gate, cred, 0, faulty, NOW);
		assert_true(++n < 10000);
	}
	gate_waited(gate, cred);
	return n;
}

static void gate_lets_in_who_stays(void **state) {
	struct gate *gate = make();

	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(gate_enter(gate, &someone, NOW), 0);
	}
	assert_null(gate_free(gate));
}

static void gate_slows_down_who_comes_and_goes(void **state) {
	struct gate *gate = make();
	unsigned n = wear_out(gate, &someone, false);

	assert_in_range(n, 20, 1000);
	assert_int_equal(gate_enter(gate, &other, NOW), 0); /* the same user's, another process */
	gate_free(gate);
	gate = make();
	assert_in_range(wear_out(gate, &someone, true), n / 10, n / 2); /* faults count more */
	gate_leave(gate, &other, 100000, false, NOW); /* and jobs that are left behind */
	assert_true(gate_enter(gate, &other, NOW) > 0);
	gate_free(gate);
}

static void gate_forgives_in_time(void **state) {
	struct gate *gate = make();

	wear_out(gate, &someone, false);
	assert_int_equal(gate_enter(gate, &someone, NOW + GATE_WAIT_MAX), 0);
	gate_free(gate);
}

static void gate_waits_grow_to_a_bound(void **state) {
	struct gate *gate = make();
	nsec_t before = 0, wait;

	wear_out(gate, &someone, false);
	for (unsigned i = 0; i < 10000; i++) {
		wait = gate_enter(gate, &someone, NOW);
		gate_waited(gate, &someone);
		gate_leave(gate, &someone, 0, true, NOW);
		assert_true(wait >= before && wait > 0 && wait <= GATE_WAIT_MAX);
		before = wait;
	}
	assert_int_equal(wait, GATE_WAIT_MAX);
	gate_free(gate);
}

static void gate_bounds_those_that_wait(void **state) {
	struct gate *gate = make();

	wear_out(gate, &someone, false);
	for (unsigned i = 0; i < GATE_WAITING_MAX; i++) {
		assert_true(gate_enter(gate, &someone, NOW) <= GATE_WAIT_MAX);
	}
	assert_true(gate_enter(gate, &someone, NOW) == GATE_FULL);
	assert_int_equal(gate_enter(gate, &other, NOW), 0);
	gate_waited(gate, &someone);
	assert_true(gate_enter(gate, &someone, NOW) <= GATE_WAIT_MAX);
	gate_free(gate);
}

static void gate_forgets_those_who_owe_least(void **state) {
	struct gate *gate = make();

	wear_out(gate, &someone, true);
	for (pid_t pid = 1000; pid < 6000; pid++) { /* more than there is room for */
		const struct ucred passer_by = {.pid = pid, .uid = 2000};

		gate_leave(gate, &passer_by, 0, false, NOW);
	}
	assert_true(gate_enter(gate, &someone, NOW) > 0);
	gate_free(gate);
}

static void gate_slows_down_mistakes(void **state) {
	struct gate *gate = make();
	unsigned n = 0;

	while (gate_mistake(gate, &someone, NOW) == 0) {
		assert_true(++n < 10000);
	}
	assert_in_range(n, 10, 1000);
	assert_int_equal(gate_mistake(gate, &other, NOW), 0);
	assert_int_equal(gate_mistake(gate, &someone, NOW + NSEC_PER_SEC), 0);
	assert_int_equal(gate_enter(gate, &someone, NOW), 0); /* that is another account */
	gate_free(gate);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_lets_in_who_stays),
		cmocka_unit_test(gate_slows_down_who_comes_and_goes),
		cmocka_unit_test(gate_forgives_in_time),
		cmocka_unit_test(gate_waits_grow_to_a_bound),
		cmocka_unit_test(gate_bounds_those_that_wait),
		cmocka_unit_test(gate_forgets_those_who_owe_least),
		cmocka_unit_test(gate_slows_down_mistakes),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
