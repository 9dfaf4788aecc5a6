/*
 * keeper.c: see keeper.h.
 */
#include "shim/real.h"

#include "shim/keeper.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/board.h"
#include "proto/spin.h"
#include "proto/thread.h"
#include "shim/capture.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"

#define DOCKS_MAX  8  /* contexts */
#define COPIES_MAX 60 /* under way in one of them */

/* While a copy may be moving, and others copy too, its gate is looked at without a pause: for so
 * long, and longer by the time that its bytes take at 8 GB/s. Then it waits for something else. */
#define SPIN_NS		(20 * NSEC_PER_MSEC)
#define SPIN_BYTES_A_NS 8

/* A stream that has waited for its gate goes on that long after it was opened (H100). So others may
 * begin so long before a held copy is done: then the link is not idle in between. */
#define TAIL_NS (30 * NSEC_PER_USEC)

/* Between two looks: where something waits at a closed gate, where it may soon, and at most. With
 * the least timer slack naps last 4 us longer, and take 30 and 12 % of a CPU (H200's host). */
#define NAP_CLOSED_NS (10 * NSEC_PER_USEC)
#define NAP_NS	      (30 * NSEC_PER_USEC)
#define NAP_MAX_NS    (5 * NSEC_PER_MSEC)

/* How long a copy takes by itself is learnt from those of some size. Until then 8 GB/s is assumed.
 */
#define LEARN_BYTES (1u << 20)
#define MIB_NS	    ((1u << 20) / SPIN_BYTES_A_NS)

/* A keeper that has not looked for so long has no CPU, and holds nobody up. */
#define KEEPER_LATE_NS (300 * NSEC_PER_USEC)

/* Kernels that take about as long have a gate together: the first of these are for those that take
 * nobody knows how long, and for those that share one; each other one for twice as long ones. */
#define KERNEL_GATES 16

/* How much nearer what the kernels of a gate take comes to a shorter one: to one of so many. */
#define SHORTER_PART 64

#define STACK_BYTES (128 * 1024)

/* Pinned memory of a context; each gate has a cache line of its own. */
struct words {
	_Atomic uint32_t gate;
	uint32_t reserved[15];
	_Atomic uint32_t kernel_gates[KERNEL_GATES];
	_Atomic uint32_t done[COPIES_MAX];
	_Atomic uint32_t kernels_done;
};

struct flight {
	uint64_t due; /* late_due once it is too late for the first one */
	uint64_t late_due;
	nsec_t began;
	size_t bytes;
	size_t tail;  /* of these: they follow behind the word */
	size_t piece; /* waits for its gate, and what follows without a gate: of these at most */
	nsec_t spin_until;
	uint32_t number; /* of the copy: what is written behind it */
	bool held;
	nsec_t waited; /* for its gate */
	nsec_t looked; /* until when that is counted */
};

/* The copies of one context. */
static struct dock {
	_Atomic(CUcontext) context; /* NULL: free, or gone */
	struct words *words;	    /* the driver's, as long as the context lives */
	CUdeviceptr at;
	_Atomic unsigned gpu;
	_Atomic uint64_t taken;	 /* flights, a bit each */
	_Atomic uint64_t flying; /* of those, the ones that the keeper has to look at */
	struct flight flights[COPIES_MAX];
	_Atomic CUdevice device; /* of the jobs that yield */
	/* What is behind each gate of kernels, see keeper_gate(); a bit for each that was ever used
	 */
	_Atomic nsec_t takes[KERNEL_GATES];
	_Atomic uint32_t used;
	_Atomic bool yields; /* the keeper looks after these */
	/* Of the job that is awaited: what is written behind its kernels, the job, and its device.
	 */
	_Atomic uint32_t end_value;
	_Atomic uint32_t end_job; /* 0: nothing is watched */
	_Atomic CUdevice end_device;
	_Atomic nsec_t end_since; /* it is */
	/* the keeper's */
	struct board_gate gate;
	struct board_yield yields_at[KERNEL_GATES];
} docks[DOCKS_MAX];

static _Atomic(struct dock *) looking;	/* where the keeper is at present */
static _Atomic(struct dock *) watching; /* where the tracker is */
static _Atomic nsec_t looked; /* when the keeper began to look, or a gate was closed for it */
static _Atomic nsec_t mib_ns = MIB_NS; /* of copies: the least that was seen */
static _Atomic bool leaving;
static _Atomic uint32_t calls; /* a futex: counts copies that have begun */
static _Atomic bool asleep;

/* Held while a dock is made, and the thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;

/* ---- the board ---- */

bool keeper_others_copy(unsigned gpu) {
	const struct seat *s = seat_get();

	return s && board_is_busy(s->board, gpu, s->slot);
}

static struct board_slot *our_slot(const struct seat *s, unsigned gpu) {
	return &s->board->slots[gpu][s->slot];
}

/* Before the copy is handed over. @length: of all copies that are under way. */
static void announce(const struct seat *s, unsigned gpu, uint64_t due, nsec_t length) {
	struct board_slot *slot = our_slot(s, gpu);
	uint64_t is = atomic_load(&slot->due_ns);

	atomic_store(&slot->length_ns, length);
	while ((is == 0 || due < is) && !atomic_compare_exchange_weak(&slot->due_ns, &is, due)) {
	}
}

/* ---- how long copies take ---- */

static nsec_t time_of(size_t bytes) {
	return bytes * atomic_load(&mib_ns) >> 20;
}

static nsec_t length_of(const struct flight *f) {
	return time_of(f->bytes);
}

/* The fastest copy was disturbed the least. */
static void learn(const struct flight *f, nsec_t now) {
	size_t done = f->bytes - f->tail;
	nsec_t ns = now > f->began && done >= LEARN_BYTES ? ((now - f->began) << 20) / done : 0;

	if (ns > 0 && ns < atomic_load(&mib_ns)) {
		atomic_store(&mib_ns, ns);
	}
}

/* The bytes of about the last TAIL_NS of a copy, from a page on; a quarter of it at most. */
static size_t tail_of(size_t bytes) {
	size_t tail = (size_t)(TAIL_NS << 20) / atomic_load(&mib_ns);

	tail = tail < bytes / 4 ? tail : bytes / 4;
	return bytes - (bytes - tail) / KEEPER_PAGE_BYTES * KEEPER_PAGE_BYTES;
}

static nsec_t length_of_all(const struct dock *d) {
	uint64_t flying = atomic_load(&d->flying);
	nsec_t sum = 0;

	for (; flying; flying &= flying - 1) {
		sum += length_of(&d->flights[__builtin_ctzll(flying)]);
	}
	return sum;
}

/* ---- the keeper ---- */

static void set_gate(struct dock *d, _Atomic uint32_t *gate, bool open) {
	atomic_store(gate, open);
	if (!open && (atomic_load(&leaving) || !atomic_load(&d->context))) {
		atomic_store(gate, true);
	}
}

/* What is under way in a dock, or several. */
struct view {
	nsec_t now, spin_until;
	uint64_t announced[PROTO_TERMS_GPUS_MAX]; /* the earliest; 0: none */
	nsec_t length[PROTO_TERMS_GPUS_MAX];
	bool any;
	bool others; /* copy too */
	bool closed; /* a gate */
	bool yields; /* jobs of ours do */
	bool ends;   /* kernels of ours will */
	nsec_t ends_since;
};

/* A copy that has waited for others for so long that it can't be done in time any more lets those
 * go first that can. One that could not be even by itself keeps its deadline until it waits. */
static void see_if_late(struct flight *f, bool waits, nsec_t now) {
	nsec_t alone = f->began + length_of(f), ends;

	if (f->held && waits && now > f->looked) {
		f->waited += now - f->looked;
	}
	f->looked = now;
	ends = alone + f->waited > now ? alone + f->waited : now;
	if (ends > f->due && ends > alone) {
		f->due = f->late_due;
	}
}

/* How long the GPU may have a piece after a look at which its gate was open. */
static nsec_t takes_of(size_t piece) {
	return time_of(piece) + NAP_NS;
}

/* Takes off what is done. Return: what is held. */
static struct board_copy look_at_flights(struct dock *d, struct view *v) {
	struct board_copy held = {.due = 0};
	uint64_t flying = atomic_load(&d->flying);
	bool waits = !atomic_load(&d->words->gate); /* since the last look */

	for (; flying; flying &= flying - 1) {
		unsigned i = (unsigned)__builtin_ctzll(flying);
		struct flight *f = &d->flights[i];
		uint64_t *announced = &v->announced[d->gpu];

		if (atomic_load(&d->words->done[i]) == f->number) {
			learn(f, v->now);
			atomic_fetch_and(&d->flying, ~(UINT64_C(1) << i));
			atomic_fetch_and(&d->taken, ~(UINT64_C(1) << i));
			continue;
		}
		see_if_late(f, waits, v->now);
		v->any = true;
		v->others |= keeper_others_copy(d->gpu);
		v->length[d->gpu] += length_of(f);
		v->spin_until = f->spin_until > v->spin_until ? f->spin_until : v->spin_until;
		if (*announced == 0 || f->due < *announced) {
			*announced = f->due;
		}
		if (f->held) {
			nsec_t takes = takes_of(f->piece);

			held.due = held.due && held.due < f->due ? held.due : f->due;
			held.takes = takes > held.takes ? takes : held.takes;
		}
	}
	return held;
}

/* For as long as we have jobs that yield. Who opens one says so first, and calls us then. */
static void look_at_kernels(struct dock *d, const struct seat *s, struct view *v) {
	CUdevice device = atomic_load(&d->device);
	struct board_kernel kernel = {.due = seat_due(device)};
	uint32_t used = atomic_load(&d->used);

	if (!kernel.due) {
		atomic_store(&d->yields, false);
		kernel.due = seat_due(device);
		atomic_store(&d->yields, kernel.due != 0);
	}
	v->yields |= kernel.due != 0;
	kernel.due = terms_held() ? kernel.due : 0;
	for (; used; used &= used - 1) {
		unsigned i = (unsigned)__builtin_ctz(used);
		bool open;

		kernel.takes = atomic_load(&d->takes[i]);
		open = !s || board_yield_is_open(&d->yields_at[i], s->board, d->gpu, s->slot,
						 &kernel, v->now);
		set_gate(d, &d->words->kernel_gates[i], open);
		v->closed |= !open;
	}
}

/* Whether the kernels that others wait for are done. */
static void look_at_end(struct dock *d, struct view *v) {
	uint32_t job = atomic_load(&d->end_job);

	if (!job) {
		return;
	}
	if (atomic_load(&d->words->kernels_done) != atomic_load(&d->end_value)) {
		v->ends = true;
		v->ends_since = atomic_load(&d->end_since);
	} else if (atomic_compare_exchange_strong(&d->end_job, &job, 0)) {
		seat_kernels_done(atomic_load(&d->end_device), job);
	}
}

static void look_at_dock(struct dock *d, const struct seat *s, struct view *v) {
	struct board_copy held;
	bool open;

	atomic_store(&looking, d); /* its context does not go now */
	if (atomic_load(&d->context)) {
		held = look_at_flights(d, v);
		held.due = terms_held() ? held.due : 0;
		open = !s || board_gate_is_open(&d->gate, s->board, d->gpu, s->slot, &held, v->now);
		set_gate(d, &d->words->gate, open);
		v->closed |= !open;
		if (atomic_load(&d->yields)) {
			look_at_kernels(d, s, v);
		}
		look_at_end(d, v);
	}
	atomic_store(&looking, NULL);
}

static struct view look(void) {
	const struct seat *s = seat_get();
	struct view v = {.now = nsec_now()};
	uint64_t before[PROTO_TERMS_GPUS_MAX];

	atomic_store(&looked, v.now);
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		before[i] = atomic_load(&our_slot(s, i)->due_ns);
	}
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		look_at_dock(&docks[i], s, &v);
	}
	/* Who has announced something since then has changed the slot, or says the same: then the
	 * next look puts it right. */
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		struct board_slot *slot = our_slot(s, i);

		if (before[i] != v.announced[i]) {
			atomic_store(&slot->length_ns, v.length[i]);
			atomic_compare_exchange_strong(&slot->due_ns, &before[i], v.announced[i]);
		}
	}
	return v;
}

static void open_gates(struct dock *d) {
	atomic_store(&d->words->gate, true);
	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		atomic_store(&d->words->kernel_gates[i], true);
	}
}

static bool is_any_closed(const struct dock *d) {
	bool closed = !atomic_load(&d->words->gate);

	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		closed |= !atomic_load(&d->words->kernel_gates[i]);
	}
	return closed;
}

/* ---- the tracker's part ---- */

nsec_t keeper_watch(nsec_t now) {
	nsec_t late = atomic_load(&looked) + KEEPER_LATE_NS, next = UINT64_MAX;

	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		struct dock *d = &docks[i];

		atomic_store(&watching, d); /* its context does not go now */
		if (atomic_load(&d->context) && is_any_closed(d)) {
			if (now >= late) {
				open_gates(d);
			} else {
				next = late;
			}
		}
		atomic_store(&watching, NULL);
	}
	return next;
}

/* ---- its thread ---- */

static void sleep_until_called(uint32_t seen, nsec_t t) {
	struct timespec ts = nsec_timespec(t);

	atomic_store(&asleep, true);
	if (atomic_load(&calls) == seen) {
		syscall(SYS_futex, &calls, FUTEX_WAIT_PRIVATE, seen, t ? &ts : NULL, NULL, 0);
	}
	atomic_store(&asleep, false);
}

static nsec_t late_of(const struct view *v) {
	return v->now > v->spin_until ? v->now - v->spin_until : 0;
}

/* Not late where somebody waits: see keeper_watch(). */
static nsec_t nap_of(const struct view *v) {
	nsec_t late = v->any ? late_of(v) : UINT64_MAX;

	if (v->closed) {
		return NAP_CLOSED_NS;
	}
	if (v->ends && v->now - v->ends_since < late) {
		late = v->now - v->ends_since;
	}
	if (v->yields || late / 16 < NAP_NS) {
		return NAP_NS;
	}
	return late / 16 < NAP_MAX_NS ? late / 16 : NAP_MAX_NS;
}

static void *keep(void *data) {
	bool spins = spin_allowed(1) > 0;

	(void)data;
	pthread_setname_np(pthread_self(), "sbeet-copies");
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	for (;;) {
		uint32_t seen = atomic_load(&calls);
		struct view v = look();

		if (!v.any && !v.yields && !v.ends) {
			sleep_until_called(seen, 0);
		} else if (!(spins && v.any && v.others && !late_of(&v))) {
			sleep_until_called(seen, nap_of(&v));
		}
	}
	return NULL;
}

static bool start_locked(void) {
	running = thread_start(NULL, STACK_BYTES, keep, NULL) == 0;
	return running;
}

static void call_keeper(void) {
	atomic_fetch_add(&calls, 1);
	if (atomic_load(&asleep)) {
		syscall(SYS_futex, &calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

/* ---- docks ---- */

static struct dock *find_dock(CUcontext context) {
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		if (atomic_load_explicit(&docks[i].context, memory_order_acquire) == context) {
			return &docks[i];
		}
	}
	return NULL;
}

static bool fill_dock(struct dock *d) {
	const struct real *real = real_get();
	void *words;

	if (!real->cuMemHostAlloc || !real->cuMemHostGetDevicePointer_v2 ||
	    real->cuMemHostAlloc(&words, sizeof(*d->words), CU_MEMHOSTALLOC_DEVICEMAP) !=
		    CUDA_SUCCESS) {
		return false;
	}
	if (real->cuMemHostGetDevicePointer_v2(&d->at, words, 0) != CUDA_SUCCESS) {
		real->cuMemFreeHost(words);
		return false;
	}
	memset(words, 0, sizeof(*d->words));
	d->words = words;
	d->gate = (struct board_gate){.closed_ns = 0};
	memset(d->yields_at, 0, sizeof(d->yields_at));
	for (unsigned i = 0; i < KERNEL_GATES; i++) {
		atomic_store(&d->takes[i], 0);
	}
	atomic_store(&d->used, 0);
	for (unsigned i = 0; i < COPIES_MAX; i++) {
		d->flights[i].number = 0;
	}
	atomic_store(&d->taken, 0);
	atomic_store(&d->flying, 0);
	atomic_store(&d->yields, false);
	atomic_store(&d->end_job, 0);
	atomic_store(&d->end_value, 0);
	open_gates(d);
	return true;
}

static struct dock *make_dock(CUcontext context) {
	int token = state_enter_locked(&lock);
	struct dock *d = find_dock(context);

	/* To allocate memory may spoil a capture. */
	if (!d && !capture_any() && (running || start_locked())) {
		d = find_dock(NULL);
		if (d && fill_dock(d)) {
			atomic_store(&d->context, context);
		} else {
			d = NULL;
		}
	}
	state_leave_locked(&lock, token);
	return d;
}

void keeper_context_destroying(CUcontext context) {
	struct dock *d = context ? find_dock(context) : NULL;

	if (!d) {
		return;
	}
	atomic_store(&d->context, NULL);
	while (atomic_load(&looking) == d || atomic_load(&watching) == d) {
		sched_yield();
	}
	open_gates(d); /* what is queued may go */
	atomic_store(&d->flying, 0);
	call_keeper(); /* the board */
}

/* ---- copies ---- */

/* Return: a flight, or -1. */
static int take_flight(struct dock *d) {
	const uint64_t all = (UINT64_C(1) << COPIES_MAX) - 1;
	uint64_t taken = atomic_load(&d->taken);

	while ((taken & all) != all) {
		unsigned i = (unsigned)__builtin_ctzll(~taken);

		if (atomic_compare_exchange_weak(&d->taken, &taken, taken | UINT64_C(1) << i)) {
			return (int)i;
		}
	}
	return -1;
}

bool keeper_begin(CUcontext context, struct keeper_copy *copy) {
	const struct seat *s = seat_get();
	struct dock *d = find_dock(context);
	nsec_t now = nsec_now();
	struct board_copy piece;
	struct flight *f;
	int i;

	if (!s || atomic_load(&leaving)) {
		return false;
	}
	d = d ? d : make_dock(context);
	i = d ? take_flight(d) : -1;
	if (i < 0) {
		return false;
	}
	atomic_store(&d->gpu, copy->gpu); /* another sbeetd may have other places */
	f = &d->flights[i];
	*f = (struct flight){
		.due = copy->due,
		.late_due = copy->late_due,
		.began = now,
		.looked = now,
		.bytes = copy->bytes,
		.tail = copy->held ? tail_of(copy->bytes) : 0,
		.spin_until = now + SPIN_NS + copy->bytes / SPIN_BYTES_A_NS,
		.number = f->number + 1,
		.held = copy->held,
	};
	f->piece = copy->piece + f->tail;
	piece = (struct board_copy){copy->due, takes_of(f->piece)};
	copy->gate = d->at + offsetof(struct words, gate);
	copy->done = d->at + offsetof(struct words, done[i]);
	copy->done_word = &d->words->done[i];
	copy->done_value = f->number;
	copy->tail = f->tail;
	atomic_fetch_or(&d->flying, UINT64_C(1) << i);
	announce(s, copy->gpu, copy->due, length_of_all(d));
	/* The keeper alone opens the gate again, so it must be awake before the driver can make us
	 * wait for room. Else there is time to call it when the copy is on its way. */
	copy->called = copy->held && board_is_before(s->board, copy->gpu, s->slot, &piece, now);
	if (copy->called) {
		atomic_store(&looked, now);
		set_gate(d, &d->words->gate, false);
		call_keeper();
	}
	return true;
}

void keeper_handed_over(const struct keeper_copy *copy) {
	if (!copy->called) {
		call_keeper();
	}
}

void keeper_cancel(const struct keeper_copy *copy) {
	atomic_store(copy->done_word, copy->done_value);
	keeper_handed_over(copy);
}

/* ---- kernels ---- */

static unsigned gate_of(nsec_t takes) {
	unsigned i = takes > 0;

	for (nsec_t most = PROTO_BEHIND_NS; i < KERNEL_GATES - 1 && takes > most; most *= 2) {
		i++;
	}
	return i;
}

/* What is behind gate @i: the longest of late. Return: whether it was not used before. */
static bool use_gate(struct dock *d, unsigned i, nsec_t takes) {
	nsec_t known = atomic_load_explicit(&d->takes[i], memory_order_relaxed);
	uint32_t bit = 1u << i;

	if (takes < known) {
		takes = known - (known - takes) / SHORTER_PART;
	}
	atomic_store_explicit(&d->takes[i], takes, memory_order_relaxed);
	return !(atomic_load(&d->used) & bit) && !(atomic_fetch_or(&d->used, bit) & bit);
}

/* The first kernel must not begin before the keeper looks. */
static void close_gates(struct dock *d, const struct seat *s, uint64_t due) {
	struct board_kernel kernel = {.due = due};
	nsec_t now = nsec_now();

	for (uint32_t used = atomic_load(&d->used); used; used &= used - 1) {
		unsigned i = (unsigned)__builtin_ctz(used);

		kernel.takes = atomic_load(&d->takes[i]);
		if (board_is_awaited(s->board, d->gpu, s->slot, &kernel, now)) {
			atomic_store(&looked, now);
			set_gate(d, &d->words->kernel_gates[i], false);
		}
	}
	call_keeper();
}

CUdeviceptr keeper_gate(CUcontext context, CUdevice device, unsigned gpu, nsec_t takes) {
	const struct seat *s = seat_get();
	struct dock *d = find_dock(context);
	uint64_t due = seat_due(device);
	unsigned i = gate_of(takes);
	bool first;

	if (!s || !due || atomic_load(&leaving)) {
		return 0;
	}
	d = d ? d : make_dock(context);
	if (!d) {
		return 0;
	}
	atomic_store(&d->gpu, gpu);
	atomic_store(&d->device, device);
	first = use_gate(d, i, takes);
	first |= !atomic_load(&d->yields) && !atomic_exchange(&d->yields, true);
	if (first) {
		close_gates(d, s, due);
	}
	return d->at + offsetof(struct words, kernel_gates[0]) + i * sizeof(uint32_t);
}

bool keeper_kernels_end(CUcontext context, CUdevice device, struct keeper_word *ret) {
	struct dock *d = find_dock(context);
	uint32_t job = seat_get() ? seat_only_job(device) : 0;

	if (!job || atomic_load(&leaving)) {
		return false;
	}
	d = d ? d : make_dock(context);
	if (!d) {
		return false;
	}
	atomic_store(&d->end_job, 0);
	atomic_store(&d->end_device, device);
	*ret = (struct keeper_word){
		.at = d->at + offsetof(struct words, kernels_done),
		.value = atomic_fetch_add(&d->end_value, 1) + 1,
		.job = job,
	};
	return true;
}

void keeper_kernels_watch(CUcontext context, const struct keeper_word *word) {
	struct dock *d = find_dock(context);

	if (d) {
		atomic_store(&d->end_since, nsec_now());
		atomic_store(&d->end_job, word->job);
		call_keeper();
	}
}

void keeper_kernels_go_on(CUcontext context, CUdevice device) {
	struct dock *d = find_dock(context);

	if (d) {
		atomic_store(&d->end_job, 0);
	}
	seat_kernels_done(device, 0);
}

/* ---- the end ---- */

void keeper_leave(void) {
	const struct seat *s = seat_get();

	atomic_store(&leaving, true);
	for (unsigned i = 0; i < DOCKS_MAX; i++) {
		CUcontext context = atomic_load(&docks[i].context);

		if (context) {
			keeper_context_destroying(context);
		}
	}
	for (unsigned i = 0; s && i < PROTO_TERMS_GPUS_MAX; i++) {
		atomic_store(&our_slot(s, i)->due_ns, 0);
	}
}

void keeper_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	running = false;
	memset(docks, 0, sizeof(docks));
	atomic_store(&looking, NULL);
	atomic_store(&watching, NULL);
	atomic_store(&leaving, false);
	atomic_store(&asleep, false);
}
