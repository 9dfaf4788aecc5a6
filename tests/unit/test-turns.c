/*
 * test-turns.c: whose turn it is on a GPU without MPS, and who takes none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/preempt/slices.h"
#include "daemon/preempt/turns.h"
#include "proto/board.h"

#define OPENED (UINT64_C(1) << 32)
#define MS     NSEC_PER_MSEC
#define TURN   (20 * MS)

static struct rule rule;
static struct turns turns;
static nsec_t now;

static int setup(void **state) {
	memset(&rule, 0, sizeof(rule));
	memset(&turns, 0, sizeof(turns));
	now = 1000 * MS;
	return 0;
}

/* An owner with a group on GPU 0, and with a job open. @turn: 0: it takes none. */
static unsigned add(uint64_t urgency, nsec_t turn) {
	int owner = rule_add_owner(&rule, urgency, 0);

	assert_true(owner >= 0);
	assert_true(rule_add_group(&rule, (unsigned)owner, 0) >= 0);
	rule.owners[owner].turn = turn;
	rule.owners[owner].turn_state[0] = turn > 0 ? BOARD_TURN_TAKES : 0;
	rule.owners[owner].jobs[0] = OPENED + 1;
	return (unsigned)owner;
}

static void open_job(unsigned owner) {
	rule.owners[owner].jobs[0] += OPENED + 1;
}

static void close_job(unsigned owner) {
	rule.owners[owner].jobs[0] -= 1;
}

static uint32_t n_open_jobs(unsigned owner) {
	return (uint32_t)rule.owners[owner].jobs[0];
}

static bool look(void) {
	rule_look(&rule, 0, now);
	return turns_look(&turns, &rule, 0, now);
}

/* Looks as often as wanted for so long. Return: turns that have begun. */
static unsigned pass(nsec_t ns) {
	unsigned changes = look();

	for (nsec_t end = now + ns; now < end;) {
		nsec_t again = turns_again(&turns);

		now = again < end ? again : end;
		changes += look();
	}
	return changes;
}

static unsigned n_waiting(void) {
	unsigned n = 0;

	for (unsigned i = 0; i < rule.n_owners; i++) {
		n += rule.owners[i].waits[0];
	}
	return n;
}

static void all_but_one_wait(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), c = add(1, TURN), urgent = add(2, 0);
	unsigned had[3] = {0};

	assert_int_equal(pass(TURNS_WINDOW_NS - 1), 0); /* nobody is known to be busy */
	assert_int_equal(n_waiting(), 0);
	close_job(urgent);
	for (nsec_t end = now + 600 * MS; now < end; now += MS) {
		if (now % (100 * MS) == 0) {
			open_job(urgent); /* now and then it works */
			close_job(urgent);
		}
		look();
		if (n_waiting() > 0) {
			assert_int_equal(n_waiting(), 2);
			had[0] += !rule.owners[a].waits[0];
			had[1] += !rule.owners[b].waits[0];
			had[2] += !rule.owners[c].waits[0];
		}
		assert_false(rule.owners[urgent].waits[0]);
	}
	for (unsigned i = 0; i < 3; i++) { /* equally long */
		assert_in_range(had[i], 180, 220);
	}
}

static void nobody_waits_without_reason(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), urgent;

	assert_int_equal(pass(500 * MS), 0);
	assert_int_equal(n_waiting(), 0); /* nobody is urgent */
	assert_true(turns_again(&turns) == RULE_NEVER);
	urgent = add(2, 0);
	assert_true(pass(500 * MS) > 0);
	assert_int_equal(n_waiting(), 1);
	close_job(urgent); /* it rests */
	pass(SLICES_QUIET_NS + MS);
	assert_int_equal(n_waiting(), 0);
	assert_true(turns_again(&turns) == RULE_NEVER);
	open_job(urgent);
	assert_true(pass(500 * MS) > 0);
	assert_int_equal(n_waiting(), 1);
	add(3, 0); /* a second one: each would need its own */
	pass(0);
	assert_int_equal(n_waiting(), 0);
	rule_remove_owner(&rule, rule.n_owners - 1);
	assert_true(pass(500 * MS) > 0);
	rule.owners[b].urgency = 0; /* it is less urgent than the other */
	pass(0);
	assert_int_equal(n_waiting(), 0);
	rule.owners[b].urgency = 1;
	assert_true(pass(500 * MS) > 0);
	rule.owners[b].turn_state[0] = 0; /* its driver refuses */
	pass(0);
	assert_int_equal(n_waiting(), 0);
	rule.owners[b].turn_state[0] = BOARD_TURN_TAKES;
	rule.owners[a].turn = 0; /* it has got a deadline */
	pass(500 * MS);
	assert_int_equal(n_waiting(), 0);
}

/* Three quarters of a window make the difference. */
static void who_is_not_busy_never_waits(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), c = add(1, TURN);
	unsigned at = 0;

	add(2, 0);
	close_job(c);
	for (nsec_t end = now + 1000 * MS; now < end; now += 5 * MS, at++) {
		if (at % 20 == 5) {
			open_job(c);
		} else if (at % 20 == 17) { /* 12 of 20 */
			close_job(c);
		}
		look();
		assert_false(rule.owners[c].waits[0]);
	}
	assert_int_equal(n_waiting(), 1);
	if (n_open_jobs(c) == 0) {
		open_job(c);
	}
	pass(250 * MS); /* from now on it is */
	assert_int_equal(n_waiting(), 2);
	close_job(a);
	close_job(b);
	pass(250 * MS);
	assert_int_equal(n_waiting(), 0);
}

static void a_turn_ends_with_its_owner(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), c = add(1, TURN), first;

	add(2, 0);
	pass(TURNS_WINDOW_NS);
	assert_int_equal(n_waiting(), 2);
	first = !rule.owners[a].waits[0] ? a : !rule.owners[b].waits[0] ? b : c;
	rule_remove_owner(&rule, first);
	look();
	assert_int_equal(n_waiting(), 1);
	rule_remove_owner(&rule, first == a ? b : a);
	look();
	assert_int_equal(n_waiting(), 0);
}

/* It ends when that job is over, and after two turns at the latest. */
static void no_turn_ends_beside_an_urgent_job(void **state) {
	unsigned urgent;
	nsec_t began;

	add(1, TURN);
	add(1, TURN);
	urgent = add(2, 0);
	pass(TURNS_WINDOW_NS);
	began = now;
	assert_int_equal(n_waiting(), 1);
	assert_int_equal(pass(TURN - MS), 0);
	assert_false(turns_want_end(&turns));
	assert_true(turns_again(&turns) == began + TURN);
	assert_int_equal(pass(TURN), 0);
	assert_true(turns_want_end(&turns));
	now = began + 2 * TURN;
	assert_true(look());
	assert_false(turns_want_end(&turns));
	began = now;
	now = began + TURN + MS;
	assert_false(look());
	close_job(urgent);
	assert_true(look());
}

/* A turn becomes due between two jobs: when the last one ended is not known, for it was not asked
 * to say so, and the next one may open at once. */
static void no_turn_ends_long_after_an_urgent_job(void **state) {
	unsigned urgent;
	nsec_t due;

	add(1, TURN);
	add(1, TURN);
	urgent = add(2, 0);
	pass(TURNS_WINDOW_NS);
	due = now + TURN;
	assert_int_equal(pass(TURN - MS), 0);
	close_job(urgent);
	now = due;
	assert_false(look());
	assert_true(turns_want_end(&turns));
	now += MS;
	open_job(urgent);
	assert_false(look());
	now += MS;
	close_job(urgent);
	assert_true(look());
	assert_int_equal(n_waiting(), 1);
}

/* Jobs open every 3 ms. */
static void no_turn_ends_shortly_before_an_urgent_job(void **state) {
	unsigned urgent;
	nsec_t opened, began;

	add(1, TURN);
	add(1, TURN);
	urgent = add(2, 0);
	pass(TURNS_WINDOW_NS);
	began = now;
	for (opened = now; opened < began + TURN; opened += 3 * MS) {
		close_job(urgent);
		now = opened;
		open_job(urgent);
		assert_false(look());
	}
	opened -= 3 * MS;
	now = began + TURN + MS / 2; /* 2.5 ms after the job has opened */
	assert_true(now == opened + 5 * MS / 2);
	assert_false(look());
	assert_true(turns_want_end(&turns));
	close_job(urgent);
	assert_false(look()); /* it may have ended some time ago */
	now = opened + 3 * MS;
	open_job(urgent);
	assert_false(look());
	now += 2 * MS;
	close_job(urgent);
	assert_true(look());

	/* None ends any more. */
	began = now;
	opened = began + 2 * TURN + MS / 2;
	for (now = opened - 30 * MS; now < opened; now += 15 * MS) {
		open_job(urgent);
		assert_false(look());
	}
	now = began + 2 * TURN;
	assert_false(look());
	now = opened;
	open_job(urgent);
	assert_true(look());
}

/* One that leaves by itself is told some time before the next one goes on, so that it is off by
 * then. */
static void one_stays_until_the_next_goes_on(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), first, next, urgent;

	urgent = add(2, 0);
	rule.slices_suffice[0] = true;
	rule.groups[a].slice = rule.groups[b].slice = SLICES_SHORT_NS;
	pass(TURNS_WINDOW_NS);
	assert_int_equal(n_waiting(), 1);
	close_job(urgent);
	for (unsigned i = 0; i < 3; i++) {
		next = rule.owners[a].waits[0] ? a : b;
		first = next == a ? b : a;
		assert_true(turns.owners[next].stays);
		assert_int_equal(pass(TURN / 2), 0);
		open_job(urgent);
		assert_int_equal(pass(TURN / 2), 0);
		close_job(urgent);
		assert_true(look());
		assert_true(rule.owners[first].waits[0] && turns.owners[first].stays);
		assert_true(rule.owners[next].waits[0]);
		assert_true(turns_again(&turns) == now + TURNS_HAND_OVER_NS);
		now += TURNS_HAND_OVER_NS - 1;
		assert_false(look());
		assert_int_equal(n_waiting(), 2);
		now++;
		assert_false(look());
		assert_true(rule.owners[first].waits[0]);
		assert_false(rule.owners[next].waits[0]);
	}
	rule.groups[next].slice = 0; /* it would keep the GPU for too long */
	assert_int_equal(pass(TURN / 2), 0);
	open_job(urgent);
	assert_int_equal(pass(TURN / 2), 0);
	close_job(urgent);
	assert_true(look());
	assert_true(rule.owners[next].waits[0] && !turns.owners[next].stays);
	assert_false(rule.owners[first].waits[0]);
	rule.slices_suffice[0] = false;
	assert_int_equal(pass(TURN / 2), 0);
	open_job(urgent);
	assert_int_equal(pass(TURN / 2), 0);
	close_job(urgent);
	assert_true(look());
	assert_true(rule.owners[first].waits[0] && !turns.owners[first].stays);
	assert_false(rule.owners[next].waits[0]);
}

static void a_group_that_is_off_is_not_preempted(void **state) {
	unsigned a = add(1, TURN), b = add(1, TURN), waiting;
	nsec_t again;

	add(2, 0);
	pass(TURNS_WINDOW_NS);
	waiting = rule.owners[a].waits[0] ? a : b;
	assert_true(slices_wanted(&rule, 0, now) == SLICES_SHORT_NS); /* as beside one */
	for (unsigned i = 0; i < 2; i++) {			      /* not off yet */
		int group = rule_next(&rule, 0, now, &again);

		assert_true(group != RULE_NONE);
		rule_done(&rule, group, now, now + 1);
	}
	now += RULE_AGAIN_NS + RULE_PAUSE_NS;
	rule.owners[waiting].turn_state[0] |= BOARD_TURN_OFF;
	assert_int_equal(rule_next(&rule, 0, now, &again), waiting == a ? b : a);
	rule_done(&rule, (int)(waiting == a ? b : a), now, now + 1);
	assert_int_equal(rule_next(&rule, 0, now, &again), RULE_NONE);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(all_but_one_wait),
		CASE(nobody_waits_without_reason),
		CASE(who_is_not_busy_never_waits),
		CASE(a_turn_ends_with_its_owner),
		CASE(no_turn_ends_beside_an_urgent_job),
		CASE(no_turn_ends_long_after_an_urgent_job),
		CASE(no_turn_ends_shortly_before_an_urgent_job),
		CASE(one_stays_until_the_next_goes_on),
		CASE(a_group_that_is_off_is_not_preempted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
