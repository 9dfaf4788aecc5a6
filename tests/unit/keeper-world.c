/*
 * keeper-world.c: see keeper-world.h.
 */
#include "shim/real.h"

#include "tests/unit/keeper-world.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/seat.h"
#include "shim/terms.h"

_Atomic nsec_t now;
static _Atomic unsigned looks; /* the keeper's, by the clock */
_Atomic bool steered;
_Atomic bool stuck;		 /* the keeper has no CPU */
static _Atomic unsigned n_stuck; /* it has none now */
static pthread_t program;
struct board *board;
CUcontext context;
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

_Atomic uint64_t own_due;

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

void take_board(void) {
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

int setup(void **state) {
	program = pthread_self();
	atomic_store(&now, 1000 * MS);
	atomic_store(&steered, true);
	atomic_store(&own_due, 0);
	take_board();
	context = (CUcontext)(void *)&contexts[n_contexts++];
	return 0;
}

int teardown(void **state) {
	keeper_context_destroying(context);
	return 0;
}

uint64_t slot(unsigned i) {
	return atomic_load(&board->slots[GPU][i].due_ns);
}

void announce(unsigned i, uint64_t due) {
	atomic_store(&board->slots[GPU][i].due_ns, due);
}

bool is_open(const struct keeper_copy *copy) {
	return *(volatile uint32_t *)(uintptr_t)copy->gate != 0;
}

void let_it_look(void) {
	unsigned from = atomic_load(&looks);

	while (atomic_load(&looks) - from < 3) {
		usleep(100);
	}
}

nsec_t length(void) {
	return atomic_load(&board->slots[GPU][OWN].length_ns);
}

void wait_until_stuck(void) {
	while (atomic_load(&n_stuck) == 0) {
		usleep(100);
	}
}

void unstick(void) {
	atomic_store(&stuck, false);
	atomic_store(&n_stuck, 0);
}

struct keeper_copy begin_late(uint64_t due, uint64_t late_due, bool held) {
	struct keeper_copy copy = {
		.gpu = GPU, .due = due, .late_due = late_due, .bytes = 1 << 24, .held = held};

	assert_true(keeper_begin(context, &copy));
	keeper_handed_over(&copy);
	return copy;
}

struct keeper_copy begin(uint64_t due, bool held) {
	return begin_late(due, due, held);
}

void finish(const struct keeper_copy *copy) {
	*(volatile uint32_t *)(uintptr_t)copy->done = copy->done_value;
}

void wait_for_slot(uint64_t due) {
	while (slot(OWN) != due) {
		usleep(100);
	}
}

/* ---- kernels ---- */

void await(unsigned i, uint64_t due) {
	atomic_store(&board->slots[GPU][i].job_due_ns, due);
}

bool may_begin(CUdeviceptr gate) {
	return *(volatile uint32_t *)(uintptr_t)gate != 0;
}

void wait_until(CUdeviceptr gate, bool open) {
	while (may_begin(gate) != open) {
		usleep(100);
	}
}

CUdeviceptr open_job(uint64_t due) {
	CUdeviceptr gate;

	atomic_store(&own_due, due);
	gate = keeper_gate(context, DEVICE, GPU, 0);
	assert_int_not_equal(gate, 0);
	return gate;
}

void close_job(CUdeviceptr gate) {
	atomic_store(&own_due, 0);
	wait_until(gate, true);
}
