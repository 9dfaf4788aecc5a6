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
#include "shim/memory.h"
#include "shim/op.h"
#include "shim/seat.h"
#include "shim/terms.h"
#include "shim/value.h"

/* An urgent copy waits for one piece at most. Between two pieces the link is idle for 8 us, which
 * costs copies of 1 GiB 4 % (H100). */
#define PIECE_BYTES ((size_t)6 << 20)

/* ---- the driver ---- */

/* @n bytes from @at on. */
static CUresult copy_part(const struct copies_call *c, CUstream stream, size_t at, size_t n) {
	const struct real *real = real_get();
	const void *from = (const void *)(uintptr_t)(c->from + at);
	void *to = (void *)(uintptr_t)(c->to + at);

	switch (c->direction) {
	case COPIES_UNIFIED:
		return c->per_thread ? real->cuMemcpyAsync_ptsz(c->to + at, c->from + at, n, stream)
				     : real->cuMemcpyAsync(c->to + at, c->from + at, n, stream);
	case COPIES_BACK:
		return c->per_thread ? real->cuMemcpyDtoHAsync_v2_ptsz(to, c->from + at, n, stream)
				     : real->cuMemcpyDtoHAsync_v2(to, c->from + at, n, stream);
	case COPIES_TO_GPU:
		break;
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

/* From one piece of pinned memory (a driver need not know how long it is) into one piece that is
 * mapped: no part of the copy would be refused where the whole is not. */
static bool is_plain_pinned(const struct copies_call *c) {
	const struct real *real = real_get();
	struct memory m;

	return c->n > 0 && memory_is_of_type(c->from, CU_MEMORYTYPE_HOST, &m) &&
	       (m.size == 0 || memory_has(&m, c->from, c->n)) && memory_is_pinned(c->from) &&
	       memory_is_pinned(c->from + c->n - 1) &&
	       memory_is_of_type(c->to, CU_MEMORYTYPE_DEVICE, &m) &&
	       real->cuMemGetAddressRange_v2 &&
	       real->cuMemGetAddressRange_v2(&m.start, &m.size, c->to) == CUDA_SUCCESS &&
	       memory_has(&m, c->to, c->n);
}

/* What the copy is to others. Return: false: it is nothing to them, and has nothing to wait for. */
static bool describe(const struct op *op, const struct copies_call *c, enum terms_copies copies,
		     struct keeper_copy *ret) {
	nsec_t within = terms_copy_due(op->lane->device), late_within, release;
	bool large = c->n > PIECE_BYTES, hold = large && copies == TERMS_COPIES_HELD, plain;
	bool unified = c->direction == COPIES_UNIFIED;

	if (!seat_get() || !value_can_wait(c->per_thread) ||
	    !terms_place(op->lane->device, &ret->gpu) ||
	    (!large && (!within || !keeper_others_copy(ret->gpu)))) {
		return false;
	}
	plain = (unified || hold) && is_plain_pinned(c);
	release = atomic_load(&op->lane->granted_ns);
	late_within = terms_copy_late_due(op->lane->device);
	ret->due = board_due(release, within);
	ret->late_due = late_within > within ? board_due(release, late_within) : ret->due;
	ret->bytes = c->n;
	ret->piece = piece_of(c->n);
	ret->held = hold && plain && gate_others_go_on();
	return ret->held || (ret->due != BOARD_NO_DUE && (plain || !unified));
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

	if (c->direction == COPIES_BACK || copies == TERMS_COPIES_WHOLE ||
	    !describe(op, c, copies, &copy) || !keeper_begin(op->id->context, &copy)) {
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
