/*
 * picture.h: what was seen, as SVG: blocks on SMs over time, and distributions of times. Errors of
 * the stream are left to whoever closes it.
 */
#pragma once

#include <stdio.h>

#include "client/examine/experiment.h"
#include "client/examine/study.h"

/* As Figure 3 of the TX2 paper: a rectangle is a block, as high as it has threads; an arrow is a
 * launch. Of GPUs with many SMs the first few. */
void picture_timeline(const struct experiment *e, const struct experiment_run *run,
		      const struct experiment_gpu *gpu, FILE *out);

struct picture_curve {
	const char *name;
	const struct study_times *times;
	double factor; /* of all times: 4 is the paper's "4 * isolation" */
};

/* Cumulative distributions; curves without a time are left out. */
void picture_distribution(const char *title, const struct picture_curve *curves, size_t n,
			  FILE *out);
