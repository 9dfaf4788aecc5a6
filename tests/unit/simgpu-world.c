/* simgpu-world.c: see simgpu-world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/simgpu-world.h"

const struct device_config tx2 = {
	.n_sms = 2,
	.sm_threads = 2048,
	.sm_blocks = 32,
	.sm_regs = 65536,
	.sm_shared_bytes = 64 * KIB,
	.copy_engines = 1,
	.slice_ns = 2 * MS,
	.host_bytes_per_ms = 1000000, /* 1 MB a millisecond */
	.device_bytes_per_ms = 1000000,
};

/* ---- a backend that spins ---- */

static void world_log(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void world_log(struct world *w, const char *format, ...) {
	size_t n = strlen(w->log);
	va_list args;

	va_start(args, format);
	vsnprintf(w->log + n, sizeof(w->log) - n, format, args);
	va_end(args);
}

static int spin_start(void *userdata, struct device_block *b) {
	struct test_op *op = (struct test_op *)b->op;
	uint64_t *left = malloc(sizeof(*left));

	if (!left) {
		return -ENOMEM;
	}
	*left = op->duration_ns;
	op->dispatched_ns = device_now_ns(((struct world *)userdata)->device);
	b->state = left;
	return 0;
}

/* In steps of at most 0.1 ms, so that turns can change in between. */
static enum device_result spin_run(void *userdata, struct device_block *b, uint64_t now_ns,
				   unsigned sm_threads, uint64_t *ret_ns) {
	uint64_t *left = b->state, step = *left < MS / 10 ? *left : MS / 10;

	assert_true(sm_threads >= b->op->kernel.threads);
	*left -= step;
	*ret_ns = step;
	if (*left > 0) {
		return DEVICE_MORE;
	}
	return ((struct test_op *)b->op)->faults ? DEVICE_FAULT : DEVICE_DONE;
}

static void spin_end(void *userdata, struct device_block *b, uint64_t end_ns) {
	struct world *w = userdata;

	if (end_ns != DEVICE_NEVER) {
		world_log(w, "%s:%u sm%u", ((struct test_op *)b->op)->name, (unsigned)b->index,
			  b->sm);
		if (b->smid != b->sm) {
			world_log(w, " as %u", b->smid);
		}
		world_log(w, " %u-%u\n", (unsigned)(b->start_ns / MS), (unsigned)(end_ns / MS));
	}
	free(b->state);
}

static void spin_host(void *userdata, struct device_op *op) {
	((struct world *)userdata)->host_op = (struct test_op *)op;
}

static void spin_done(void *userdata, struct device_op *base, bool ok) {
	struct world *w = userdata;
	struct test_op *op = (struct test_op *)base;

	op->done = true;
	op->ok = ok;
	op->done_ns = w->device ? device_now_ns(w->device) : 0;
	if (ok && base->kind >= DEVICE_COPY_IN && base->kind <= DEVICE_COPY_LOCAL) {
		world_log(w, "%s %u-%u\n", op->name, (unsigned)(base->start_ns / MS),
			  (unsigned)(op->done_ns / MS));
	}
}

static void spin_failed(void *userdata, struct device_space *space) {
	((struct world *)userdata)->n_failed++;
}

static const struct device_backend spin = {
	.block_start = spin_start,
	.block_run = spin_run,
	.block_end = spin_end,
	.host_due = spin_host,
	.op_done = spin_done,
	.space_failed = spin_failed,
};

/* ---- scripts ---- */

void world_init(struct world *w, const struct device_config *config) {
	memset(w, 0, sizeof(*w));
	assert_int_equal(device_new(&w->device, config, 0, &spin, w), 0);
	assert_int_equal(device_space_new(&w->space, w->device, w), 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		assert_int_equal(device_stream_new(&w->streams[i], w->space,
						   i ? DEVICE_STREAM_BLOCKING : DEVICE_STREAM_NULL,
						   0),
				 0);
	}
}

void world_deinit(struct world *w) {
	device_space_free(w->space);
	device_free(w->device);
}

void world_set_priority(struct world *w, unsigned stream, unsigned priority) {
	device_stream_free(w->streams[stream]);
	assert_int_equal(
		device_stream_new(&w->streams[stream], w->space, DEVICE_STREAM_BLOCKING, priority),
		0);
}

void world_run_until(struct world *w, uint64_t ms) {
	while (device_next_ns(w->device) <= ms * MS) {
		device_step(w->device);
	}
	device_pass(w->device, ms * MS);
}

void world_run(struct world *w) {
	while (device_next_ns(w->device) != DEVICE_NEVER) {
		device_step(w->device);
	}
}

struct test_op kernel(const char *name, unsigned blocks, unsigned threads, unsigned shared_kib,
		      unsigned ms) {
	return (struct test_op){
		.name = name,
		.duration_ns = ms * MS,
		.base = {.kind = DEVICE_KERNEL,
			 .kernel = {.threads = threads,
				    .shared_bytes = shared_kib * KIB,
				    .n_blocks = blocks}},
	};
}

struct test_op copy(const char *name, enum device_op_kind kind, unsigned ms) {
	return (struct test_op){.name = name, .base = {.kind = kind, .bytes = ms * 1000000ull}};
}

void submit(struct world *w, unsigned stream, struct test_op *op) {
	device_submit(w->streams[stream], &op->base);
}

void second_init(struct second *s, struct world *w) {
	assert_int_equal(device_space_new(&s->space, w->device, w), 0);
	assert_int_equal(device_stream_new(&s->stream, s->space, DEVICE_STREAM_BLOCKING, 0), 0);
}
