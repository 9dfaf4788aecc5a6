/*
 * test-simgpu-paper.c: the experiments of "GPU Scheduling on the NVIDIA TX2: Hidden Details
 * Revealed" (Amert et al.): its Tables 1 to 5 as tables, and what its text and Figures 3 to 10 say
 * came out: where and when each block ran, and who had to wait for whom, by which rule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/simgpu-world.h"

#define LAUNCHES_MAX 12
#define CLAIMS_MAX   12

/* A row of the paper's tables, or one of the copies beside it. */
struct launch {
	unsigned at_ms;
	unsigned stream; /* 0: the NULL stream */
	const char *name;
	unsigned blocks, threads, shared_kib;
	unsigned ms; /* of each block, or of the copy */
	enum device_op_kind kind;
	bool high;    /* the stream has high priority */
	bool process; /* of a process of its own, in whose only stream it is */
};

enum waits_until {
	DISPATCHED = 1, /* the other kernel's last block is assigned */
	ENDS,		/* the other operation is done */
};

/* @name does not begin before what the paper says it waits for, but at that very moment. */
struct claim {
	const char *rule, *name;
	enum waits_until until;
	const char *other;
};

struct experiment {
	struct launch launches[LAUNCHES_MAX];
	struct claim claims[CLAIMS_MAX];
	const char *log;
};

static const struct experiment experiments[] =
	{
		/* Table 1, Figures 3 and 4. A copy of 256 MB is said to take 200 ms. */
		{
			.launches =
				{
					{0, 1, "K1", 6, 768, 0, 1000},
					{0, 1, "K2", 2, 512, 0, 1000},
					{0, 1, "C2o", .ms = 200, .kind = DEVICE_COPY_OUT},
					{0, 1, "C3i", .ms = 200, .kind = DEVICE_COPY_IN},
					{0, 1, "K3", 2, 1024, 0, 1000},
					{0, 1, "C3o", .ms = 200, .kind = DEVICE_COPY_OUT},
					{200, 2, "K4", 4, 256, 32, 1000},
					{400, 3, "K5", 2, 256, 32, 1000},
					{400, 3, "C5o", .ms = 200, .kind = DEVICE_COPY_OUT},
					{2800, 2, "K6", 2, 512, 0, 1000},
					{2800, 2, "C6o", .ms = 200, .kind = DEVICE_COPY_OUT},
				},
			.claims =
				{
					{"X1, R2", "K4", DISPATCHED, "K1"},
					{"R3", "K5", ENDS, "K4"},
					{"G2, G4", "K2", ENDS, "K1"},
					{"C1, FIFO", "C5o", ENDS, "K5"},
					{"C2", "C2o", ENDS, "C5o"},
					{"FIFO", "C3i", ENDS, "C2o"},
					{"FIFO", "K3", ENDS, "C3i"},
					{"C4", "C3o", ENDS, "K3"},
					{"C4", "C6o", ENDS, "K6"},
				},
			.log = "K1:0 sm0 0-1000\n" /* four of six: threads */
			       "K1:1 sm1 0-1000\n"
			       "K1:2 sm0 0-1000\n"
			       "K1:3 sm1 0-1000\n"
			       "K1:4 sm0 1000-2000\n"
			       "K1:5 sm1 1000-2000\n"
			       "K4:0 sm0 1000-2000\n" /* two on each SM */
			       "K4:1 sm1 1000-2000\n"
			       "K4:2 sm0 1000-2000\n"
			       "K4:3 sm1 1000-2000\n"
			       "K5:0 sm0 2000-3000\n"
			       "K5:1 sm1 2000-3000\n"
			       "K2:0 sm0 2000-3000\n"
			       "K2:1 sm1 2000-3000\n"
			       "C5o 3000-3200\n"
			       "C2o 3200-3400\n"
			       "C3i 3400-3600\n"
			       "K6:0 sm0 2800-3800\n"
			       "K6:1 sm1 2800-3800\n"
			       "C6o 3800-4000\n"
			       "K3:0 sm0 3600-4600\n"
			       "K3:1 sm1 3600-4600\n"
			       "C3o 4600-4800\n",
		},
		/* Table 2, Figure 5: the NULL stream. */
		{
			.launches =
				{
					{0, 1, "K1", 6, 768, 0, 1000},
					{200, 0, "K2", 1, 1024, 0, 1000},
					{200, 2, "K3", 4, 256, 0, 1000},
					{400, 2, "K4", 4, 256, 0, 1000},
					{600, 0, "K5", 1, 1024, 0, 1000},
					{800, 3, "K6", 2, 256, 0, 1000},
				},
			.claims =
				{
					{"N1", "K2", ENDS, "K1"},
					{"N2", "K3", ENDS, "K2"},
					{"FIFO", "K4", ENDS, "K3"},
					{"N1", "K5", ENDS, "K4"},
					{"N2", "K6", ENDS, "K5"},
				},
			.log = "K1:0 sm0 0-1000\n"
			       "K1:1 sm1 0-1000\n"
			       "K1:2 sm0 0-1000\n"
			       "K1:3 sm1 0-1000\n"
			       "K1:4 sm0 1000-2000\n"
			       "K1:5 sm1 1000-2000\n"
			       "K2:0 sm0 2000-3000\n"
			       "K3:0 sm0 3000-4000\n"
			       "K3:1 sm1 3000-4000\n"
			       "K3:2 sm0 3000-4000\n"
			       "K3:3 sm1 3000-4000\n"
			       "K4:0 sm0 4000-5000\n"
			       "K4:1 sm1 4000-5000\n"
			       "K4:2 sm0 4000-5000\n"
			       "K4:3 sm1 4000-5000\n"
			       "K5:0 sm0 5000-6000\n"
			       "K6:0 sm0 6000-7000\n"
			       "K6:1 sm1 6000-7000\n",
		},
		/* Table 3, Figure 6: high priority starves low priority. */
		{
			.launches =
				{
					{0, 1, "K1", 8, 1024, 0, 500},
					{200, 2, "K2", 16, 1024, 0, 500, .high = true},
					{500, 3, "K3", 16, 1024, 0, 500, .high = true},
				},
			.claims =
				{
					{"A2, X1", "K3", ENDS, "K2"},
				},
			.log = "K1:0 sm0 0-500\n"
			       "K1:1 sm1 0-500\n"
			       "K1:2 sm0 0-500\n"
			       "K1:3 sm1 0-500\n"
			       "K2:0 sm0 500-1000\n"
			       "K2:1 sm1 500-1000\n"
			       "K2:2 sm0 500-1000\n"
			       "K2:3 sm1 500-1000\n"
			       "K2:4 sm0 1000-1500\n"
			       "K2:5 sm1 1000-1500\n"
			       "K2:6 sm0 1000-1500\n"
			       "K2:7 sm1 1000-1500\n"
			       "K2:8 sm0 1500-2000\n"
			       "K2:9 sm1 1500-2000\n"
			       "K2:10 sm0 1500-2000\n"
			       "K2:11 sm1 1500-2000\n"
			       "K2:12 sm0 2000-2500\n"
			       "K2:13 sm1 2000-2500\n"
			       "K2:14 sm0 2000-2500\n"
			       "K2:15 sm1 2000-2500\n"
			       "K3:0 sm0 2500-3000\n"
			       "K3:1 sm1 2500-3000\n"
			       "K3:2 sm0 2500-3000\n"
			       "K3:3 sm1 2500-3000\n"
			       "K3:4 sm0 3000-3500\n"
			       "K3:5 sm1 3000-3500\n"
			       "K3:6 sm0 3000-3500\n"
			       "K3:7 sm1 3000-3500\n"
			       "K3:8 sm0 3500-4000\n"
			       "K3:9 sm1 3500-4000\n"
			       "K3:10 sm0 3500-4000\n"
			       "K3:11 sm1 3500-4000\n"
			       "K3:12 sm0 4000-4500\n"
			       "K3:13 sm1 4000-4500\n"
			       "K3:14 sm0 4000-4500\n"
			       "K3:15 sm1 4000-4500\n"
			       "K1:4 sm0 4500-5000\n" /* the other half of K1 */
			       "K1:5 sm1 4500-5000\n"
			       "K1:6 sm0 4500-5000\n"
			       "K1:7 sm1 4500-5000\n",
		},
		/* Table 4, Figure 7: no priority is low priority. */
		{
			.launches =
				{
					{0, 1, "K1", 8, 1024, 0, 500},
					{200, 2, "K2", 8, 1024, 0, 500},
					{300, 3, "K3", 8, 1024, 0, 500, .high = true},
					{1200, 4, "K4", 8, 1024, 0, 500},
				},
			.claims =
				{
					{"X1", "K2", ENDS, "K1"},
					{"X1", "K4", ENDS, "K2"},
				},
			.log = "K1:0 sm0 0-500\n"
			       "K1:1 sm1 0-500\n"
			       "K1:2 sm0 0-500\n"
			       "K1:3 sm1 0-500\n"
			       "K3:0 sm0 500-1000\n" /* A2 */
			       "K3:1 sm1 500-1000\n"
			       "K3:2 sm0 500-1000\n"
			       "K3:3 sm1 500-1000\n"
			       "K3:4 sm0 1000-1500\n"
			       "K3:5 sm1 1000-1500\n"
			       "K3:6 sm0 1000-1500\n"
			       "K3:7 sm1 1000-1500\n"
			       "K1:4 sm0 1500-2000\n"
			       "K1:5 sm1 1500-2000\n"
			       "K1:6 sm0 1500-2000\n"
			       "K1:7 sm1 1500-2000\n"
			       "K2:0 sm0 2000-2500\n" /* in the order of launches */
			       "K2:1 sm1 2000-2500\n"
			       "K2:2 sm0 2000-2500\n"
			       "K2:3 sm1 2000-2500\n"
			       "K2:4 sm0 2500-3000\n"
			       "K2:5 sm1 2500-3000\n"
			       "K2:6 sm0 2500-3000\n"
			       "K2:7 sm1 2500-3000\n"
			       "K4:0 sm0 3000-3500\n"
			       "K4:1 sm1 3000-3500\n"
			       "K4:2 sm0 3000-3500\n"
			       "K4:3 sm1 3000-3500\n"
			       "K4:4 sm0 3500-4000\n"
			       "K4:5 sm1 3500-4000\n"
			       "K4:6 sm0 3500-4000\n"
			       "K4:7 sm1 3500-4000\n",
		},
		/* Table 5, Figure 8: who is blocked for want of threads on one SM is not overtaken.
		 */
		{
			.launches =
				{
					{0, 1, "K1", 1, 512, 0, 1000},
					{100, 2, "K2", 1, 512, 0, 1000},
					{200, 3, "K3", 1, 512, 0, 1000},
					{300, 4, "K4", 1, 512, 0, 1000},
					{400, 5, "K5", 1, 512, 0, 1000},
					{500, 6, "K6", 1, 512, 0, 1000},
					{600, 7, "K7", 1, 512, 0, 1000},
					{650, 8, "K8", 1, 1024, 0, 500, .high = true},
					{700, 9, "K9", 1, 512, 0, 1000},
				},
			.claims =
				{
					{"R2, not by K1's 512 threads", "K8", ENDS, "K2"},
					{"A2, though there is room", "K9", DISPATCHED, "K8"},
				},
			.log = "K1:0 sm0 0-1000\n"
			       "K2:0 sm1 100-1100\n"
			       "K3:0 sm0 200-1200\n"
			       "K4:0 sm1 300-1300\n"
			       "K5:0 sm0 400-1400\n"
			       "K6:0 sm1 500-1500\n"
			       "K7:0 sm0 600-1600\n"
			       "K8:0 sm1 1100-1600\n" /* 1,024 threads of one SM, the rest of K7's
						       */
			       "K9:0 sm0 1100-2100\n",
		},
		/* Appendix A, Figures 9 and 10, below: tasks of one process. */
		{
			.launches =
				{
					{0, 1, "T1", 8, 1024, 0, 6},
					{0, 2, "T2", 8, 1024, 0, 6},
				},
			.claims = {{"X1", "T2", ENDS, "T1"}},
			.log = "T1:0 sm0 0-6\nT1:1 sm1 0-6\nT1:2 sm0 0-6\nT1:3 sm1 0-6\n"
			       "T1:4 sm0 6-12\nT1:5 sm1 6-12\nT1:6 sm0 6-12\nT1:7 sm1 6-12\n"
			       "T2:0 sm0 12-18\nT2:1 sm1 12-18\nT2:2 sm0 12-18\nT2:3 sm1 12-18\n"
			       "T2:4 sm0 18-24\nT2:5 sm1 18-24\nT2:6 sm0 18-24\nT2:7 sm1 18-24\n",
		},
		/* Above: two processes. Both seem to have all threads at once, and each block takes
		 * twice as long: they preempt each other, in slices of 2 ms. A priority has no
		 * effect. */
		{
			.launches =
				{
					{0, 1, "P1", 8, 1024, 0, 6},
					{0, 0, "P2", 8, 1024, 0, 6, .high = true, .process = true},
				},
			.log = "P1:0 sm0 0-10\nP1:1 sm1 0-10\nP1:2 sm0 0-10\nP1:3 sm1 0-10\n"
			       "P2:0 sm0 2-12\nP2:1 sm1 2-12\nP2:2 sm0 2-12\nP2:3 sm1 2-12\n"
			       "P1:4 sm0 10-22\nP1:5 sm1 10-22\nP1:6 sm0 10-22\nP1:7 sm1 10-22\n"
			       "P2:4 sm0 12-24\nP2:5 sm1 12-24\nP2:6 sm0 12-24\nP2:7 sm1 12-24\n",
		},
};

static struct test_op op_of(const struct launch *l) {
	return l->kind == DEVICE_KERNEL
		       ? kernel(l->name, l->blocks, l->threads, l->shared_kib, l->ms)
		       : copy(l->name, l->kind, l->ms);
}

static const struct test_op *find(const struct test_op *ops, const char *name) {
	for (size_t i = 0; i < LAUNCHES_MAX && ops[i].name; i++) {
		if (strcmp(ops[i].name, name) == 0) {
			return &ops[i];
		}
	}
	fail_msg("no '%s' in the table", name);
	return NULL;
}

static void check_claims(const struct experiment *e, const struct test_op *ops) {
	for (const struct claim *c = e->claims; c->name; c++) {
		const struct test_op *waiter = find(ops, c->name), *other = find(ops, c->other);
		uint64_t until = c->until == ENDS ? other->done_ns : other->dispatched_ns;

		if (waiter->base.start_ns != until) {
			fail_msg("%s: %s began at %u ms, not when %s %s, at %u ms", c->rule,
				 c->name, (unsigned)(waiter->base.start_ns / MS), c->other,
				 c->until == ENDS ? "ended" : "was dispatched",
				 (unsigned)(until / MS));
		}
	}
}

static void run_experiment(const struct experiment *e) {
	struct test_op ops[LAUNCHES_MAX] = {{.name = NULL}};
	struct second other;
	struct world w;

	world_init(&w, &tx2);
	second_init(&other, &w);
	for (size_t i = 0; i < LAUNCHES_MAX && e->launches[i].name; i++) {
		const struct launch *l = &e->launches[i];

		world_run_until(&w, l->at_ms);
		ops[i] = op_of(l);
		if (l->high && !l->process) {
			world_set_priority(&w, l->stream, 1);
		}
		if (l->high && l->process) {
			other.stream = device_stream_free(other.stream);
			assert_int_equal(device_stream_new(&other.stream, other.space,
							   DEVICE_STREAM_BLOCKING, 1),
					 0);
		}
		device_submit(l->process ? other.stream : w.streams[l->stream], &ops[i].base);
	}
	world_run(&w);
	assert_string_equal(w.log, e->log);
	check_claims(e, ops);
	device_space_free(other.space);
	world_deinit(&w);
}

static void run_state(void **state) {
	run_experiment(*state);
}

#define EXPERIMENT(i, name) \
	{ name, run_state, NULL, NULL, (void *)(uintptr_t)&experiments[i] }

int main(void) {
	const struct CMUnitTest tests[] = {
		EXPERIMENT(0, "Table 1, Figures 3 and 4"),
		EXPERIMENT(1, "Table 2, Figure 5: the NULL stream"),
		EXPERIMENT(2, "Table 3, Figure 6: starvation"),
		EXPERIMENT(3, "Table 4, Figure 7: two priorities"),
		EXPERIMENT(4, "Table 5, Figure 8: priorities and blocking"),
		EXPERIMENT(5, "Appendix A, Figures 9 and 10: tasks"),
		EXPERIMENT(6, "Appendix A, Figures 9 and 10: processes"),
	};

	_Static_assert(sizeof(tests) / sizeof(*tests) == sizeof(experiments) / sizeof(*experiments),
		       "each experiment has a name");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
