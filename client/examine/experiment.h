/*
 * experiment.h: what is run on a GPU to see how it schedules: tasks that launch kernels and copies
 * into streams at given times, and what was seen of each of them.
 *
 * Pure data: perform.h runs it, rules.h judges it. Times are nanoseconds; in an experiment they
 * count from its start, in records they are the GPU's own (%globaltimer).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/units.h"

#define EXPERIMENT_TASKS_MAX   16
#define EXPERIMENT_OPS_MAX     64
#define EXPERIMENT_BLOCKS_MAX  4096	  /* of a kernel */
#define EXPERIMENT_RECORDS_MAX (1u << 20) /* blocks of a whole run: 24 MiB */
#define EXPERIMENT_COPY_MAX    (256u * 1024 * 1024)
#define EXPERIMENT_NAME_MAX    64

enum experiment_kind {
	EXPERIMENT_SPIN,  /* each block waits for a time */
	EXPERIMENT_COUNT, /* each block computes for a number of rounds */
	EXPERIMENT_COPY_IN,
	EXPERIMENT_COPY_OUT,
};

struct experiment_op {
	enum experiment_kind kind;
	char name[EXPERIMENT_NAME_MAX];
	nsec_t delay; /* after the launch before it */
	unsigned blocks, threads, shared_bytes;
	uint64_t work;	/* EXPERIMENT_SPIN: nanoseconds; EXPERIMENT_COUNT: rounds */
	uint64_t bytes; /* of a copy; at most EXPERIMENT_COPY_MAX */
};

/* One thread of the program, with a stream of its own. */
struct experiment_task {
	char label[EXPERIMENT_NAME_MAX];
	bool null_stream;
	bool has_priority; /* else the stream is made without one */
	int priority;	   /* as CUDA counts: the lower, the more urgent; cut to what the GPU has */
	nsec_t release;
	unsigned iterations; /* each waits for the end of the one before */
	nsec_t max_time;     /* no iteration begins after it; 0: no limit */
	unsigned first_op, n_ops;
};

struct experiment {
	char name[EXPERIMENT_NAME_MAX];
	unsigned gpu;
	bool processes; /* each task is a process of its own, not a thread */
	struct experiment_task tasks[EXPERIMENT_TASKS_MAX];
	unsigned n_tasks;
	struct experiment_op ops[EXPERIMENT_OPS_MAX];
	unsigned n_ops;
};

/* What the driver says of a GPU. */
struct experiment_gpu {
	char name[96];
	int driver; /* its CUDA version, 13000 is 13.0 */
	int cc_major, cc_minor;
	unsigned sms, sm_threads, sm_shared, block_shared_max, block_shared_reserved;
	unsigned copy_engines;
	bool integrated;
	int priority_low, priority_high; /* 0 and -5 */
	uint64_t memory_bytes;
	double copy_in_bytes_per_s, copy_out_bytes_per_s; /* pinned memory */
	double rounds_per_s; /* of EXPERIMENT_COUNT, with as many threads as the SMs hold */
};

struct experiment_block {
	uint64_t start, end;
	uint32_t sm, unused;
};

/* An operation of one iteration. */
struct experiment_record {
	uint64_t launched; /* 0: never */
	uint64_t start, end;
	unsigned n_blocks;
	struct experiment_block *blocks; /* of a kernel; borrowed from the run */
};

/* What was seen: records[iteration * n_ops + op]. */
struct experiment_run {
	unsigned n_iterations; /* the most of any task */
	size_t n_records;
	struct experiment_record *records; /* owned */
	struct experiment_block *blocks;   /* owned */
};

void experiment_run_deinit(struct experiment_run *run);

/* Table 1 to 5 and Appendix A of the TX2 paper, for a GPU of any size: what the paper's 2 SMs of
 * 2,048 threads and 64 KiB held is held by all SMs of @gpu. @unit: how long the paper's second
 * takes. @number: 1 to 5; 6: appendix A with threads, 7: with processes, 8: with processes that
 * need half of the GPU each. Return: 0; -ENOTSUP: @gpu has too few SMs. */
#define EXPERIMENT_TABLES    8
#define EXPERIMENT_PROCESSES 7 /* and those that follow */
int experiment_table(struct experiment *ret, unsigned number, const struct experiment_gpu *gpu,
		     nsec_t unit);

/* The index of the operation @name, or -1. */
int experiment_find(const struct experiment *e, const char *name);
