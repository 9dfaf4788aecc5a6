/*
 * test-keeper-copies.c: what the keeper does to board and gate while copies are under way.
 */
#include "shim/real.h"

#include "tests/unit/keeper-world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/seat.h"

static void keeper_announces_copies_until_they_are_done(void **state) {
	struct keeper_copy late = begin(1300 * MS, false), early, none;

	assert_int_equal(slot(OWN), 1300 * MS); /* at once */
	early = begin(1200 * MS, true);
	none = begin(BOARD_NO_DUE, true);
	assert_int_equal(slot(OWN), 1200 * MS);
	let_it_look();
	assert_int_equal(slot(OWN), 1200 * MS);
	finish(&early); /* not in the order in which they began */
	wait_for_slot(1300 * MS);
	finish(&late);
	wait_for_slot(BOARD_NO_DUE); /* all others go first, but they know of it */
	let_it_look();
	assert_true(is_open(&none));
	finish(&none);
	wait_for_slot(0);
}

/* The keeper need not be awake for that, until the copy is on its way. */
static void copies_are_announced_before_they_are_handed_over(void **state) {
	struct keeper_copy copy = {.gpu = GPU, .due = 1300 * MS, .held = true};

	assert_true(keeper_begin(context, &copy));
	assert_int_equal(slot(OWN), 1300 * MS);
	assert_true(is_open(&copy));
	keeper_cancel(&copy); /* nor was it */
	wait_for_slot(0);
}

/* What decides whether a short copy is worth an announcement. */
static void others_are_seen_to_copy(void **state) {
	struct keeper_copy copy = begin(1300 * MS, true); /* our own don't count */

	assert_false(keeper_others_copy(GPU));
	announce(9, BOARD_NO_DUE);
	assert_true(keeper_others_copy(GPU));
	assert_false(keeper_others_copy(GPU + 1));
	announce(9, 0);
	assert_false(keeper_others_copy(GPU));
	finish(&copy);
}

static void gate_is_closed_while_an_earlier_copy_is_on_the_board(void **state) {
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	assert_false(is_open(&copy)); /* before the first piece is handed over */
	for (int i = 0; i < 20; i++) {
		let_it_look();
		assert_false(is_open(&copy)); /* the clock stands still */
	}
	announce(9, 0);
	while (!is_open(&copy)) {
		usleep(100);
	}
	announce(9, 1250 * MS); /* later than ours */
	let_it_look();
	assert_true(is_open(&copy));
	announce(10, 1150 * MS); /* another one, in the middle */
	while (is_open(&copy)) {
		usleep(100);
	}
	finish(&copy);
	while (!is_open(&copy)) { /* at rest it is open */
		usleep(100);
	}
}

/* A piece would still run when it comes. */
static void gate_is_closed_before_a_copy_that_is_expected(void **state) {
	struct board_needs *needs = &board->needs[GPU][9];
	struct keeper_copy copy = {.gpu = GPU,
				   .due = 1300 * MS,
				   .late_due = 1300 * MS,
				   .bytes = 1 << 24,
				   .piece = 1 << 24,
				   .held = true};

	atomic_store(&needs->copy_due_ns, 1100 * MS);
	atomic_store(&needs->copy_late_ns, MS);
	atomic_store(&needs->copy_from_ns, 1000 * MS + MS / 10);
	assert_true(keeper_begin(context, &copy));
	assert_true(copy.called); /* nor does the first piece begin */
	assert_false(is_open(&copy));
	let_it_look();
	assert_false(is_open(&copy));
	atomic_store(&needs->copy_from_ns, 1020 * MS); /* there is time */
	let_it_look();
	assert_true(is_open(&copy));
	atomic_store(&needs->copy_from_ns, 0);
	keeper_cancel(&copy);
}

static void gate_is_open_again_in_time(void **state) {
	struct keeper_copy copy;

	announce(9, 2000 * MS);
	copy = begin(BOARD_NO_DUE, true);
	let_it_look(); /* closed since now */
	atomic_fetch_add(&now, BOARD_HOLD_MAX_NS - 1);
	let_it_look();
	assert_false(is_open(&copy));
	atomic_fetch_add(&now, 1);
	while (!is_open(&copy)) {
		usleep(100);
	}
	let_it_look();
	assert_true(is_open(&copy));
	finish(&copy);
}

/* The keeper alone would open the gate. */
static void gate_does_not_wait_for_a_keeper_without_a_cpu(void **state) {
	struct keeper_copy copy;
	nsec_t next;

	assert_int_equal(keeper_watch(atomic_load(&now)), UINT64_MAX);
	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	atomic_store(&stuck, true);
	wait_until_stuck();
	next = keeper_watch(atomic_load(&now));
	assert_true(next > atomic_load(&now) && next < 1001 * MS);
	assert_false(is_open(&copy));
	atomic_store(&now, next);
	assert_int_equal(keeper_watch(next), UINT64_MAX);
	assert_true(is_open(&copy));
	unstick();
	finish(&copy);
	wait_for_slot(0);
}

/* Nor for one that can't begin. */
static void gate_does_not_wait_for_a_keeper_that_is_asleep(void **state) {
	struct keeper_copy copy, other;
	nsec_t next;

	atomic_store(&stuck, true);
	other = begin(1300 * MS, false);
	wait_until_stuck();
	atomic_fetch_add(&now, 10 * MS); /* it slept for long */
	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	assert_false(is_open(&copy));
	atomic_fetch_add(&now, MS / 10);
	next = keeper_watch(atomic_load(&now));
	assert_true(next > atomic_load(&now) && next < 1011 * MS);
	assert_false(is_open(&copy));
	keeper_watch(next);
	assert_true(is_open(&copy));
	unstick();
	finish(&copy);
	finish(&other);
	wait_for_slot(0);
}

/* Of the first copy nothing is known but its size. */
static void copies_are_announced_with_their_length(void **state) {
	struct keeper_copy copy = begin(1200 * MS, false), more;

	assert_int_equal(length(), (1 << 24) / 8);
	atomic_fetch_add(&now, MS);
	let_it_look(); /* by this clock */
	finish(&copy);
	wait_for_slot(0);
	copy = begin(1200 * MS, false);
	assert_in_range(length(), MS - 16, MS);
	more = begin(1200 * MS, false);
	assert_in_range(length(), 2 * MS - 32, 2 * MS);
	atomic_fetch_add(&now, 2 * MS); /* somebody was in the way: nothing to learn */
	let_it_look();
	finish(&copy);
	finish(&more);
	wait_for_slot(0);
	copy = begin(1200 * MS, false);
	assert_in_range(length(), MS - 16, MS);
	finish(&copy);
	wait_for_slot(0);
}

/* Of a copy that takes 1 ms, as is known by now. */
static void others_begin_before_a_held_copy_is_done(void **state) {
	struct keeper_copy held = begin(1200 * MS, true), whole = begin(1200 * MS, false);
	size_t part = (1 << 24) * 3 / 100; /* 30 us */

	assert_in_range(held.tail, part - 4096, part + 4096);
	assert_int_equal((held.bytes - held.tail) % 4096, 0);
	assert_int_equal(whole.tail, 0);
	finish(&whole);
	let_it_look();
	atomic_fetch_add(&now, MS * 97 / 100);
	let_it_look();
	finish(&held); /* but for its tail */
	wait_for_slot(0);
	whole = begin(1200 * MS, false); /* copies are not faster than that */
	assert_in_range(length(), MS - MS / 1000, MS);
	finish(&whole);
	wait_for_slot(0);
}

/* It takes 1 ms: so says the test before. */
static void a_copy_that_is_late_anyway_lets_others_go_first(void **state) {
	struct keeper_copy copy;

	announce(9, 1001 * MS);
	copy = begin_late(1002 * MS, 1010 * MS, true);
	let_it_look();
	atomic_fetch_add(&now, MS);
	let_it_look();
	assert_int_equal(slot(OWN), 1002 * MS); /* in time, if it begins now */
	atomic_fetch_add(&now, MS / 10);
	wait_for_slot(1010 * MS);
	announce(9, 0);
	while (!is_open(&copy)) {
		usleep(100);
	}
	announce(10, 1005 * MS); /* it can be in time */
	while (is_open(&copy)) {
		usleep(100);
	}
	announce(10, 1011 * MS);
	while (!is_open(&copy)) {
		usleep(100);
	}
	finish(&copy);
	wait_for_slot(0);
}

/* Whatever it was worth; but one that waits for others as well is late. */
static void a_copy_that_nothing_holds_up_is_not_late(void **state) {
	struct keeper_copy copy = begin_late(1000 * MS + 1, 1010 * MS, true);

	let_it_look();
	atomic_fetch_add(&now, MS - 16);
	let_it_look();
	assert_int_equal(slot(OWN), 1000 * MS + 1);
	announce(9, 1000 * MS);
	while (is_open(&copy)) {
		usleep(100);
	}
	atomic_fetch_add(&now, MS / 10);
	wait_for_slot(1010 * MS);
	finish(&copy);
	wait_for_slot(0);
}

/* Nobody sees how far it is. */
static void a_whole_copy_is_late_when_its_time_is_over(void **state) {
	struct keeper_copy copy = begin_late(1002 * MS, 1010 * MS, false);

	atomic_fetch_add(&now, 2 * MS);
	let_it_look();
	assert_int_equal(slot(OWN), 1002 * MS);
	atomic_fetch_add(&now, 1);
	wait_for_slot(1010 * MS);
	finish(&copy);
	wait_for_slot(0);
}

/* A copy may be done while the gate is closed: its last piece was on its way. */
static void copies_have_not_waited_since_the_one_before(void **state) {
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	finish(&copy);
	wait_for_slot(0);
	atomic_fetch_add(&now, 50 * MS);
	announce(9, 1101 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	finish(&copy);
	wait_for_slot(0);
}

static void copies_that_are_not_held_close_no_gate(void **state) {
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, false);
	let_it_look();
	assert_true(is_open(&copy));
	finish(&copy);
}

static void gate_opens_when_the_terms_lapse(void **state) {
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	atomic_store(&steered, false);
	while (!is_open(&copy)) {
		usleep(100);
	}
	finish(&copy);
}

/* The copies of a context that goes may never be done. */
static void context_takes_its_copies_with_it(void **state) {
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	keeper_context_destroying(context);
	assert_true(is_open(&copy));
	wait_for_slot(0);
	assert_true(is_open(&copy));
	copy = begin(1200 * MS, true); /* another one of that address */
	finish(&copy);
	wait_for_slot(0);
}

static void copies_beyond_the_room_go_as_they_are(void **state) {
	struct keeper_copy copy = {.gpu = GPU, .due = 1200 * MS, .held = true};
	struct keeper_copy all[256];
	unsigned n = 0;

	while (keeper_begin(context, &copy)) {
		assert_true(n < 256);
		all[n++] = copy;
	}
	assert_true(n > 32);
	keeper_cancel(&all[0]); /* the driver has refused it */
	while (!keeper_begin(context, &copy)) {
		usleep(100);
	}
	finish(&copy);
	for (unsigned i = 1; i < n; i++) {
		finish(&all[i]);
	}
	wait_for_slot(0);
}

/* The board of another sbeetd. */
static void next_board_takes_the_place_of_the_last(void **state) {
	struct keeper_copy copy = begin(1200 * MS, true);
	struct board *last = board;

	take_board();
	wait_for_slot(1200 * MS);
	atomic_store(&last->slots[GPU][9].due_ns, 1100 * MS); /* counts no more */
	let_it_look();
	assert_true(is_open(&copy));
	finish(&copy);
	wait_for_slot(0);
}

static void boards_that_may_shrink_are_refused(void **state) {
	struct board *last = board;
	int fd = memfd_create("board", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, sizeof(*board)), 0);
	seat_take(fd, OWN);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
	seat_take(-1, OWN);
	wait_for_slot(0);
	announce(9, 1100 * MS);
	assert_ptr_equal(last, board);
	struct keeper_copy copy = begin(1200 * MS, true);
	assert_false(is_open(&copy)); /* the last one still counts */
	finish(&copy);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(copies_are_announced_with_their_length),
		CASE(others_begin_before_a_held_copy_is_done),
		CASE(a_copy_that_is_late_anyway_lets_others_go_first),
		CASE(a_copy_that_nothing_holds_up_is_not_late),
		CASE(a_whole_copy_is_late_when_its_time_is_over),
		CASE(keeper_announces_copies_until_they_are_done),
		CASE(copies_are_announced_before_they_are_handed_over),
		CASE(others_are_seen_to_copy),
		CASE(gate_is_closed_while_an_earlier_copy_is_on_the_board),
		CASE(gate_is_closed_before_a_copy_that_is_expected),
		CASE(gate_is_open_again_in_time),
		CASE(gate_does_not_wait_for_a_keeper_without_a_cpu),
		CASE(gate_does_not_wait_for_a_keeper_that_is_asleep),
		CASE(copies_have_not_waited_since_the_one_before),
		CASE(copies_that_are_not_held_close_no_gate),
		CASE(gate_opens_when_the_terms_lapse),
		CASE(context_takes_its_copies_with_it),
		CASE(copies_beyond_the_room_go_as_they_are),
		CASE(next_board_takes_the_place_of_the_last),
		CASE(boards_that_may_shrink_are_refused),
	};

	return cmocka_run_group_tests_name("keeper-copies", tests, NULL, NULL);
}
