/*
 * test-session-board.c: who has which slot of whose board.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/session/board.h"

static struct board *map(const struct board_seat *seat) {
	struct board *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd(seat), 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void board_has_a_slot_for_each_until_it_is_full(void **state) {
	struct board_list boards = TAILQ_HEAD_INITIALIZER(boards);
	struct board_seat seats[PROTO_BOARD_SLOTS] = {0}, more = {0};
	uint64_t seen = 0;
	unsigned freed;

	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		assert_int_equal(board_join(&boards, 1000, &seats[i]), 0);
		assert_false(seen >> seats[i].slot & 1);
		seen |= UINT64_C(1) << seats[i].slot;
	}
	assert_int_equal(board_join(&boards, 1000, &more), BOARD_E_FULL);
	assert_null(more.board);
	freed = seats[5].slot;
	board_leave(&boards, &seats[5]);
	assert_int_equal(board_join(&boards, 1000, &more), 0);
	assert_int_equal(more.slot, freed);
	board_leave(&boards, &more);
	board_leave(&boards, &more); /* has none any more */
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		board_leave(&boards, &seats[i]);
	}
	assert_true(TAILQ_EMPTY(&boards));
}

static void board_is_one_users_alone(void **state) {
	struct board_list boards = TAILQ_HEAD_INITIALIZER(boards);
	struct board_seat a = {0}, b = {0}, other = {0};
	struct board *page, *others;

	assert_int_equal(board_join(&boards, 1000, &a), 0);
	assert_int_equal(board_join(&boards, 1000, &b), 0);
	assert_int_equal(board_join(&boards, 1001, &other), 0);
	page = map(&a);
	others = map(&other);
	atomic_store(&page->slots[2][a.slot].due_ns, 5);
	atomic_store(&page->slots[2][a.slot].job_due_ns, 7);
	atomic_store(&page->slots[2][a.slot].unseen_ns, 8);
	atomic_store(&page->slots[2][b.slot].due_ns, 6);
	atomic_store(&page->needs[2][a.slot].next_from_ns, 7);
	atomic_store(&page->needs[2][b.slot].next_from_ns, 8);
	assert_int_equal(atomic_load(&others->slots[2][a.slot].due_ns), 0);
	board_leave(&boards, &a); /* clears its own, on all GPUs */
	assert_int_equal(atomic_load(&page->slots[2][0].due_ns), 0);
	assert_int_equal(atomic_load(&page->needs[2][0].next_from_ns), 0);
	assert_int_equal(atomic_load(&page->needs[2][b.slot].next_from_ns), 8);
	assert_int_equal(atomic_load(&page->slots[2][0].job_due_ns), 0);
	assert_int_equal(atomic_load(&page->slots[2][0].unseen_ns), 0);
	assert_int_equal(atomic_load(&page->slots[2][b.slot].due_ns), 6);
	board_leave(&boards, &b);
	board_leave(&boards, &other);
	munmap(page, sizeof(*page));
	munmap(others, sizeof(*others));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(board_has_a_slot_for_each_until_it_is_full),
		cmocka_unit_test(board_is_one_users_alone),
	};

	return cmocka_run_group_tests_name("session-board", tests, NULL, NULL);
}
