/*
 * meter.h: the first GPU's energy counter (NVML), for measuring programs.
 *
 * The counter changes every 100 ms on an H200; so a reading waits for its next change, and times
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter_span {
	uint64_t ns, mj;
};

/* Return: whether there is such a counter; up to about 110 ms later. */
bool meter_read(uint64_t *ret_ns, uint64_t *ret_mj);

bool meter_begin(struct meter_span *span);

/* Mean power since then, in W; 0 if it can't be read. */
double meter_end(const struct meter_span *span);
