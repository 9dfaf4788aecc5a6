/*
 * simgpu-world.h: a GPU model with blocks that take as long as the script says, for the tests of
 * the model: what happened is a text of one line for each block and copy.
 */
#pragma once

#include "tests/simgpu/device.h"

#define MS  1000000ull
#define KIB 1024u

#define STREAMS 10 /* of the first process; the NULL stream is 0 */
#define LOG_MAX 16384

/* The TX2: two SMs, one copy engine; times of starting and copying are left out. A copy of 1 MB
 * takes a millisecond. */
extern const struct device_config tx2;

struct test_op {
	struct device_op base;
	const char *name;
	uint64_t duration_ns; /* of each block */
	bool faults;
	bool done, ok;
	uint64_t dispatched_ns; /* its last block was assigned */
	uint64_t done_ns;
};

struct world {
	struct device *device;
	struct device_space *space;
	struct device_stream *streams[STREAMS];
	unsigned n_failed;
	struct test_op *host_op;
	char log[LOG_MAX]; /* "K1:0 sm0 0-1000" a line, in the order of ends; milliseconds */
};

void world_init(struct world *w, const struct device_config *config);
void world_deinit(struct world *w);
void world_set_priority(struct world *w, unsigned stream, unsigned priority);

/* Everything due up to @ms. */
void world_run_until(struct world *w, uint64_t ms);
void world_run(struct world *w);

struct test_op kernel(const char *name, unsigned blocks, unsigned threads, unsigned shared_kib,
		      unsigned ms);
struct test_op copy(const char *name, enum device_op_kind kind, unsigned ms);
void submit(struct world *w, unsigned stream, struct test_op *op);

/* Another process on the same GPU. */
struct second {
	struct device_space *space;
	struct device_stream *stream;
};

void second_init(struct second *s, struct world *w);
