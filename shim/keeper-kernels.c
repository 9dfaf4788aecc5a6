/*
 * keeper-kernels.c: gates of kernels of jobs that yield, and the end of those of jobs that are
 * awaited, see keeper.h.
 */
#include "shim/keeper-internal.h"
#include "shim/keeper.h"

#include "shim/terms.h"

/* How much nearer what the kernels of a gate take comes to a shorter one: to one of so many. */
#define SHORTER_PART 64

/* ---- the keeper's looks ---- */

void keeper_look_at_kernels(struct dock *d, const struct seat *s, struct keeper_view *v) {
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
		keeper_set_gate(d, &d->words->kernel_gates[i], open);
		v->closed |= !open;
	}
}

void keeper_look_at_end(struct dock *d, struct keeper_view *v) {
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

/* ---- jobs that yield ---- */

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
			keeper_close_gate(d, &d->words->kernel_gates[i], now);
		}
	}
	keeper_call();
}

CUdeviceptr keeper_gate(CUcontext context, CUdevice device, unsigned gpu, nsec_t takes) {
	const struct seat *s = seat_get();
	uint64_t due = seat_due(device);
	unsigned i = gate_of(takes);
	struct dock *d;
	bool first;

	if (!s || !due || keeper_is_leaving()) {
		return 0;
	}
	d = keeper_dock(context);
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

/* ---- jobs that are awaited ---- */

bool keeper_kernels_end(CUcontext context, CUdevice device, struct keeper_word *ret) {
	uint32_t job = seat_get() ? seat_only_job(device) : 0;
	struct dock *d;

	if (!job || keeper_is_leaving()) {
		return false;
	}
	d = keeper_dock(context);
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
	struct dock *d = keeper_find_dock(context);

	if (d) {
		atomic_store(&d->end_since, nsec_now());
		atomic_store(&d->end_job, word->job);
		keeper_call();
	}
}

void keeper_kernels_go_on(CUcontext context, CUdevice device) {
	struct dock *d = keeper_find_dock(context);

	if (d) {
		atomic_store(&d->end_job, 0);
	}
	seat_kernels_done(device, 0);
}
