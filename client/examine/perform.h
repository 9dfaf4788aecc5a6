/*
 * perform.h: runs an experiment on a GPU, in processes of its own, and brings back what was seen.
 */
#pragma once

#include <stddef.h>

#include "client/examine/experiment.h"

/* What there is, and how fast it copies and computes. Return: 0 or a negative errno with one line
 * in @error, as below. */
int perform_probe(struct experiment_gpu *ret, unsigned gpu, nsec_t limit, char *error,
		  size_t error_size);

/* @e as experiment.h allows it. @ret: to be given to experiment_run_deinit(). @limit: for all of
 * it; a GPU that takes longer is given up. */
int perform(struct experiment_run *ret, const struct experiment *e,
	    const struct experiment_gpu *gpu, nsec_t limit, char *error, size_t error_size);
