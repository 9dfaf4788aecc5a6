/*
 * test-turn.c: what a program that takes turns asks of its channel groups when its slot of the
 * board tells it to wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/board.h"
#include "shim/groups.h"
#include "shim/seat.h"
#include "shim/turn.h"

#define PLACE	   3
#define SLOT	   5
#define CONNECTION 7

static struct board board;
static const struct seat seat = {.board = &board, .slot = SLOT};
static struct board_slot *const slot = &board.slots[PLACE][SLOT];
static _Atomic int place = GROUPS_ON; /* of the groups, as they were put last */
static _Atomic unsigned times[GROUPS_OFF_LATER + 1];

const struct seat *__wrap_seat_get(void);
const struct seat *__wrap_seat_get(void) {
	return &seat;
}

bool __wrap_terms_held(void);
bool __wrap_terms_held(void) {
	return true;
}

bool __wrap_terms_place(int device, unsigned *ret);
bool __wrap_terms_place(int device, unsigned *ret) {
	*ret = PLACE;
	return true;
}

bool __wrap_conn_is_current(uint32_t number);
bool __wrap_conn_is_current(uint32_t number) {
	return number == CONNECTION;
}

bool __wrap_groups_known(void);
bool __wrap_groups_known(void) {
	return true;
}

int __wrap_groups_put(enum groups_place wanted);
int __wrap_groups_put(enum groups_place wanted) {
	atomic_store(&place, (int)wanted);
	atomic_fetch_add(&times[wanted], 1);
	return 0;
}

/* The process that preempts. */
static void tell_to_wait(nsec_t until, bool stays) {
	atomic_store(&slot->turn_stays, stays);
	atomic_store(&slot->turn_wait_ns, until);
	atomic_fetch_add(&slot->turn_bell, 1);
	syscall(SYS_futex, &slot->turn_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void await(enum groups_place wanted, uint32_t state) {
	while (atomic_load(&place) != (int)wanted || atomic_load(&slot->turn_state) != state) {
		usleep(100);
	}
}

static void it_leaves_as_it_is_told(void **state) {
	turn_wanted(CONNECTION);
	turn_begin(0);
	await(GROUPS_ON, BOARD_TURN_TAKES);
	for (unsigned i = 0; i < 4; i++) {
		tell_to_wait(nsec_now() + BOARD_TURN_MAX_NS, i % 2);
		await(i % 2 ? GROUPS_OFF_LATER : GROUPS_OFF, BOARD_TURN_TAKES | BOARD_TURN_OFF);
		tell_to_wait(0, false);
		await(GROUPS_ON, BOARD_TURN_TAKES);
	}
	for (unsigned last = times[GROUPS_OFF_LATER]; times[GROUPS_OFF_LATER] == last;) {
		tell_to_wait(nsec_now() + 10 * NSEC_PER_MSEC, true);
		usleep(1000);
	}
	await(GROUPS_ON, BOARD_TURN_TAKES); /* nobody says more: it goes on by itself */
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_leaves_as_it_is_told)};

	alarm(60); /* a hang ends here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
