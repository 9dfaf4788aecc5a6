/* experiment.c: see experiment.h. */
#include "client/examine/experiment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of the paper's tables, or a copy beside it. Sizes are those of its 2 SMs. */
struct row {
	unsigned at_ms;
	unsigned stream; /* 0: the NULL stream */
	const char *name;
	unsigned blocks, threads, shared_kib;
	unsigned ms;
	enum experiment_kind kind;
	enum { NONE, LOW, HIGH } priority;
};

/* A copy of 256 MB is said to take 200 ms. Rows of a stream stand in the order of their launch. */
static const struct row table_1[] = {
	{0, 1, "K1", 6, 768, 0, 1000, EXPERIMENT_SPIN, NONE},
	{0, 1, "K2", 2, 512, 0, 1000, EXPERIMENT_SPIN, NONE},
	{0, 1, "C2o", .ms = 200, .kind = EXPERIMENT_COPY_OUT},
	{0, 1, "C3i", .ms = 200, .kind = EXPERIMENT_COPY_IN},
	{0, 1, "K3", 2, 1024, 0, 1000, EXPERIMENT_SPIN, NONE},
	{0, 1, "C3o", .ms = 200, .kind = EXPERIMENT_COPY_OUT},
	{200, 2, "K4", 4, 256, 32, 1000, EXPERIMENT_SPIN, NONE},
	{400, 3, "K5", 2, 256, 32, 1000, EXPERIMENT_SPIN, NONE},
	{400, 3, "C5o", .ms = 200, .kind = EXPERIMENT_COPY_OUT},
	{2800, 2, "K6", 2, 512, 0, 1000, EXPERIMENT_SPIN, NONE},
	{2800, 2, "C6o", .ms = 200, .kind = EXPERIMENT_COPY_OUT},
	{0},
};
static const struct row table_2[] = {
	{0, 1, "K1", 6, 768, 0, 1000, EXPERIMENT_SPIN, NONE},
	{200, 0, "K2", 1, 1024, 0, 1000, EXPERIMENT_SPIN, NONE},
	{400, 2, "K3", 4, 256, 0, 1000, EXPERIMENT_SPIN, NONE},
	{400, 2, "K4", 4, 256, 0, 1000, EXPERIMENT_SPIN, NONE},
	{600, 0, "K5", 1, 1024, 0, 1000, EXPERIMENT_SPIN, NONE},
	{800, 3, "K6", 2, 256, 0, 1000, EXPERIMENT_SPIN, NONE},
	{0},
};
/* K3 comes 100 ms sooner than in the paper: there it is launched just as K1's first blocks end. */
static const struct row table_3[] = {
	{0, 1, "K1", 8, 1024, 0, 500, EXPERIMENT_SPIN, LOW},
	{200, 2, "K2", 16, 1024, 0, 500, EXPERIMENT_SPIN, HIGH},
	{400, 3, "K3", 16, 1024, 0, 500, EXPERIMENT_SPIN, HIGH},
	{0},
};
static const struct row table_4[] = {
	{0, 1, "K1", 8, 1024, 0, 500, EXPERIMENT_SPIN, LOW},
	{200, 2, "K2", 8, 1024, 0, 500, EXPERIMENT_SPIN, NONE},
	{300, 3, "K3", 8, 1024, 0, 500, EXPERIMENT_SPIN, HIGH},
	{1200, 4, "K4", 8, 1024, 0, 500, EXPERIMENT_SPIN, LOW},
	{0},
};
static const struct row table_5[] = {
	{0, 1, "K1", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{100, 2, "K2", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{200, 3, "K3", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{300, 4, "K4", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{400, 5, "K5", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{500, 6, "K6", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{600, 7, "K7", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{650, 8, "K8", 1, 1024, 0, 500, EXPERIMENT_SPIN, HIGH},
	{700, 9, "K9", 1, 512, 0, 1000, EXPERIMENT_SPIN, LOW},
	{0},
};
/* Appendix A, Figures 9 and 10. What computes shows by its time that it was preempted. */
static const struct row table_a[] = {
	{0, 1, "P1", 16, 1024, 0, 500, EXPERIMENT_COUNT, NONE},
	{50, 2, "P2", 16, 1024, 0, 500, EXPERIMENT_COUNT, NONE},
	{0},
};
/* What leaves room for the other one. */
static const struct row table_half[] = {
	{0, 1, "P1", 4, 512, 0, 500, EXPERIMENT_COUNT, NONE},
	{50, 2, "P2", 4, 512, 0, 500, EXPERIMENT_COUNT, NONE},
	{0},
};

static const struct {
	const char *name;
	const struct row *rows;
} tables[EXPERIMENT_TABLES] = {
	{"Table 1: streams, threads, shared memory, copies", table_1},
	{"Table 2: the NULL stream", table_2},
	{"Table 3: high priority starves low priority", table_3},
	{"Table 4: no priority is low priority", table_4},
	{"Table 5: priorities and blocking", table_5},
	{"Appendix A: two threads", table_a},
	{"Appendix A: two processes", table_a},
	{"Two processes that need half of the GPU each", table_half},
};

void experiment_run_deinit(struct experiment_run *run) {
	free(run->records);
	free(run->blocks);
	*run = (struct experiment_run){0};
}

int experiment_find(const struct experiment *e, const char *name) {
	for (unsigned i = 0; i < e->n_ops; i++) {
		if (strcmp(e->ops[i].name, name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

static void scale_kernel(struct experiment_op *op, const struct row *row,
			 const struct experiment_gpu *gpu, nsec_t unit) {
	unsigned threads = (unsigned)((uint64_t)row->threads * gpu->sm_threads / 2048);

	op->threads = threads < 32 ? 32 : threads / 32 * 32;
	op->threads = op->threads > 1024 ? 1024 : op->threads;
	op->blocks = row->blocks * gpu->sms / 2;
	op->blocks = op->blocks ? op->blocks : 1;
	if (row->shared_kib > 0) {
		/* Half of an SM's, less what the system takes of two such blocks and two of K1. */
		unsigned half = gpu->sm_shared / 2 - 2 * gpu->block_shared_reserved;

		half = half > gpu->block_shared_max ? gpu->block_shared_max : half;
		op->shared_bytes = half / 1024 * 1024;
	}
	op->work = unit * row->ms / 1000;
	if (op->kind == EXPERIMENT_COUNT) {
		op->work = (uint64_t)((double)op->work / 1e9 * gpu->rounds_per_s) + 1;
	}
}

static void scale_copy(struct experiment_op *op, const struct row *row,
		       const struct experiment_gpu *gpu, nsec_t unit) {
	double rate = op->kind == EXPERIMENT_COPY_IN ? gpu->copy_in_bytes_per_s
						     : gpu->copy_out_bytes_per_s;
	double bytes = rate * (double)unit / 1e9 * row->ms / 1000;

	bytes = bytes > EXPERIMENT_COPY_MAX ? EXPERIMENT_COPY_MAX : bytes;
	op->bytes = bytes < 4096 ? 4096 : (uint64_t)bytes / 4096 * 4096;
}

int experiment_table(struct experiment *ret, unsigned number, const struct experiment_gpu *gpu,
		     nsec_t unit) {
	struct experiment e = {.n_tasks = 0};
	const struct row *rows = tables[number - 1].rows;
	unsigned stream = UINT32_MAX, last_ms = 0;

	if (number == 5 && gpu->sms < 2) {
		return -ENOTSUP;
	}
	snprintf(e.name, sizeof(e.name), "%s", tables[number - 1].name);
	e.processes = number >= EXPERIMENT_PROCESSES;
	for (unsigned s = 0; s < EXPERIMENT_TASKS_MAX; s++) {
		for (const struct row *row = rows; row->name; row++) {
			struct experiment_task *task = &e.tasks[e.n_tasks];
			struct experiment_op *op = &e.ops[e.n_ops];

			if (row->stream != s) {
				continue;
			}
			/* Whoever launches into the NULL stream is a task of its own. */
			if (stream != s || s == 0) {
				task->null_stream = s == 0;
				task->has_priority = row->priority != NONE;
				task->priority = row->priority == HIGH ? gpu->priority_high
								       : gpu->priority_low;
				task->release = unit * row->at_ms / 1000;
				task->iterations = 1;
				task->first_op = e.n_ops;
				snprintf(task->label, sizeof(task->label),
					 s == 0 ? "NULL stream" : "S%u", s);
				last_ms = row->at_ms;
				stream = s;
				e.n_tasks++;
			} else {
				task = &e.tasks[e.n_tasks - 1];
			}
			op->kind = row->kind;
			snprintf(op->name, sizeof(op->name), "%s", row->name);
			op->delay = unit * (row->at_ms - last_ms) / 1000;
			last_ms = row->at_ms;
			if (row->kind == EXPERIMENT_COPY_IN || row->kind == EXPERIMENT_COPY_OUT) {
				scale_copy(op, row, gpu, unit);
			} else {
				scale_kernel(op, row, gpu, unit);
			}
			task->n_ops++;
			e.n_ops++;
		}
	}
	if (number == 5) {
		/* Of the quarters of SMs, half as many stay free as there are SMs: one on an SM. */
		unsigned half = gpu->sms / 2;

		e.ops[experiment_find(&e, "K7")].blocks = 4 * gpu->sms - 7 * half;
	}
	*ret = e;
	return 0;
}
