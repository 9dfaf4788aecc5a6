/*
 * route.h: the short way of a launch. Most launches are like the one before: the same thread, job,
 * context and stream, and a kernel that the thread has launched in the same shape. What op.c found
 * out for that one leads this one as well, as long as nothing of it has changed; else the launch
 * goes the long way, and nothing was done. So does the launch that opens a job: the next one goes
 * as those of the last job did.
 *
 * Between two launches a program has other things in the caches, so what counts is how few cache
 * lines this touches: tests/bench/LAUNCH.md.
 *
 * Only in jobs under terms, which are never stopped, and whose kernels need not yield.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/real.h"

struct kernel_count;
struct op;
struct worker;

/* What a launch needs in order to be like another one. @per_thread: stream 0 is the thread's own.
 */
struct route_launch {
	CUfunction function;
	CUstream stream;
	bool per_thread;
	uint32_t block_threads, shared_bytes;
	uint64_t blocks;
};

/* Of a launch that is on the short way; between route_begin() and route_end(). */
struct route_use {
	struct worker *worker;
	struct kernel_count *count;
	CUstream at; /* the stream to name to the driver */
};

/* Return: whether @l may go the short way: then the caller hands it to the driver, with @u->at for
 * its stream, and calls route_end(). The depth counter is raised until then. With state_bypass()
 * false, and not for cooperative launches. */
bool route_begin(struct route_use *u, const struct real *real, const struct route_launch *l);

/* @rc: the driver's answer. */
void route_end(const struct route_use *u, const struct route_launch *l, CUresult rc);

/* Launches like that of @op may go the way that it has gone, unless it is special; between
 * op_begin() and op_end(), when the driver has taken it. */
void route_learn(const struct op *op);
