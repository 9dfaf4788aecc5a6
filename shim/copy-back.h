/*
 * copy-back.h: asynchronous copies from the GPU that a kernel makes, where terms say so
 * (proto/terms.h).
 *
 * A copy engine serves all programs in order, whatever their priority: 1 KiB waits for up to 300 us
 * behind somebody's 16 MiB. Such a kernel waits for SMs instead, as the level of its stream says,
 * and takes as long as the engine alone does. The program sees no difference: one operation in the
 * same stream.
 *
 * The engine makes a copy where a difference could show, or a kernel could not: of more than
 * TERMS_BACK_MAX bytes, or of addresses and a length that 4 does not divide; to memory that is not
 * pinned or is write-combined, registered read-only or for I/O; from managed memory, or from
 * another context's; where the driver can't say that all of it lies in one allocation; into streams
 * that are being captured.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "shim/copies.h"

struct op;

/* Makes the copy, that is part of the job of @op, in @op's stream. Return: false: it was not made.
 * The first one of a context compiles the kernel, which takes milliseconds: so that is done for the
 * first copy that is fit, whether terms want kernels by then or not. */
bool copy_back_make(const struct op *op, const struct copies_call *call);

/* Called before the driver's own function. */
void copy_back_context_destroying(CUcontext context);

/* After fork, in the child: forget everything. */
void copy_back_after_fork(void);
