/*
 * trace.h: where blocks ran, as a trace that Perfetto and chrome://tracing show: the JSON array of
 * the Chrome trace format. Each SM is a process of its own ("GPU 0 SM 3"), and each block that is
 * on it a slice on one of its threads: rows, of which there are as many as blocks were on the SM at
 * once. Times are the GPU's virtual ones.
 *
 * A slice's name is the kernel's. Its args: gpu, pid (of the client), launch (number of the
 * operation on its GPU), block, sm (physical), smid (what the block saw), start_ns, end_ns.
 *
 * The closing bracket comes when simgpud ends; until then the file is as the format allows: an
 * array that has not been closed, with whole lines. Blocks that are stopped before their end are
 * left out.
 */
#pragma once

#include "tests/simgpu/config.h"

struct trace;

struct trace_block {
	unsigned gpu;
	int pid;
	const char *kernel; /* an identifier of PTX: needs no escapes */
	uint64_t launch;
	const struct device_block *block;
	unsigned row;
	uint64_t end_ns;
};

/* Makes or empties the file. Return: 0 or negative errno. */
int trace_new(struct trace **ret, const char *path, const struct config *config);
struct trace *trace_free(struct trace *t); /* closes the array */

/* A block comes to an SM: the row that it has until trace_give_row(). */
unsigned trace_take_row(struct trace *t, unsigned gpu, unsigned sm);
void trace_give_row(struct trace *t, unsigned gpu, unsigned sm, unsigned row);
void trace_write(struct trace *t, const struct trace_block *b);
