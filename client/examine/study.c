/*
 * study.c: what studies have in common: their figures, and how blocks of programs overlap. The
 * measuring is in study-memory.c and study-sharing.c.
 */
#include "client/examine/study.h"

#include <math.h>
#include <stdlib.h>

uint64_t study_percentile(const struct study_times *t, double percent) {
	size_t i = t->n ? (size_t)(percent / 100 * (double)(t->n - 1) + 0.5) : 0;

	return t->n ? t->list[i] : 0;
}

double study_mean(const struct study_times *t) {
	double sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		sum += (double)t->list[i];
	}
	return t->n ? sum / (double)t->n : 0;
}

double study_deviation(const struct study_times *t) {
	double mean = study_mean(t), sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		sum += ((double)t->list[i] - mean) * ((double)t->list[i] - mean);
	}
	return t->n > 1 ? sqrt(sum / (double)(t->n - 1)) : 0;
}

static int compare_times(const void *a, const void *b) {
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void study_sort(struct study_times *t) {
	if (t->n > 0) {
		qsort(t->list, t->n, sizeof(*t->list), compare_times);
	}
}

/* Below: two programs' blocks that touch. */
#define SOME_OVERLAP 0.05
#define FULL	     1.05

enum study_way study_way(const struct study_shared *s) {
	if (s->overlap < SOME_OVERLAP) {
		return STUDY_ONE_AT_A_TIME;
	}
	return (double)s->threads > FULL * (double)s->holds ? STUDY_PREEMPTED : STUDY_TOGETHER;
}

struct edge {
	uint64_t t;
	unsigned program;
	int step; /* 1: a block begins; -1: ends */
};

/* Ends come first: what begins then has their room. */
static int compare_edges(const void *a, const void *b) {
	const struct edge *x = a, *y = b;

	if (x->t != y->t) {
		return x->t < y->t ? -1 : 1;
	}
	return x->step - y->step;
}

void study_overlap(const struct experiment_block *blocks, unsigned n, size_t n_blocks,
		   unsigned threads, double *ret_overlap, unsigned *ret_threads) {
	struct edge *edges = calloc(2 * n * n_blocks + 1, sizeof(*edges));
	size_t n_edges = 0;
	unsigned running[STUDY_PROGRAMS] = {0}, programs = 0, all = 0, most = 0;
	uint64_t one = 0, two = 0;

	*ret_overlap = 0;
	*ret_threads = 0;
	for (size_t i = 0; edges && i < n * n_blocks; i++) {
		if (blocks[i].end > blocks[i].start) {
			unsigned program = (unsigned)(i / n_blocks);

			edges[n_edges++] = (struct edge){blocks[i].start, program, 1};
			edges[n_edges++] = (struct edge){blocks[i].end, program, -1};
		}
	}
	if (n_edges > 0) {
		qsort(edges, n_edges, sizeof(*edges), compare_edges);
	}
	for (size_t i = 0; i < n_edges; i++) {
		unsigned *r = &running[edges[i].program];

		if (i > 0) {
			one += programs >= 1 ? edges[i].t - edges[i - 1].t : 0;
			two += programs >= 2 ? edges[i].t - edges[i - 1].t : 0;
		}
		programs += edges[i].step > 0 && *r == 0;
		*r += (unsigned)edges[i].step;
		all += (unsigned)edges[i].step;
		programs -= edges[i].step < 0 && *r == 0;
		most = all > most ? all : most;
	}
	free(edges);
	*ret_overlap = one ? (double)two / (double)one : 0;
	*ret_threads = most * threads;
}
