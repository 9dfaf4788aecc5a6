/*
 * test-simgpu-device.c: the model of a GPU, with blocks that take as long as the script says: the
 * experiments of the TX2 paper (Amert et al., Tables 1-5) and what comes on top of its rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/config.h"
#include "tests/simgpu/device.h"

#define MS  1000000ull
#define KIB 1024u

/* The TX2: two SMs, one copy engine; times of starting and copying are left out. */
static const struct device_config tx2 = {
	.n_sms = 2,
	.sm_threads = 2048,
	.sm_blocks = 32,
	.sm_regs = 65536,
	.sm_shared_bytes = 64 * KIB,
	.copy_engines = 1,
	.slice_ns = 2 * MS,
	.host_bytes_per_us = 1000, /* 1 MB a millisecond */
	.device_bytes_per_us = 1000,
};

#define STREAMS 10 /* the NULL stream is 0 */
#define LOG_MAX 16384

struct test_op {
	struct device_op base;
	const char *name;
	uint64_t duration_ns; /* of each block */
	bool faults;
	bool done, ok;
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
	uint64_t *left = malloc(sizeof(*left));

	if (!left) {
		return -ENOMEM;
	}
	*left = ((struct test_op *)b->op)->duration_ns;
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

static void world_init(struct world *w, const struct device_config *config) {
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

static void world_deinit(struct world *w) {
	device_space_free(w->space);
	device_free(w->device);
}

static void world_set_priority(struct world *w, unsigned stream, unsigned priority) {
	device_stream_free(w->streams[stream]);
	assert_int_equal(
		device_stream_new(&w->streams[stream], w->space, DEVICE_STREAM_BLOCKING, priority),
		0);
}

/* Everything due up to @ms. */
static void world_run_until(struct world *w, uint64_t ms) {
	while (device_next_ns(w->device) <= ms * MS) {
		device_step(w->device);
	}
	device_pass(w->device, ms * MS);
}

static void world_run(struct world *w) {
	while (device_next_ns(w->device) != DEVICE_NEVER) {
		device_step(w->device);
	}
}

static struct test_op kernel(const char *name, unsigned blocks, unsigned threads,
			     unsigned shared_kib, unsigned ms) {
	return (struct test_op){
		.name = name,
		.duration_ns = ms * MS,
		.base = {.kind = DEVICE_KERNEL,
			 .kernel = {.threads = threads,
				    .shared_bytes = shared_kib * KIB,
				    .n_blocks = blocks}},
	};
}

static struct test_op copy(const char *name, enum device_op_kind kind, unsigned ms) {
	return (struct test_op){.name = name, .base = {.kind = kind, .bytes = ms * 1000000ull}};
}

static void submit(struct world *w, unsigned stream, struct test_op *op) {
	device_submit(w->streams[stream], &op->base);
}

/* ---- the paper's experiments ---- */

/* Table 1, Figures 3 and 4: G, X, R and C. A copy of 256 MB takes 200 ms here. */
static void device_reproduces_table_1(void **state) {
	struct test_op k1 = kernel("K1", 6, 768, 0, 1000), k2 = kernel("K2", 2, 512, 0, 1000),
		       k3 = kernel("K3", 2, 1024, 0, 1000), k4 = kernel("K4", 4, 256, 32, 1000),
		       k5 = kernel("K5", 2, 256, 32, 1000), k6 = kernel("K6", 2, 512, 0, 1000),
		       c2o = copy("C2o", DEVICE_COPY_OUT, 200),
		       c3i = copy("C3i", DEVICE_COPY_IN, 200),
		       c3o = copy("C3o", DEVICE_COPY_OUT, 200),
		       c5o = copy("C5o", DEVICE_COPY_OUT, 200),
		       c6o = copy("C6o", DEVICE_COPY_OUT, 200);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &k1);
	submit(&w, 1, &k2);
	submit(&w, 1, &c2o);
	submit(&w, 1, &c3i);
	submit(&w, 1, &k3);
	submit(&w, 1, &c3o);
	world_run_until(&w, 200);
	submit(&w, 2, &k4);
	world_run_until(&w, 400);
	submit(&w, 3, &k5);
	submit(&w, 3, &c5o);
	world_run_until(&w, 2800);
	submit(&w, 2, &k6);
	submit(&w, 2, &c6o);
	world_run(&w);
	assert_string_equal(w.log,
			    "K1:0 sm0 0-1000\n" /* R2: four of six */
			    "K1:1 sm1 0-1000\n"
			    "K1:2 sm0 0-1000\n"
			    "K1:3 sm1 0-1000\n"
			    "K1:4 sm0 1000-2000\n"
			    "K1:5 sm1 1000-2000\n"
			    "K4:0 sm0 1000-2000\n" /* X1: not before K1 was dispatched */
			    "K4:1 sm1 1000-2000\n"
			    "K4:2 sm0 1000-2000\n"
			    "K4:3 sm1 1000-2000\n"
			    "K5:0 sm0 2000-3000\n" /* R3: shared memory */
			    "K5:1 sm1 2000-3000\n"
			    "K2:0 sm0 2000-3000\n"
			    "K2:1 sm1 2000-3000\n"
			    "C5o 3000-3200\n" /* C1-C4: one at a time, FIFO */
			    "C2o 3200-3400\n"
			    "C3i 3400-3600\n"
			    "K6:0 sm0 2800-3800\n"
			    "K6:1 sm1 2800-3800\n"
			    "C6o 3800-4000\n"
			    "K3:0 sm0 3600-4600\n"
			    "K3:1 sm1 3600-4600\n"
			    "C3o 4600-4800\n");
	world_deinit(&w);
}

/* Table 2, Figure 5: N1 and N2. */
static void device_reproduces_table_2(void **state) {
	struct test_op k1 = kernel("K1", 6, 768, 0, 1000), k2 = kernel("K2", 1, 1024, 0, 1000),
		       k3 = kernel("K3", 4, 256, 0, 1000), k4 = kernel("K4", 4, 256, 0, 1000),
		       k5 = kernel("K5", 1, 1024, 0, 1000), k6 = kernel("K6", 2, 256, 0, 1000);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &k1);
	world_run_until(&w, 200);
	submit(&w, 0, &k2);
	submit(&w, 2, &k3);
	world_run_until(&w, 400);
	submit(&w, 2, &k4);
	world_run_until(&w, 600);
	submit(&w, 0, &k5);
	world_run_until(&w, 800);
	submit(&w, 3, &k6);
	world_run(&w);
	assert_int_equal(k1.done_ns, 2000 * MS);
	assert_int_equal(k2.base.start_ns, 2000 * MS);
	assert_int_equal(k3.base.start_ns, 3000 * MS);
	assert_int_equal(k4.base.start_ns, 4000 * MS);
	assert_int_equal(k5.base.start_ns, 5000 * MS);
	assert_int_equal(k6.base.start_ns, 6000 * MS);
	world_deinit(&w);
}

/* Table 3, Figure 6: blocks of high priority first; K1 starves meanwhile. */
static void device_reproduces_table_3(void **state) {
	struct test_op k1 = kernel("K1", 8, 1024, 0, 500), k2 = kernel("K2", 16, 1024, 0, 500),
		       k3 = kernel("K3", 16, 1024, 0, 500);
	struct world w;

	world_init(&w, &tx2);
	world_set_priority(&w, 2, 1);
	world_set_priority(&w, 3, 1);
	submit(&w, 1, &k1);
	world_run_until(&w, 200);
	submit(&w, 2, &k2);
	world_run_until(&w, 490);
	submit(&w, 3, &k3);
	world_run(&w);
	assert_int_equal(k2.base.start_ns, 500 * MS);
	assert_int_equal(k2.done_ns, 2500 * MS);
	assert_int_equal(k3.base.start_ns, 2500 * MS);
	assert_int_equal(k3.done_ns, 4500 * MS);
	assert_int_equal(k1.done_ns, 5000 * MS);
	world_deinit(&w);
}

/* Table 4, Figure 7: no priority is low priority. */
static void device_reproduces_table_4(void **state) {
	struct test_op k1 = kernel("K1", 8, 1024, 0, 500), k2 = kernel("K2", 8, 1024, 0, 500),
		       k3 = kernel("K3", 8, 1024, 0, 500), k4 = kernel("K4", 8, 1024, 0, 500);
	struct world w;

	world_init(&w, &tx2);
	world_set_priority(&w, 3, 1);
	submit(&w, 1, &k1);
	world_run_until(&w, 200);
	submit(&w, 2, &k2);
	world_run_until(&w, 300);
	submit(&w, 3, &k3);
	world_run_until(&w, 1200);
	submit(&w, 4, &k4);
	world_run(&w);
	assert_int_equal(k3.base.start_ns, 500 * MS);
	assert_int_equal(k3.done_ns, 1500 * MS);
	assert_int_equal(k1.done_ns, 2000 * MS);
	assert_int_equal(k2.base.start_ns, 2000 * MS);
	assert_int_equal(k4.base.start_ns, 3000 * MS);
	world_deinit(&w);
}

/* Table 5, Figure 8: a blocked kernel of high priority is not overtaken. */
static void device_reproduces_table_5(void **state) {
	struct test_op low[7], k8 = kernel("K8", 1, 1024, 0, 500),
			       k9 = kernel("K9", 1, 512, 0, 1000);
	struct world w;

	world_init(&w, &tx2);
	world_set_priority(&w, 8, 1);
	for (unsigned i = 0; i < 7; i++) {
		low[i] = kernel("K", 1, 512, 0, 1000);
		world_run_until(&w, 100ull * i);
		submit(&w, i + 1, &low[i]);
	}
	world_run_until(&w, 650);
	submit(&w, 8, &k8);
	world_run_until(&w, 700);
	submit(&w, 9, &k9);
	world_run(&w);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(low[i].base.start_ns, 100 * i * MS);
	}
	assert_int_equal(k8.base.start_ns, 1100 * MS);
	assert_int_equal(k9.base.start_ns, 1100 * MS);
	world_deinit(&w);
}

/* ---- more of the rules ---- */

static void device_respects_every_limit_of_an_sm(void **state) {
	struct device_config c = tx2;
	struct device_kernel k = {.threads = 32, .n_blocks = 1};

	assert_int_equal(device_occupancy(&c, &k), 32); /* block slots */
	k.threads = 256;
	assert_int_equal(device_occupancy(&c, &k), 8); /* threads */
	k.regs = 256 * 64;
	assert_int_equal(device_occupancy(&c, &k), 4); /* registers */
	k.shared_bytes = 24 * KIB;
	assert_int_equal(device_occupancy(&c, &k), 2); /* shared memory */
	k.shared_bytes = 65 * KIB;
	assert_int_equal(device_occupancy(&c, &k), 0);
}

static void device_runs_two_copies_at_once_with_two_engines(void **state) {
	struct device_config c = tx2;
	struct test_op in = copy("in", DEVICE_COPY_IN, 10), in2 = copy("in2", DEVICE_COPY_IN, 10),
		       out = copy("out", DEVICE_COPY_OUT, 10),
		       local = copy("local", DEVICE_COPY_LOCAL, 15);
	struct world w;

	c.copy_engines = 2;
	world_init(&w, &c);
	submit(&w, 1, &in);
	submit(&w, 2, &in2);
	submit(&w, 3, &out);
	submit(&w, 4, &local);
	world_run(&w);
	assert_string_equal(w.log, "in 0-10\nout 0-10\nlocal 0-15\nin2 10-20\n");
	world_deinit(&w);
}

static void device_exempts_non_blocking_streams(void **state) {
	struct test_op k1 = kernel("K1", 1, 32, 0, 10), k2 = kernel("K2", 1, 32, 0, 10);
	struct device_stream *st;
	struct world w;

	world_init(&w, &tx2);
	assert_int_equal(device_stream_new(&st, w.space, DEVICE_STREAM_NON_BLOCKING, 0), 0);
	device_submit(st, &k1.base);
	submit(&w, 0, &k2);
	world_run(&w);
	assert_int_equal(k2.base.start_ns, 0);
	assert_int_equal(k2.done_ns, 10 * MS);
	world_deinit(&w);
}

static void device_orders_streams_by_events(void **state) {
	struct device_event event = {.recorded = 1};
	struct test_op k1 = kernel("K1", 1, 32, 0, 10), k2 = kernel("K2", 1, 32, 0, 10),
		       record = {.base = {.kind = DEVICE_EVENT,
					  .event = &event,
					  .event_number = 1}},
		       wait = {.base = {.kind = DEVICE_WAIT, .event = &event, .event_number = 1}};
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 2, &wait);
	submit(&w, 2, &k2);
	submit(&w, 1, &k1);
	submit(&w, 1, &record);
	world_run(&w);
	assert_int_equal(event.done, 1);
	assert_int_equal(event.done_ns, 10 * MS);
	assert_int_equal(k2.base.start_ns, 10 * MS);
	world_deinit(&w);
}

static void device_holds_a_stream_for_a_host_function(void **state) {
	struct test_op host = {.base = {.kind = DEVICE_HOST}}, k = kernel("K", 1, 32, 0, 10);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &host);
	submit(&w, 1, &k);
	assert_ptr_equal(w.host_op, &host);
	world_run(&w);
	assert_false(k.done);
	device_pass(w.device, 5 * MS);
	device_op_complete(&host.base);
	world_run(&w);
	assert_int_equal(k.done_ns, 15 * MS);
	world_deinit(&w);
}

static void device_frees_a_stream_after_its_work(void **state) {
	struct test_op k = kernel("K", 1, 32, 0, 10);
	struct world w;

	world_init(&w, &tx2);
	submit(&w, 1, &k);
	w.streams[1] = device_stream_free(w.streams[1]);
	world_run(&w);
	assert_true(k.done && k.ok);
	world_deinit(&w);
}

/* ---- several spaces ---- */

struct second {
	struct device_space *space;
	struct device_stream *stream;
};

static void second_init(struct second *s, struct world *w) {
	assert_int_equal(device_space_new(&s->space, w->device, w), 0);
	assert_int_equal(device_stream_new(&s->stream, s->space, DEVICE_STREAM_BLOCKING, 0), 0);
}

static void device_takes_turns_when_exclusive(void **state) {
	struct test_op a = kernel("A", 4, 1024, 0, 10), b = kernel("B", 4, 1024, 0, 10);
	struct second other;
	struct world w;

	world_init(&w, &tx2);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	/* Each has the whole GPU for itself, for half of the time: slices of 2 ms. */
	assert_int_equal(a.done_ns, 18 * MS);
	assert_int_equal(b.done_ns, 20 * MS);
	assert_string_equal(w.log,
			    "A:0 sm0 0-18\nA:1 sm1 0-18\nA:2 sm0 0-18\nA:3 sm1 0-18\n"
			    "B:0 sm0 2-20\nB:1 sm1 2-20\nB:2 sm0 2-20\nB:3 sm1 2-20\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_gives_the_gpu_on_when_a_space_is_idle(void **state) {
	struct test_op a = kernel("A", 1, 1024, 0, 1), b = kernel("B", 1, 1024, 0, 10);
	struct second other;
	struct world w;

	world_init(&w, &tx2);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	assert_int_equal(a.done_ns, 1 * MS);
	assert_int_equal(b.done_ns, 11 * MS);
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_shares_sms_and_numbers_them_per_client_under_mps(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 2, 2048, 0, 10), b = kernel("B", 2, 2048, 0, 10);
	struct second other;
	struct world w;

	c.n_sms = 4;
	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &a);
	device_submit(other.stream, &b.base);
	world_run(&w);
	assert_string_equal(w.log,
			    "A:0 sm0 0-10\nA:1 sm1 0-10\n"
			    "B:0 sm2 as 0 0-10\nB:1 sm3 as 1 0-10\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_numbers_sms_anew_when_a_client_left_them(void **state) {
	struct device_config c = tx2;
	struct test_op hold = kernel("H", 1, 2048, 0, 30), a = kernel("A", 1, 2048, 0, 10),
		       b = kernel("B", 1, 2048, 0, 10);
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &a); /* on SM 0 */
	world_run_until(&w, 0);
	submit(&w, 2, &b); /* on SM 1, its second one */
	world_run_until(&w, 20);
	device_submit(other.stream, &hold.base); /* on SM 0 */
	a.done = false;
	submit(&w, 1, &a); /* on SM 1, its only one now: number 0 */
	world_run(&w);
	assert_string_equal(w.log,
			    "A:0 sm0 0-10\nB:0 sm1 0-10\nA:0 sm1 as 0 20-30\nH:0 sm0 20-50\n");
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_stops_only_the_space_that_fails(void **state) {
	struct device_config c = tx2;
	struct test_op bad = kernel("bad", 4, 512, 0, 5), after = kernel("after", 1, 32, 0, 1),
		       late = kernel("late", 1, 32, 0, 1), good = kernel("good", 2, 512, 0, 10);
	struct second other;
	struct world w;

	c.shared = true;
	bad.faults = true;
	world_init(&w, &c);
	second_init(&other, &w);
	submit(&w, 1, &bad);
	submit(&w, 1, &after);
	device_submit(other.stream, &good.base);
	world_run(&w);
	assert_int_equal(w.n_failed, 1);
	assert_true(bad.done && !bad.ok && after.done && !after.ok);
	assert_true(device_space_has_failed(w.space));
	submit(&w, 1, &late);
	assert_true(late.done && !late.ok);
	assert_true(good.done && good.ok);
	assert_int_equal(good.done_ns, 10 * MS);
	device_space_free(other.space);
	world_deinit(&w);
}

static void device_returns_what_a_freed_space_held(void **state) {
	struct device_config c = tx2;
	struct test_op a = kernel("A", 100, 1024, 0, 1000), ain = copy("ain", DEVICE_COPY_IN, 1000),
		       b = kernel("B", 4, 1024, 0, 10), bin = copy("bin", DEVICE_COPY_IN, 10);
	struct device_stream *stream;
	struct second other;
	struct world w;

	c.shared = true;
	world_init(&w, &c);
	second_init(&other, &w);
	device_submit(other.stream, &ain.base);
	assert_int_equal(device_stream_new(&stream, other.space, DEVICE_STREAM_BLOCKING, 0), 0);
	device_submit(stream, &a.base);
	world_run_until(&w, 5);
	submit(&w, 1, &b);
	submit(&w, 2, &bin);
	world_run_until(&w, 50);
	assert_false(b.done);
	device_space_free(other.space);
	assert_true(a.done && !a.ok && ain.done && !ain.ok);
	world_run(&w);
	assert_int_equal(b.done_ns, 60 * MS);
	assert_int_equal(bin.done_ns, 60 * MS);
	world_deinit(&w);
}

/* ---- energy ---- */

static void device_integrates_energy_over_time(void **state) {
	struct device_config c = tx2;
	struct test_op k = kernel("K", 1, 1024, 0, 1000);
	struct world w;

	c.power = (struct power_config){
		.static_mw = 10000, .idle_sm_uw = 500000, .busy_sm_uw = 4000000};
	world_init(&w, &c);
	device_pass(w.device, 1000 * MS); /* 10 W for a second */
	assert_int_equal(power_energy_mj(device_power(w.device)), 10000);
	submit(&w, 1, &k);
	assert_int_equal(power_now_mw(device_power(w.device)), 14500); /* one SM busy, one idle */
	world_run(&w);
	assert_int_equal(power_energy_mj(device_power(w.device)), 24500);
	assert_int_equal(power_now_mw(device_power(w.device)), 10000);
	world_deinit(&w);
}

/* ---- the text of $SIMGPU ---- */

static void config_reads_models_counts_and_modes(void **state) {
	struct config c;
	char error[256];

	assert_int_equal(
		config_parse("rtx3070,t400:mps,h200:exclusive,17:mps", &c, error, sizeof(error)),
		0);
	assert_int_equal(c.n_gpus, 4);
	assert_int_equal(c.gpus[0].device.n_sms, 46);
	assert_int_equal(c.gpus[0].cc_major * 10 + c.gpus[0].cc_minor, 86);
	assert_false(c.gpus[0].device.shared);
	assert_int_equal(c.gpus[1].device.n_sms, 6);
	assert_true(c.gpus[1].device.shared);
	assert_int_equal(c.gpus[2].device.n_sms, 132);
	assert_false(c.gpus[2].device.shared);
	assert_int_equal(c.gpus[3].device.n_sms, 17);
	assert_true(c.gpus[3].device.shared);
	assert_memory_not_equal(c.gpus[0].uuid, c.gpus[1].uuid, 16);
}

static void run_placed(uint64_t seed, char log[LOG_MAX]) {
	struct device_config config = tx2;
	struct test_op k = kernel("K", 64, 256, 0, 10);
	struct world w;

	config.n_sms = 16;
	config.place_seed = seed;
	world_init(&w, &config);
	submit(&w, 1, &k);
	world_run(&w);
	assert_true(k.done && k.ok); /* each block has run, all of them */
	memcpy(log, w.log, LOG_MAX);
	world_deinit(&w);
}

static void device_places_unkindly_by_seed(void **state) {
	static char kind[LOG_MAX], one[LOG_MAX], again[LOG_MAX], two[LOG_MAX];

	run_placed(0, kind);
	run_placed(1, one);
	run_placed(1, again);
	run_placed(2, two);
	assert_string_equal(one, again);
	assert_string_not_equal(one, two);
	assert_string_not_equal(one, kind);
}

static void config_reads_placements(void **state) {
	static const char *const bad[] = {"adversarial",
					  "adversarial:",
					  "adversarial:0",
					  "adversarial:-1",
					  "adversarial:x",
					  "kind:1",
					  "adversarial:99999999999999999999"};
	struct config c;
	char error[256];

	assert_int_equal(config_parse("2,3", &c, error, sizeof(error)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(config_parse_place(bad[i], &c), -EINVAL);
	}
	assert_int_equal(config_parse_place("", &c), 0);
	assert_int_equal(c.gpus[0].device.place_seed, 0);
	assert_int_equal(config_parse_place("adversarial:7", &c), 0);
	assert_int_equal(c.gpus[0].device.place_seed, 7);
	assert_int_equal(c.gpus[1].device.place_seed, 8);
}

static void config_refuses_what_is_no_gpu(void **state) {
	static const char *const bad[] = {
		"",	 "0",  "257", "99999999999",	  "rtx", "6:", "6:foo",
		"t400,", "-1", " 6",  "1,1,1,1,1,1,1,1,1"};
	struct config c = {.n_gpus = 77};
	char error[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		error[0] = '\0';
		assert_int_equal(config_parse(bad[i], &c, error, sizeof(error)), -EINVAL);
		assert_true(error[0] != '\0');
		assert_int_equal(c.n_gpus, 77);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_reproduces_table_1),
		cmocka_unit_test(device_reproduces_table_2),
		cmocka_unit_test(device_reproduces_table_3),
		cmocka_unit_test(device_reproduces_table_4),
		cmocka_unit_test(device_reproduces_table_5),
		cmocka_unit_test(device_respects_every_limit_of_an_sm),
		cmocka_unit_test(device_runs_two_copies_at_once_with_two_engines),
		cmocka_unit_test(device_exempts_non_blocking_streams),
		cmocka_unit_test(device_orders_streams_by_events),
		cmocka_unit_test(device_holds_a_stream_for_a_host_function),
		cmocka_unit_test(device_frees_a_stream_after_its_work),
		cmocka_unit_test(device_takes_turns_when_exclusive),
		cmocka_unit_test(device_gives_the_gpu_on_when_a_space_is_idle),
		cmocka_unit_test(device_shares_sms_and_numbers_them_per_client_under_mps),
		cmocka_unit_test(device_numbers_sms_anew_when_a_client_left_them),
		cmocka_unit_test(device_stops_only_the_space_that_fails),
		cmocka_unit_test(device_returns_what_a_freed_space_held),
		cmocka_unit_test(device_integrates_energy_over_time),
		cmocka_unit_test(config_reads_models_counts_and_modes),
		cmocka_unit_test(config_reads_placements),
		cmocka_unit_test(config_refuses_what_is_no_gpu),
		cmocka_unit_test(device_places_unkindly_by_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
