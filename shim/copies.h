/*
 * copies.h: asynchronous copies to the GPU of programs whose terms say that copies are held or go
 * first: they are announced to others, and where they are held large ones go in pieces that let
 * more urgent copies of others go first (see keeper.h). The next one begins when the last 30 us of
 * a copy are left. The program sees no difference: one stream, the pieces in order, what comes
 * after the copy after all of them.
 *
 * A copy stays whole where a difference could show, or nobody would gain by it: from memory that is
 * not pinned or is write-combined, registered read-only or for I/O; where a part of it would be
 * refused; into streams that are being captured; in programs of many streams, where one that
 * waits blocks others; with a driver that can't let streams wait for values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

struct op;

enum copies_direction {
	COPIES_TO_GPU,	/* cuMemcpyHtoDAsync */
	COPIES_BACK,	/* cuMemcpyDtoHAsync */
	COPIES_UNIFIED, /* cuMemcpyAsync, which finds the direction by the addresses */
};

/* One call of the program. */
struct copies_call {
	CUdeviceptr to, from;
	size_t n;
	enum copies_direction direction;
	bool per_thread; /* its stream 0 is the thread's own */
};

/* Makes the copy, that is part of the job of @op, in @op's stream; one back as the program called
 * it. Return: the driver's answer. */
CUresult copies_make(const struct op *op, const struct copies_call *call);

/* The same, as the program called it, in @stream. */
CUresult copies_make_whole(const struct copies_call *call, CUstream stream);
