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

static void the_needs_of_jobs_are_told(void **state) {
	const struct seat_needs needs = {
		.from = 3000, .next_from = 5000, .next_until = 6000, .next_due = 7000};
	const struct board_needs *told = &board->needs[PLACE][SLOT];
	uint32_t job;

	seat_needs(0, &needs);
	assert_int_equal(atomic_load(&told->from_ns), 3000);
	assert_int_equal(atomic_load(&told->next_from_ns), 5000);
	assert_int_equal(atomic_load(&told->next_until_ns), 6000);
	assert_int_equal(atomic_load(&told->next_due_ns), 7000);
	seat_needs(1, &(struct seat_needs){0}); /* that GPU has no place */
	assert_int_equal(atomic_load(&told->from_ns), 3000);
	assert_int_equal(seat_only_job(0), 0);
	seat_job_opened(0, false);
	job = seat_only_job(0);
	assert_int_equal(job, atomic_load(&board->slots[PLACE][SLOT].jobs) >> 32);
	seat_kernels_done(0, job);
	assert_int_equal(atomic_load(&told->done), job);
	seat_kernels_done(0, 0); /* there are more */
	assert_int_equal(atomic_load(&told->done), 0);
	seat_job_opened(0, false);
	assert_int_equal(seat_only_job(0), 0); /* two */
	seat_job_closed(0);
	seat_job_closed(0);
	seat_expect_copy(0, &(struct seat_copy){.from = 8000, .late = 900, .due = 10000});
	assert_int_equal(atomic_load(&told->copy_from_ns), 8000);
	assert_int_equal(atomic_load(&told->copy_late_ns), 900);
	assert_int_equal(atomic_load(&told->copy_due_ns), 10000);
	seat_leave();
	assert_int_equal(atomic_load(&told->next_from_ns), 0);
	assert_int_equal(atomic_load(&told->copy_from_ns), 0);
	seat_needs(0, &needs);
	seat_expect_copy(0, &(struct seat_copy){.from = 8000});
	assert_int_equal(atomic_load(&told->next_from_ns), 0);
	assert_int_equal(atomic_load(&told->copy_from_ns), 0);
}

/* Before its copy back, or at its end. */
static void the_end_of_a_job_s_kernels_is_told_once(void **state) {
	const struct board_needs *told = &board->needs[PLACE][SLOT];
	uint64_t since;

	seat_job_opened(0, false);
	seat_kernels_done(0, seat_only_job(0));
	since = atomic_load(&told->since_ns);
	seat_needs_over(0);
	assert_true(atomic_load(&told->since_ns) == since);
	seat_job_closed(0);
	seat_job_opened(0, false);
	seat_needs_over(0);
	assert_true(atomic_load(&told->since_ns) > since);
	seat_job_closed(0);
}

static void operations_without_a_job_leave_their_time(void **state) {
	nsec_t before = nsec_now();

	assert_true(atomic_load(&board->slots[PLACE][SLOT].unseen_ns) == 0);
	seat_note_unseen(1); /* that GPU has no place */
	assert_true(atomic_load(&board->slots[PLACE][SLOT].unseen_ns) == 0);
	seat_note_unseen(0);
	assert_in_range(atomic_load(&board->slots[PLACE][SLOT].unseen_ns), before, nsec_now());
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_begin_rings_as_its_terms_say),
		cmocka_unit_test(the_last_end_rings_where_it_is_asked_for),
		cmocka_unit_test(the_end_of_a_job_s_kernels_is_told_once),
		cmocka_unit_test(operations_without_a_job_leave_their_time),
		cmocka_unit_test(the_needs_of_jobs_are_told), /* the last: it leaves */
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
