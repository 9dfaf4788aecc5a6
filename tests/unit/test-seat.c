/*
 * test-seat.c: when a program rings the board's bell.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/seat.h"

#define SLOT  3
#define PLACE 1

static struct board *board;

bool __wrap_terms_place(CUdevice device, unsigned *ret_place);

bool __wrap_terms_place(CUdevice device, unsigned *ret_place) {
	*ret_place = PLACE;
	return device == 0;
}

static int setup(void **state) {
	int fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*board)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(board != MAP_FAILED);
	board->magic = PROTO_BOARD_MAGIC;
	board->version = PROTO_BOARD_VERSION;
	seat_take(fd, SLOT);
	assert_non_null(seat_get());
	return 0;
}

static uint32_t bell(void) {
	return atomic_load(&board->bell);
}

static void a_begin_rings_as_its_terms_say(void **state) {
	seat_job_opened(0, false);
	assert_int_equal(bell(), 0);
	seat_job_opened(0, true);
	assert_int_equal(bell(), 1);
	assert_true(atomic_load(&board->slots[PLACE][SLOT].jobs) == (UINT64_C(2) << 32 | 2));
	seat_job_closed(0);
	seat_job_closed(0);
	assert_int_equal(bell(), 1);
}

static void the_last_end_rings_where_it_is_asked_for(void **state) {
	uint32_t before = bell();

	atomic_store(&board->slots[PLACE][SLOT].end_rings, 1);
	seat_job_opened(0, false);
	seat_job_opened(0, false);
	seat_job_closed(0);
	assert_int_equal(bell(), before);
	seat_job_closed(0);
	assert_int_equal(bell(), before + 1);
	seat_job_opened(1, false); /* that GPU has no place */
	seat_job_closed(1);
	assert_int_equal(bell(), before + 1);
	atomic_store(&board->slots[PLACE][SLOT].end_rings, 0);
	seat_job_opened(0, false);
	seat_job_closed(0);
	assert_int_equal(bell(), before + 1);
}

/* As the last one to open says. */
static void the_next_job_is_told_of(void **state) {
	const struct board_next *next = &board->next[PLACE][SLOT];

	seat_next(0, 5000, 7000);
	assert_int_equal(atomic_load(&next->from_ns), 5000);
	assert_int_equal(atomic_load(&next->due_ns), 7000);
	seat_next(1, 6000, 8000); /* that GPU has no place */
	assert_int_equal(atomic_load(&next->from_ns), 5000);
	assert_int_equal(atomic_load(&next->since_ns), 0);
	seat_next_since(0);
	assert_int_not_equal(atomic_load(&next->since_ns), 0);
	seat_leave();
	assert_int_equal(atomic_load(&next->from_ns), 0);
	seat_next(0, 5000, 7000);
	assert_int_equal(atomic_load(&next->from_ns), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_begin_rings_as_its_terms_say),
		cmocka_unit_test(the_last_end_rings_where_it_is_asked_for),
		cmocka_unit_test(the_next_job_is_told_of), /* the last: it leaves */
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
