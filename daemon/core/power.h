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
