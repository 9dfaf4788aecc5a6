/*
 * sample.h: what a number of measured times say. Pure.
 */
#pragma once

#include <stddef.h>

#include "proto/units.h"

struct sample {
	size_t n;
	double mean, min, p99, max; /* ns; p99: the least that 99 % do not exceed */
	double half; /* the mean of all such times is within this of ours with 95 % confidence, by
		      * Student's distribution; 0 for a single time, of which nothing can be said */
};

/* @times: sorted by this; @n at least 1. */
struct sample sample_of(nsec_t *times, size_t n);

/* A straight line through @n points, by least squares; @n at least 2, with different x. */
struct line {
	double at_0, slope;
	double off; /* the largest distance of a point from it, as a share of the point's y */
};

struct line line_through(const double *x, const double *y, size_t n);
