/*
 * study.h: what the TX1 paper ("An Evaluation of the NVIDIA TX1 for Supporting Real-Time
 * Computer-Vision Workloads", RTAS 2017) measured: three ways to reach memory (Tables I and II,
 * Figures 2 and 3), copies, and programs that share the GPU (Figures 5 to 8).
 */
#pragma once

#include <stddef.h>

#include "client/examine/experiment.h"

enum study_memory_kind { STUDY_COPIED, STUDY_ZERO_COPY, STUDY_UNIFIED, STUDY_MEMORIES };
enum study_walk { STUDY_RANDOM, STUDY_IN_ORDER, STUDY_WALKS };

#define STUDY_COPIES	16
#define STUDY_PROGRAMS	4
#define STUDY_RUNS_MAX	10000
#define STUDY_STEPS_MAX 1000000000u

struct study_options {
	unsigned gpu;
	uint64_t bytes; /* that are walked through, and the largest copy; at least 1 MiB */
	uint64_t steps; /* of each thread in a walk */
	unsigned runs;	/* samples of each kind */
	nsec_t limit;
};

/* Times in nanoseconds, in rising order. */
struct study_times {
	uint64_t *list; /* owned by the result */
	size_t n;
};

struct study_memory {
	struct study_times block[STUDY_WALKS][STUDY_MEMORIES];
	bool has[STUDY_MEMORIES]; /* some GPUs have no managed memory */
	size_t n_copies;
	struct {
		uint64_t bytes, in_ns, out_ns; /* the quickest of three */
	} copies[STUDY_COPIES];
	uint64_t *samples; /* owned */
};

int study_memory(struct study_memory *ret, const struct study_options *o, char *error,
		 size_t error_size);
void study_memory_deinit(struct study_memory *m);

/* @n programs at a time: what each of them does, again and again, is copy in, one kernel, copy out.
 */
struct study_shared {
	struct study_times total, kernel, block;
	double overlap; /* of the time in which blocks run: those of two programs and more */
	unsigned threads,
		holds; /* the most at a time, by the blocks' own clocks; what the SMs hold */
};

struct study_sharing {
	struct study_shared with[STUDY_PROGRAMS]; /* [0]: alone */
	uint64_t *samples;			  /* owned */
};

/* @gpu: from perform_probe(). */
int study_sharing(struct study_sharing *ret, const struct study_options *o,
		  const struct experiment_gpu *gpu, char *error, size_t error_size);
void study_sharing_deinit(struct study_sharing *s);

/* Into rising order. */
void study_sort(struct study_times *t);

/* The @percent of @t, 0 to 100; 0 if there is none. */
uint64_t study_percentile(const struct study_times *t, double percent);
double study_mean(const struct study_times *t);
double study_deviation(const struct study_times *t);

/* How the GPU shares itself among programs, from what was seen of them. */
enum study_way {
	STUDY_ONE_AT_A_TIME, /* blocks of two programs never run together: the TX1 */
	STUDY_TOGETHER,	     /* they do, on what there is: MPS */
	STUDY_PREEMPTED,     /* more threads than there is room for: time slices, the TX2 */
};
enum study_way study_way(const struct study_shared *s);

/* Of @n programs' blocks, program p's being blocks[p * n_blocks] and on: the share of the time in
 * which two programs' run, and the most threads at a time. */
void study_overlap(const struct experiment_block *blocks, unsigned n, size_t n_blocks,
		   unsigned threads, double *ret_overlap, unsigned *ret_threads);
