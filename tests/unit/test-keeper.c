/*
 * test-keeper.c: what the keeper does to gate and board, with the clock, the driver and the board
 * in the test's hands. Nothing here depends on how fast the keeper is: it is waited for, or can't
 * do what is forbidden however long it looks.
 */
#include "shim/real.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/board.h"
#include "shim/keeper.h"
#include "shim/seat.h"
#include "shim/terms.h"

#define MS     NSEC_PER_MSEC
#define GPU    2
#define OWN    5
#define DEVICE 1

static _Atomic nsec_t now;
static _Atomic unsigned looks; /* the keeper's, by the clock */
static _Atomic bool steered;
static _Atomic bool stuck;	 /* the keeper has no CPU */
static _Atomic unsigned n_stuck; /* it has none now */
static pthread_t program;
static struct board *board;
static CUcontext context;
static char contexts[64]; /* as many as tests */
static unsigned n_contexts;

/* In the place of the clock, the driver and the terms. */
nsec_t __wrap_nsec_now(void);
nsec_t __wrap_nsec_now(void) {
	atomic_fetch_add(&looks, 1);
	while (atomic_load(&stuck) && !pthread_equal(pthread_self(), program)) {
		atomic_store(&n_stuck, 1);
		usleep(100);
	}
	return atomic_load(&now);
}

bool __wrap_terms_place(CUdevice device, unsigned *ret_place);
bool __wrap_terms_place(CUdevice device, unsigned *ret_place) {
	*ret_place = GPU;
	return device == DEVICE;
}

/* Of our own job, which yields. */
static _Atomic uint64_t own_due;

uint64_t __wrap_seat_due(CUdevice device);
uint64_t __wrap_seat_due(CUdevice device) {
	return device == DEVICE ? atomic_load(&own_due) : 0;
}

bool __wrap_terms_held(void);
bool __wrap_terms_held(void) {
	return atomic_load(&steered);
}

static CUresult alloc(void **ret, size_t n, unsigned flags) {
	/* Of all contexts, which never go. */
	static _Alignas(64) char memory[sizeof(contexts)][512];
	static unsigned n_allocated;

	assert_true(n <= sizeof(memory[0]) && n_allocated < sizeof(contexts));
	*ret = memory[n_allocated++];
	return CUDA_SUCCESS;
}

static CUresult get_device_pointer(CUdeviceptr *ret, void *p, unsigned flags) {
	*ret = (CUdeviceptr)(uintptr_t)p;
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuMemHostAlloc = alloc,
		.cuMemHostGetDevicePointer_v2 = get_device_pointer,
	};

	return &real;
}

static void take_board(void) {
	int fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*board)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(board, MAP_FAILED);
	board->magic = PROTO_BOARD_MAGIC;
	board->version = PROTO_BOARD_VERSION;
	seat_take(fd, OWN);
	assert_true(seat_get() != NULL);
}

static int setup(void **state) {
	program = pthread_self();
	atomic_store(&now, 1000 * MS);
	atomic_store(&steered, true);
	atomic_store(&own_due, 0);
	take_board();
	context = (CUcontext)(void *)&contexts[n_contexts++];
	return 0;
}

static int teardown(void **state) {
	keeper_context_destroying(context);
	return 0;
}

static uint64_t slot(unsigned i) {
	return atomic_load(&board->slots[GPU][i].due_ns);
}

static void announce(unsigned i, uint64_t due) {
	atomic_store(&board->slots[GPU][i].due_ns, due);
}

static bool is_open(const struct keeper_copy *copy) {
	return *(volatile uint32_t *)(uintptr_t)copy->gate != 0;
}

/* The keeper has looked at everything as it is now. */
static void let_it_look(void) {
	unsigned from = atomic_load(&looks);

	while (atomic_load(&looks) - from < 3) {
		usleep(100);
	}
}

static nsec_t length(void) {
	return atomic_load(&board->slots[GPU][OWN].length_ns);
}

/* It is between two looks. */
static void wait_until_stuck(void) {
	while (atomic_load(&n_stuck) == 0) {
		usleep(100);
	}
}

static void unstick(void) {
	atomic_store(&stuck, false);
	atomic_store(&n_stuck, 0);
}

/* @late_due: when it is due once it is late. */
static struct keeper_copy begin_late(uint64_t due, uint64_t late_due, bool held) {
	struct keeper_copy copy = {
		.gpu = GPU, .due = due, .late_due = late_due, .bytes = 1 << 24, .held = held};

	assert_true(keeper_begin(context, &copy));
	keeper_handed_over(&copy);
	return copy;
}

static struct keeper_copy begin(uint64_t due, bool held) {
	return begin_late(due, due, held);
}

/* As the GPU does behind the copy. */
static void finish(const struct keeper_copy *copy) {
	*(volatile uint32_t *)(uintptr_t)copy->done = copy->done_value;
}

static void wait_for_slot(uint64_t due) {
	while (slot(OWN) != due) {
		usleep(100);
	}
}

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

/* ---- kernels ---- */

static void await(unsigned i, uint64_t due) {
	atomic_store(&board->slots[GPU][i].job_due_ns, due);
}

static bool may_begin(CUdeviceptr gate) {
	return *(volatile uint32_t *)(uintptr_t)gate != 0;
}

static void wait_until(CUdeviceptr gate, bool open) {
	while (may_begin(gate) != open) {
		usleep(100);
	}
}

/* Our job is open. */
static CUdeviceptr open_job(uint64_t due) {
	CUdeviceptr gate;

	atomic_store(&own_due, due);
	gate = keeper_gate(context, DEVICE, GPU, 0);
	assert_int_not_equal(gate, 0);
	return gate;
}

/* The keeper looks no more. */
static void close_job(CUdeviceptr gate) {
	atomic_store(&own_due, 0);
	wait_until(gate, true);
}

static void who_has_no_job_has_no_gate(void **state) {
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), 0);
}

static void kernels_wait_while_somebody_is_awaited(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	assert_false(may_begin(gate)); /* before the first one is handed over */
	for (int i = 0; i < 20; i++) {
		let_it_look();
		assert_false(may_begin(gate)); /* the clock stands still */
	}
	await(9, 0);
	wait_until(gate, true);
	await(9, 1250 * MS); /* later than ours */
	let_it_look();
	assert_true(may_begin(gate));
	await(10, 1150 * MS); /* another one, in the middle */
	wait_until(gate, false);
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), gate);
	assert_false(may_begin(gate)); /* the next kernel */
	close_job(gate);
	assert_true(may_begin(gate)); /* at rest it is open */
	assert_int_equal(open_job(1200 * MS), gate);
	assert_false(may_begin(gate)); /* and for the next job closed at once */
	close_job(gate);
}

/* Nor in front of a job that they would run into. */
static void kernels_do_not_begin_in_a_guard_band(void **state) {
	struct board_needs *needs = &board->needs[GPU][9];
	CUdeviceptr gate;

	atomic_store(&needs->since_ns, 990 * MS);
	atomic_store(&needs->next_due_ns, 1020 * MS);
	atomic_store(&needs->next_from_ns, 1005 * MS);
	atomic_store(&needs->next_until_ns, 1006 * MS);
	gate = open_job(1200 * MS); /* for all that is known its kernels take no time */
	let_it_look();
	assert_true(may_begin(gate));
	gate = keeper_gate(context, DEVICE, GPU, 4 * MS);
	let_it_look();
	assert_true(may_begin(gate));
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 6 * MS), gate); /* about as long */
	wait_until(gate, false);
	close_job(gate);
	atomic_store(&own_due, 1200 * MS);
	keeper_gate(context, DEVICE, GPU, 6 * MS);
	assert_false(may_begin(gate)); /* the first kernel of the next job */
	atomic_store(&now, 1006 * MS);
	wait_until(gate, true); /* the job has not come */
	close_job(gate);
}

/* Long kernels wait in front of a job where short ones still have time. */
static void the_band_is_as_long_as_the_kernel(void **state) {
	struct board_needs *needs = &board->needs[GPU][9];
	CUdeviceptr gates[3], again;

	atomic_store(&needs->since_ns, 990 * MS);
	atomic_store(&needs->next_due_ns, 1020 * MS);
	atomic_store(&needs->next_from_ns, 1005 * MS);
	atomic_store(&needs->next_until_ns, 1006 * MS);
	open_job(1200 * MS);
	gates[0] = keeper_gate(context, DEVICE, GPU, MS / 10);
	gates[1] = keeper_gate(context, DEVICE, GPU, 2 * MS);
	gates[2] = keeper_gate(context, DEVICE, GPU, 6 * MS);
	assert_false(may_begin(gates[2])); /* the first one of these */
	let_it_look();
	assert_true(may_begin(gates[0]));
	assert_true(may_begin(gates[1]));
	assert_false(may_begin(gates[2]));
	atomic_store(&now, 1004 * MS);
	wait_until(gates[1], false);
	let_it_look();
	assert_true(may_begin(gates[0]));
	/* What is seldom that long comes to count as short as the others are. */
	atomic_store(&now, 1000 * MS);
	for (int i = 0; i < 1000; i++) {
		keeper_gate(context, DEVICE, GPU, 4 * MS);
	}
	wait_until(gates[2], true);
	atomic_store(&now, 1001 * MS + 1);
	wait_until(gates[2], false);
	/* A job that is open closes all at once. */
	close_job(gates[2]);
	await(9, 1100 * MS);
	atomic_store(&own_due, 1200 * MS);
	again = keeper_gate(context, DEVICE, GPU, MS / 10);
	assert_int_equal(again, gates[0]);
	for (int i = 0; i < 3; i++) {
		assert_false(may_begin(gates[i]));
	}
	await(9, 0);
	close_job(gates[0]);
}

/* Copies have a gate of their own. */
static void kernels_do_not_wait_for_copies(void **state) {
	CUdeviceptr gate = open_job(1200 * MS);
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	assert_true(may_begin(gate));
	announce(9, 0);
	await(9, 1100 * MS);
	wait_until(gate, false);
	while (!is_open(&copy)) {
		usleep(100);
	}
	finish(&copy);
	close_job(gate);
}

/* And not before they are, nor if there are more of them. */
static void others_hear_when_our_kernels_are_done(void **state) {
	struct board_needs *needs = &board->needs[GPU][OWN];
	struct keeper_word word;

	assert_false(keeper_kernels_end(context, DEVICE, &word)); /* there is no job */
	seat_job_opened(DEVICE, false);
	assert_true(keeper_kernels_end(context, DEVICE, &word));
	keeper_kernels_watch(context, &word);
	let_it_look();
	assert_int_not_equal(atomic_load(&needs->done), word.job);
	*(volatile uint32_t *)(uintptr_t)word.at = word.value;
	while (atomic_load(&needs->done) != word.job) {
		usleep(100);
	}
	keeper_kernels_go_on(context, DEVICE); /* a launch */
	assert_int_equal(atomic_load(&needs->done), 0);
	assert_true(keeper_kernels_end(context, DEVICE, &word));
	keeper_kernels_watch(context, &word);
	let_it_look();
	assert_int_equal(atomic_load(&needs->done), 0); /* what was written is older */
	keeper_kernels_go_on(context, DEVICE);
	*(volatile uint32_t *)(uintptr_t)word.at = word.value;
	seat_job_closed(DEVICE);
	assert_int_equal(atomic_load(&needs->done), 0);
}

static void kernels_begin_again_in_time(void **state) {
	CUdeviceptr gate;

	await(9, 2000 * MS);
	gate = open_job(BOARD_NO_DUE);
	let_it_look(); /* closed since now */
	atomic_fetch_add(&now, BOARD_YIELD_MAX_NS - 1);
	let_it_look();
	assert_false(may_begin(gate));
	atomic_fetch_add(&now, 1);
	wait_until(gate, true);
	let_it_look();
	assert_true(may_begin(gate));
	close_job(gate);
}

/* A job may end while the gate is closed: its last kernel had begun. */
static void kernels_have_not_waited_since_the_job_before(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	close_job(gate);
	atomic_fetch_add(&now, 50 * MS);
	await(9, 1101 * MS);
	open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	close_job(gate);
}

static void kernels_do_not_wait_for_a_keeper_without_a_cpu(void **state) {
	CUdeviceptr gate;
	nsec_t next;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	atomic_store(&stuck, true);
	wait_until_stuck();
	next = keeper_watch(atomic_load(&now));
	assert_true(next > atomic_load(&now) && next < 1001 * MS);
	assert_false(may_begin(gate));
	atomic_store(&now, next);
	assert_int_equal(keeper_watch(next), UINT64_MAX);
	assert_true(may_begin(gate));
	unstick();
	close_job(gate);
}

static void kernels_begin_when_the_terms_lapse(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	atomic_store(&steered, false);
	wait_until(gate, true);
	close_job(gate);
}

static void context_takes_its_kernels_with_it(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	keeper_context_destroying(context);
	assert_true(may_begin(gate));
	atomic_store(&own_due, 0);
}

/* The last test: nothing is held after that. */
static void leaving_opens_everything_for_good(void **state) {
	struct keeper_copy copy, more = {.gpu = GPU, .due = 1200 * MS, .held = true};
	CUdeviceptr gate;

	announce(9, 1100 * MS);
	await(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(is_open(&copy));
	assert_false(may_begin(gate));
	keeper_leave();
	assert_true(is_open(&copy));
	assert_true(may_begin(gate));
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), 0);
	assert_int_equal(slot(OWN), 0);
	assert_false(keeper_begin(context, &more));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
		CASE(who_has_no_job_has_no_gate),
		CASE(kernels_wait_while_somebody_is_awaited),
		CASE(kernels_do_not_begin_in_a_guard_band),
		CASE(the_band_is_as_long_as_the_kernel),
		CASE(kernels_do_not_wait_for_copies),
		CASE(others_hear_when_our_kernels_are_done),
		CASE(kernels_begin_again_in_time),
		CASE(kernels_have_not_waited_since_the_job_before),
		CASE(kernels_do_not_wait_for_a_keeper_without_a_cpu),
		CASE(kernels_begin_when_the_terms_lapse),
		CASE(context_takes_its_kernels_with_it),
		CASE(leaving_opens_everything_for_good),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
