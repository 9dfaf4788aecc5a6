/*
 * copies.c: see copies.h.
 */
#include "shim/real.h"

#include "shim/copies.h"

#include <stdatomic.h>

#include "shim/base/log.h"
#include "shim/gate.h"
#include "shim/keeper.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/seat.h"
#include "shim/terms.h"
#include "shim/value.h"

/* An urgent copy waits for one piece at most. Between two pieces the link is idle for 8 us, which
 * costs copies of 1 GiB 4 % (H100). */
#define PIECE_BYTES ((size_t)6 << 20)

/* Of cuMemHostAlloc() write-combined, or of cuMemHostRegister() I/O or read-only. */
#define HOST_FLAGS_SPECIAL 0xc

/* ---- the driver ---- */

/* @n bytes from @at on. */
static CUresult copy_part(const struct copies_call *c, CUstream stream, size_t at, size_t n) {
	const struct real *real = real_get();
	const void *from = (const void *)(uintptr_t)(c->from + at);

	if (c->unified) {
		return c->per_thread ? real->cuMemcpyAsync_ptsz(c->to + at, c->from + at, n, stream)
				     : real->cuMemcpyAsync(c->to + at, c->from + at, n, stream);
	}
	return c->per_thread ? real->cuMemcpyHtoDAsync_v2_ptsz(c->to + at, from, n, stream)
			     : real->cuMemcpyHtoDAsync_v2(c->to + at, from, n, stream);
}

CUresult copies_make_whole(const struct copies_call *c, CUstream stream) {
	return copy_part(c, stream, 0, c->n);
}

/* All pieces are of about the same length. */
static size_t piece_of(size_t n) {
	size_t pages = (n + KEEPER_PAGE_BYTES - 1) / KEEPER_PAGE_BYTES;
	size_t pieces = n / PIECE_BYTES + 1;

	return (pages + pieces - 1) / pieces * KEEPER_PAGE_BYTES;
}

/* ---- what it is ---- */

/* Whether @p is memory of @type that is not managed. @ret_start, @ret_size: of the allocation. */
static bool is_of_type(CUdeviceptr p, CUmemorytype type, CUdeviceptr *ret_start, size_t *ret_size) {
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned is_type = 0, is_managed = 0; /* the second is written as one byte */
	void *answers[] = {&is_type, &is_managed, ret_start, ret_size};
	const struct real *real = real_get();

	return real->cuPointerGetAttributes &&
	       real->cuPointerGetAttributes(4, which, answers, p) == CUDA_SUCCESS &&
	       is_type == type && !is_managed;
}

static bool lies_in(CUdeviceptr p, size_t n, CUdeviceptr start, size_t size) {
	return p >= start && p - start <= size && n <= size - (p - start);
}

static bool is_pinned(CUdeviceptr p) {
	const struct real *real = real_get();
	unsigned flags;

	return real->cuMemHostGetFlags &&
	       real->cuMemHostGetFlags(&flags, (void *)(uintptr_t)p) == CUDA_SUCCESS &&
	       !(flags & HOST_FLAGS_SPECIAL);
}

/* From one piece of pinned memory (a driver need not know how long it is) into one piece that is
 * mapped: no part of the copy would be refused where the whole is not. */
static bool is_plain_pinned(const struct copies_call *c) {
	const struct real *real = real_get();
	CUdeviceptr start = 0;
	size_t size = 0;

	return c->n > 0 && is_of_type(c->from, CU_MEMORYTYPE_HOST, &start, &size) &&
	       (size == 0 || lies_in(c->from, c->n, start, size)) && is_pinned(c->from) &&
	       is_pinned(c->from + c->n - 1) &&
	       is_of_type(c->to, CU_MEMORYTYPE_DEVICE, &start, &size) &&
	       real->cuMemGetAddressRange_v2 &&
	       real->cuMemGetAddressRange_v2(&start, &size, c->to) == CUDA_SUCCESS &&
	       lies_in(c->to, c->n, start, size);
}

/* What the copy is to others. Return: false: it is nothing to them, and has nothing to wait for. */
static bool describe(const struct op *op, const struct copies_call *c, enum terms_copies copies,
		     struct keeper_copy *ret) {
	nsec_t within = terms_copy_due(op->lane->device), late_within, release;
	bool large = c->n > PIECE_BYTES, hold = large && copies == TERMS_COPIES_HELD, plain;

	if (!seat_get() || !value_can_wait(c->per_thread) ||
	    !terms_place(op->lane->device, &ret->gpu) ||
	    (!large && (!within || !keeper_others_copy(ret->gpu)))) {
		return false;
	}
	plain = (c->unified || hold) && is_plain_pinned(c);
	release = atomic_load(&op->lane->granted_ns);
	late_within = terms_copy_late_due(op->lane->device);
	ret->due = board_due(release, within);
	ret->late_due = late_within > within ? board_due(release, late_within) : ret->due;
	ret->bytes = c->n;
	ret->piece = piece_of(c->n);
	ret->held = hold && plain && gate_others_go_on();
	return ret->held || (ret->due != BOARD_NO_DUE && (plain || !c->unified));
}

/* ---- how it is made ---- */

/* @n bytes from @at on; what waits has been handed over once the first wait is: from then on pieces
 * follow whatever happens. A copy that goes first anyway does not wait with its first piece. */
static CUresult copy_in_pieces(const struct copies_call *c, CUstream stream,
			       const struct keeper_copy *copy, size_t n) {
	size_t each = piece_of(n);
	CUresult rc = CUDA_SUCCESS;

	for (size_t at = 0, piece; at < n && rc == CUDA_SUCCESS; at += piece) {
		piece = n - at;
		if ((at == 0 && !copy->called) || value_wait(stream, c->per_thread, copy->gate)) {
			piece = piece < each ? piece : each;
		}
		rc = copy_part(c, stream, at, piece);
	}
	return rc;
}

CUresult copies_make(const struct op *op, const struct copies_call *c) {
	enum terms_copies copies =
		terms_unpack(atomic_load_explicit(&op->lane->terms, memory_order_relaxed)).copies;
	CUstream stream = op->place.at;
	struct keeper_copy copy;
	size_t n;
	CUresult rc;
	bool written;

	if (copies == TERMS_COPIES_WHOLE || !describe(op, c, copies, &copy) ||
	    !keeper_begin(op->id->context, &copy)) {
		return copies_make_whole(c, stream);
	}
	if (copy.held) {
		log_once(LOG_LEVEL_INFO, "Large copies to the GPU let more urgent ones go first");
	}
	n = c->n - copy.tail;
	rc = copy.held ? copy_in_pieces(c, stream, &copy, n) : copies_make_whole(c, stream);
	written = value_write(stream, c->per_thread, copy.done, copy.done_value);
	if (rc == CUDA_SUCCESS && copy.tail > 0) {
		rc = copy_part(c, stream, n, copy.tail);
	}
	if (written) {
		keeper_handed_over(&copy);
	} else {
		keeper_cancel(&copy);
	}
	return rc;
}
