/*
 * order.c: random work in streams of every kind, of which only the order that CUDA promises makes
 * the right result: kernels, copies, memsets and host functions that change what others have left,
 * in the legacy and the thread's default stream, in blocking and non-blocking ones, tied together
 * by events, waits and the legacy stream's rules.
 *
 * A vector clock for each stream says what is done before its next operation begins: how many
 * operations of each other stream. An operation may touch what the last one to touch it has left if
 * its stream's clock has that one. So each piece of memory has one promised history, which the CPU
 * does as well; whatever runs too early or too late leaves other numbers.
 *
 * A small copy from pinned memory is read at the call if nothing is in front of it in its own
 * stream (an H200: 4 bytes). What it has to wait for by the legacy stream's rules alone may change
 * that memory later, so there is a second clock for each stream, without these rules.
 *
 * Who waits for a blocking stream does not wait for what comes before its last events by the legacy
 * stream's rules (an H200); so there is a third one, without events.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

extern const char order_ptx[];

#define WORDS 32
#define CELLS 6

/* The default streams come first. */
enum { LEGACY, OWN, BLOCKING_A, BLOCKING_B, FREE_A, FREE_B, STREAMS };

/* Streams of a frame: each that takes a destroyed one's place counts anew. */
#define LIVES 64

/* What has been done: so many operations of each stream. */
struct clock {
	unsigned n[LIVES];
};

/* Of a stream, or of an event in it. */
struct order {
	struct clock all;
	struct clock direct; /* what is in front of it in the stream, and what that waits for */
	struct clock waited; /* what is done when the stream was waited for */
};

struct cell {
	CUdeviceptr memory;
	unsigned want[WORDS];
	unsigned life, number; /* who touched it last */
};

static struct {
	CUmodule module;
	CUfunction step;
	struct cell cells[CELLS];
	struct cell host;     /* of host functions: want[0] only */
	unsigned *host_value; /* pinned */
	CUstream streams[STREAMS];
	unsigned life[STREAMS], n_lives;
	struct order orders[STREAMS];
	struct clock known; /* to this thread */
	struct clock gone;  /* what destroyed blocking streams still do: the legacy one waits */
	CUevent event;
	CUevent fork; /* of captures */
	struct clock recorded;
	struct app_lane *lane;
} my;

static bool is_blocking(unsigned s) {
	return s == OWN || s == BLOCKING_A || s == BLOCKING_B;
}

static void clock_join(struct clock *to, const struct clock *from) {
	for (unsigned i = 0; i < LIVES; i++) {
		to->n[i] = from->n[i] > to->n[i] ? from->n[i] : to->n[i];
	}
}

/* What is done before the next operation of @s begins. */
static struct clock clock_before(unsigned s) {
	struct clock c = my.orders[s].all;

	clock_join(&c, &my.known);
	if (is_blocking(s)) {
		clock_join(&c, &my.orders[LEGACY].all);
	}
	for (unsigned t = 0; s == LEGACY && t < STREAMS; t++) {
		if (is_blocking(t)) {
			clock_join(&c, &my.orders[t].all);
		}
	}
	if (s == LEGACY) {
		clock_join(&c, &my.gone);
	}
	return c;
}

/* An operation of @s. */
static void operate(unsigned s) {
	struct order *o = &my.orders[s];
	unsigned life = my.life[s];

	o->all = clock_before(s);
	o->direct.n[life] = ++o->all.n[life];
	o->waited = o->all;
}

static void touch(struct cell *cell, unsigned s) {
	cell->life = my.life[s];
	cell->number = my.orders[s].all.n[my.life[s]];
}

static bool may_touch(const struct cell *cell, unsigned s) {
	return clock_before(s).n[cell->life] >= cell->number;
}

/* Whether a small copy in @s may read what the last one has left in pinned memory. */
static bool may_read(const struct cell *cell, unsigned s) {
	return my.orders[s].direct.n[cell->life] >= cell->number ||
	       my.known.n[cell->life] >= cell->number;
}

/* One that @s may touch. NULL: none. */
static struct cell *choose(struct app_random *r, unsigned s) {
	unsigned first = app_random_u32(r) % CELLS;

	for (unsigned i = 0; i < CELLS; i++) {
		struct cell *cell = &my.cells[(first + i) % CELLS];

		if (may_touch(cell, s)) {
			return cell;
		}
	}
	return NULL;
}

/* ---- what is done ---- */

/* The kernel was launched in @s for @cell. */
static void stepped(struct cell *cell, unsigned s, unsigned a, unsigned c, unsigned rounds) {
	my.lane->launches++;
	for (unsigned w = 0; w < WORDS; w++) {
		for (unsigned i = 0; i < rounds; i++) {
			cell->want[w] = cell->want[w] * a + c;
		}
	}
	operate(s);
	touch(cell, s);
}

static void do_step(struct app_random *r, unsigned s) {
	struct cell *cell = choose(r, s);
	unsigned a = app_random_u32(r) | 1, c = app_random_u32(r);
	unsigned rounds = 1 + app_random_u32(r) % 100;
	void *params[] = {cell ? &cell->memory : NULL, &a, &c, &rounds};
	CUlaunchConfig config = {.gridDimX = 1,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = WORDS,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = my.streams[s]};

	if (!cell) {
		return;
	}
	/* All blocks at once can only be had from a whole GPU. */
	if (rounds % 4 == 0) {
		CU(cuLaunchCooperativeKernel(my.step, 1, 1, 1, WORDS, 1, 1, 0, my.streams[s],
					     params));
	} else if (rounds % 4 == 1) {
		CU(cuLaunchKernelEx(&config, my.step, params, NULL));
	} else {
		CU(cuLaunchKernel(my.step, 1, 1, 1, WORDS, 1, 1, 0, my.streams[s], params, NULL));
	}
	stepped(cell, s, a, c, rounds);
}

static void do_fill(struct app_random *r, unsigned s) {
	struct cell *cell = choose(r, s);
	unsigned value = app_random_u32(r), n = app_random_u32(r) % WORDS + 1;

	if (cell) {
		CU(cuMemsetD32Async(cell->memory, value, n, my.streams[s]));
		for (unsigned w = 0; w < n; w++) {
			cell->want[w] = value;
		}
		operate(s);
		touch(cell, s);
	}
}

static void do_copy(struct app_random *r, unsigned s) {
	struct cell *from = choose(r, s), *to = choose(r, s);

	if (from && to && from != to) {
		CU(cuMemcpyDtoDAsync(to->memory, from->memory, sizeof(to->want), my.streams[s]));
		memcpy(to->want, from->want, sizeof(to->want));
		operate(s);
		touch(to, s);
		touch(from, s);
	}
}

/* By way of memory that comes and goes with the stream. */
static void do_detour(struct app_random *r, unsigned s) {
	struct cell *from = choose(r, s), *to = choose(r, s);
	CUdeviceptr p;

	if (from && to && from != to) {
		CU(cuMemAllocAsync(&p, sizeof(to->want), my.streams[s]));
		CU(cuMemcpyDtoDAsync(p, from->memory, sizeof(to->want), my.streams[s]));
		CU(cuMemcpyDtoDAsync(to->memory, p, sizeof(to->want), my.streams[s]));
		CU(cuMemFreeAsync(p, my.streams[s]));
		memcpy(to->want, from->want, sizeof(to->want));
		operate(s);
		touch(to, s);
		touch(from, s);
	}
}

/* These go to the legacy stream, whatever @s is. */
static void do_read(struct app_random *r, unsigned s) {
	struct cell *cell = choose(r, LEGACY);
	unsigned got[WORDS];

	(void)s;
	if (cell) {
		CU(cuMemcpyDtoH(got, cell->memory, sizeof(got)));
		app_compare(my.lane, "word read between", cell->want, got, WORDS, sizeof(got[0]));
		operate(LEGACY);
		touch(cell, LEGACY);
		clock_join(&my.known, &my.orders[LEGACY].all);
	}
}

static void do_write(struct app_random *r, unsigned s) {
	struct cell *cell = choose(r, LEGACY);

	(void)s;
	if (cell) {
		for (unsigned w = 0; w < WORDS; w++) {
			cell->want[w] = app_random_u32(r);
		}
		CU(cuMemcpyHtoD(cell->memory, cell->want, sizeof(cell->want)));
		operate(LEGACY);
		touch(cell, LEGACY);
	}
}

/* Some take so long that the kernels around them are over, and their job with them. */
static void CUDA_CB host_step(void *data) {
	unsigned value = *my.host_value, c = (unsigned)(uintptr_t)data;

	if (c % 2) {
		app_pause_ns(c % 700000);
	}
	*my.host_value = value * 5 + c;
}

static void do_host(struct app_random *r, unsigned s) {
	unsigned c = app_random_u32(r);

	if (may_touch(&my.host, s)) {
		CU(cuLaunchHostFunc(my.streams[s], host_step, (void *)(uintptr_t)c));
		my.host.want[0] = my.host.want[0] * 5 + c;
		operate(s);
		touch(&my.host, s);
	}
}

struct callback {
	CUstream stream;
	unsigned c;
};

static void CUDA_CB host_callback(CUstream stream, CUresult status, void *data) {
	struct callback *callback = data;

	host_step((void *)(uintptr_t)callback->c);
	if (status != CUDA_SUCCESS || stream != callback->stream) {
		*my.host_value = ~*my.host_value;
	}
	free(callback);
}

static void do_callback(struct app_random *r, unsigned s) {
	struct callback *callback;

	if (may_touch(&my.host, s) && s != LEGACY && s != OWN) {
		callback = app_alloc(1, sizeof(*callback));
		*callback = (struct callback){my.streams[s], app_random_u32(r)};
		my.host.want[0] = my.host.want[0] * 5 + callback->c;
		CU(cuStreamAddCallback(my.streams[s], host_callback, callback, 0));
		operate(s);
		touch(&my.host, s);
	}
}

/* What the host functions have made so far. */
static void do_fetch(struct app_random *r, unsigned s) {
	struct cell *cell = choose(r, s);

	if (cell && may_read(&my.host, s)) {
		CU(cuMemcpyHtoDAsync(cell->memory, my.host_value, sizeof(*my.host_value),
				     my.streams[s]));
		cell->want[0] = my.host.want[0];
		operate(s);
		touch(cell, s);
		touch(&my.host, s);
	}
}

static void do_record(struct app_random *r, unsigned s) {
	const struct clock waited = my.orders[s].waited;

	(void)r;
	CU(cuEventRecord(my.event, my.streams[s]));
	operate(s);
	my.orders[s].waited = waited;
	my.recorded = my.orders[s].all;
}

/* Behind all streams, and in none. */
static void do_record_all(struct app_random *r, unsigned s) {
	CUcontext context;

	(void)r, (void)s;
	CU(cuCtxGetCurrent(&context));
	CU(cuCtxRecordEvent(context, my.event));
	my.recorded = my.gone;
	for (unsigned t = 0; t < STREAMS; t++) {
		clock_join(&my.recorded, &my.orders[t].all);
	}
}

static void do_wait(struct app_random *r, unsigned s) {
	(void)r;
	CU(cuStreamWaitEvent(my.streams[s], my.event, 0));
	/* No operation: of an event that is complete nothing is left to wait for. */
	clock_join(&my.orders[s].all, &my.recorded);
	clock_join(&my.orders[s].direct, &my.recorded);
	clock_join(&my.orders[s].waited, &my.recorded);
}

static void do_event_sync(struct app_random *r, unsigned s) {
	(void)r, (void)s;
	CU(cuEventSynchronize(my.event));
	clock_join(&my.known, &my.recorded);
}

static void do_stream_sync(struct app_random *r, unsigned s) {
	(void)r;
	if (app_random_u32(r) % 2) {
		CU(cuStreamSynchronize(my.streams[s]));
	} else {
		while (cuStreamQuery(my.streams[s]) == CUDA_ERROR_NOT_READY) {
			app_pause_ns(20000);
		}
	}
	clock_join(&my.known, &my.orders[s].waited);
}

static void do_sync_all(struct app_random *r, unsigned s) {
	(void)r, (void)s;
	CU(cuCtxSynchronize());
	for (unsigned t = 0; t < STREAMS; t++) {
		clock_join(&my.known, &my.orders[t].all);
	}
	clock_join(&my.known, &my.gone);
}

static void launch_step(struct app_random *r, unsigned s, struct cell *cell) {
	unsigned a = 1664525, c = app_random_u32(r), rounds = 1;
	void *params[] = {&cell->memory, &a, &c, &rounds};

	CU(cuLaunchKernel(my.step, 1, 1, 1, WORDS, 1, 1, 0, my.streams[s], params, NULL));
	stepped(cell, s, a, c, rounds);
}

/* In all streams but the legacy one and those two. */
static void work_beside(struct app_random *r, unsigned s, unsigned t) {
	for (unsigned u = OWN; u < STREAMS; u++) {
		struct cell *cell = u == s || u == t ? NULL : choose(r, u);

		if (cell) {
			launch_step(r, u, cell);
		}
	}
}

static void join_stream(unsigned s, unsigned t) {
	CU(cuEventRecord(my.fork, my.streams[s]));
	CU(cuStreamWaitEvent(my.streams[t], my.fork, 0));
}

/* A graph of two streams that is never launched, while the others go on. The legacy stream has to
 * rest while a blocking one is captured; what was done there before still comes before what the
 * others do now. */
static void do_capture(struct app_random *r, unsigned s) {
	unsigned t = OWN + app_random_u32(r) % (STREAMS - OWN);
	CUgraph graph;

	if (s == LEGACY || s == t) {
		return;
	}
	do_write(r, LEGACY);
	CU(cuStreamBeginCapture(my.streams[s], CU_STREAM_CAPTURE_MODE_GLOBAL));
	if (!is_blocking(s)) {
		do_fill(r, LEGACY);
	}
	join_stream(s, t);
	work_beside(r, s, t);
	CU(cuMemsetD32Async(my.cells[0].memory, 0, WORDS, my.streams[t]));
	join_stream(t, s);
	CU(cuStreamEndCapture(my.streams[s], &graph));
	CU(cuGraphDestroy(graph));
	do_read(r, LEGACY);
}

/* So long that a job may end. */
static void do_pause(struct app_random *r, unsigned s) {
	(void)s;
	app_pause_ns(100000 + app_random_u32(r) % 1000000);
}

static void make_stream(unsigned s) {
	unsigned flags = is_blocking(s) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;

	CU(cuStreamCreateWithPriority(&my.streams[s], flags, s == FREE_B ? -1 : 0));
}

/* Its work goes on. */
static void do_replace(struct app_random *r, unsigned s) {
	(void)r;
	if (s == LEGACY || s == OWN || my.n_lives == LIVES) {
		return;
	}
	CU(cuStreamDestroy(my.streams[s]));
	make_stream(s);
	if (is_blocking(s)) {
		clock_join(&my.gone, &my.orders[s].all);
	}
	my.orders[s] = (struct order){my.known, my.known, my.known};
	my.life[s] = my.n_lives++;
}

/* All is done: time begins anew. */
static void reset_clocks(void) {
	memset(my.orders, 0, sizeof(my.orders));
	my.known = my.gone = my.recorded = (struct clock){.n = {0}};
	for (my.n_lives = 0; my.n_lives < STREAMS; my.n_lives++) {
		my.life[my.n_lives] = my.n_lives;
	}
	for (unsigned i = 0; i < CELLS; i++) {
		my.cells[i].life = my.cells[i].number = 0;
	}
	my.host.life = my.host.number = 0;
}

static const struct {
	void (*act)(struct app_random *r, unsigned s);
	unsigned weight;
} acts[] = {
	{do_step, 40},	 {do_fill, 6},	     {do_copy, 8},	  {do_detour, 3},
	{do_read, 4},	 {do_write, 4},	     {do_host, 9},	  {do_record, 10},
	{do_wait, 10},	 {do_event_sync, 2}, {do_stream_sync, 3}, {do_sync_all, 1},
	{do_pause, 4},	 {do_replace, 4},    {do_callback, 3},	  {do_fetch, 8},
	{do_capture, 3}, {do_record_all, 4},
};

static void act(struct app_random *r) {
	static unsigned s;
	unsigned sum = 0, at;

	/* Often the same as before: libsbeet.so remembers its last stream. */
	if (app_random_u32(r) % 2) {
		s = app_random_u32(r) % STREAMS;
	}
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		sum += acts[i].weight;
	}
	at = app_random_u32(r) % sum;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (at < acts[i].weight) {
			acts[i].act(r, s);
			return;
		}
		at -= acts[i].weight;
	}
}

/* ---- the program ---- */

static void order_open(const struct app_options *options) {
	my.module = driver_open(options->gpu, order_ptx);
	my.step = driver_kernel(my.module, "order_step");
	my.streams[LEGACY] = CU_STREAM_LEGACY;
	my.streams[OWN] = CU_STREAM_PER_THREAD;
	for (unsigned s = BLOCKING_A; s < STREAMS; s++) {
		make_stream(s);
	}
	for (unsigned i = 0; i < CELLS; i++) {
		my.cells[i].memory = driver_alloc(sizeof(my.cells[i].want));
		CU(cuMemsetD32(my.cells[i].memory, 0, WORDS));
	}
	CU(cuMemHostAlloc((void **)&my.host_value, sizeof(*my.host_value), 0));
	*my.host_value = 0;
	CU(cuEventCreate(&my.event, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&my.fork, CU_EVENT_DISABLE_TIMING));
	CU(cuCtxSynchronize());
}

static void order_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};

	my.lane = lane;
	reset_clocks();
	for (unsigned i = 0; i < lane->options->size; i++) {
		act(&random);
	}
	do_sync_all(&random, LEGACY);
	for (unsigned i = 0; i < CELLS; i++) {
		unsigned got[WORDS];

		CU(cuMemcpyDtoH(got, my.cells[i].memory, sizeof(got)));
		app_compare(lane, "word", my.cells[i].want, got, WORDS, sizeof(got[0]));
	}
	app_compare(lane, "number of the host functions", my.host.want, my.host_value, 1,
		    sizeof(*my.host_value));
}

static void order_close(void) {
	CU(cuEventDestroy(my.fork));
	CU(cuEventDestroy(my.event));
	CU(cuMemFreeHost(my.host_value));
	for (unsigned i = 0; i < CELLS; i++) {
		driver_free(my.cells[i].memory);
	}
	for (unsigned s = BLOCKING_A; s < STREAMS; s++) {
		CU(cuStreamDestroy(my.streams[s]));
	}
	driver_close(my.module);
}

static const struct app order_app = {
	.name = "order",
	.summary = "Random work in streams of every kind, whose result tells its order.",
	.size_meaning = "operations a frame",
	.size_default = 150,
	.size_min = 1,
	.size_max = 1u << 20,
	.open = order_open,
	.frame = order_frame,
	.close = order_close,
};

int main(int argc, char **argv) {
	return app_main(&order_app, argc, argv);
}
