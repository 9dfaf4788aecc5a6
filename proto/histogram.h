/*
 * histogram.h: how often times fell into which range, from 1 us to 18 minutes, at a fixed size.
 *
 * Each power of two is divided into HISTOGRAM_PARTS ranges of equal width, so a percentile is known
 * to half of such a range: within 3.2 % of the time itself. Part of files and of messages (Bucket
 * in control.proto): what a range's index means never changes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/units.h"

#define HISTOGRAM_PARTS	  16
#define HISTOGRAM_OCTAVES 30
#define HISTOGRAM_LOWEST  1024 /* ns: all that is below is range 0 */
#define HISTOGRAM_BUCKETS (1 + HISTOGRAM_OCTAVES * HISTOGRAM_PARTS)

/* All zero: empty. */
struct histogram {
	uint32_t counts[HISTOGRAM_BUCKETS]; /* the last one: beyond 2^40 ns, too */
};

/* Which range @time, in ns, is in: below HISTOGRAM_BUCKETS. */
size_t histogram_bucket(nsec_t time);

/* The middle of that range, in ns. */
nsec_t histogram_middle(size_t bucket);

/* A count that is full stays so. */
void histogram_add(struct histogram *h, size_t bucket, uint32_t n);

/* How many times are in it. */
uint64_t histogram_count(const struct histogram *h);

/* The time, in ns, that @percent of them do not exceed, 1 to 100; 0: there is none. */
nsec_t histogram_percentile(const struct histogram *h, unsigned percent);
