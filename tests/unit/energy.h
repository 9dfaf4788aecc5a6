/*
 * energy.h: the energy of a schedule by its definition (Eq. 3.3): what those who add it up as they
 * go are compared with.
 */
#pragma once

#include "daemon/core/power.h"

/* A kernel that ran: @sms SMs of GPU @gpu from start to end, drawing @dynamic_mw. */
struct power_segment {
	unsigned gpu;
	unsigned n_sms;
	uint64_t dynamic_mw;
	nsec_t start, end;
};

/*
 * Eq. 3.3: the energy of GPU @index over [@from, @to), in picojoules, when @segments ran; those of
 * other GPUs and what lies outside the window do not count. @edges: room for 2 * @n_segments times,
 * overwritten. O(n^2) in the segments that overlap at once, which a scheduler keeps to two.
 */
uint64_t power_energy_pj(const struct power_gpu *gpu, unsigned index,
			 const struct power_segment *segments, size_t n_segments, nsec_t from,
			 nsec_t to, nsec_t *edges);
