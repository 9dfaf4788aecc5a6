/*
 * power.h: the power and energy model of chapters 2 and 3 (Eq. 2.1-2.5, 3.1-3.4).
 *
 * Units: milliwatts and nanoseconds, so energy comes in picojoules, in integers and exactly. A
 * system of 16 GPUs of 1 kW fills 64 bits after 13 days in one window: callers keep windows to a
 * day.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/units.h"

#define POWER_PJ_PER_J 1000000000000ull

struct power_gpu {
	unsigned n_sms;		 /* M: physical SMs, also where a limit allows fewer */
	uint32_t static_mw;	 /* P_s: drawn always */
	uint32_t idle_mw_per_sm; /* P_idle(1): an unused SM of an active GPU */
};

/*
 * Eq. 3.2, with its two cases the right way round (they are printed with the conditions swapped):
 * P_s alone when no SM is busy, else P_s + the jobs' dynamic power + P_idle * (M - busy).
 * @dynamic_mw: sum of P_d,i(m_i) of the running jobs. @busy: sum of m_i, at most M.
 */
uint64_t power_now_mw(const struct power_gpu *gpu, unsigned busy, uint64_t dynamic_mw);

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
