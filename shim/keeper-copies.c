/*
 * keeper-copies.c: copies that are under way, see keeper.h.
 */
#include "shim/keeper-internal.h"
#include "shim/keeper.h"

/* While a copy may be moving, and others copy too, its gate is looked at without a pause: for so
 * long, and longer by the time that its bytes take at 8 GB/s. Then it waits for something else. */
#define SPIN_NS		(20 * NSEC_PER_MSEC)
#define SPIN_BYTES_A_NS 8

/* A stream that has waited for its gate goes on that long after it was opened (H100). So others may
 * begin so long before a held copy is done: then the link is not idle in between. */
#define TAIL_NS (30 * NSEC_PER_USEC)

/* How long a copy takes by itself is learnt from those of some size. Until then 8 GB/s is assumed.
 */
#define LEARN_BYTES (1u << 20)
#define MIB_NS	    ((1u << 20) / SPIN_BYTES_A_NS)

static _Atomic nsec_t mib_ns = MIB_NS; /* the least that was seen */

bool keeper_others_copy(unsigned gpu) {
	const struct seat *s = seat_get();

	return s && board_is_busy(s->board, gpu, s->slot);
}

/* Before the copy is handed over. @length: of all copies that are under way. */
static void announce(const struct seat *s, unsigned gpu, uint64_t due, nsec_t length) {
	struct board_slot *slot = &s->board->slots[gpu][s->slot];
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

/* ---- the keeper's look ---- */

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
	return time_of(piece) + KEEPER_NAP_NS;
}

struct board_copy keeper_look_at_copies(struct dock *d, struct keeper_view *v) {
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

/* ---- a copy ---- */

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
	nsec_t now = nsec_now();
	struct board_copy piece;
	struct flight *f;
	struct dock *d;
	int i;

	if (!s || keeper_is_leaving()) {
		return false;
	}
	d = keeper_dock(context);
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
		keeper_close_gate(d, &d->words->gate, now);
		keeper_call();
	}
	return true;
}

void keeper_handed_over(const struct keeper_copy *copy) {
	if (!copy->called) {
		keeper_call();
	}
}

void keeper_cancel(const struct keeper_copy *copy) {
	atomic_store(copy->done_word, copy->done_value);
	keeper_handed_over(copy);
}
