/*
 * serial.h: bounds of response times on one GPU, or any other server, that runs one job at a time,
 * each to its end, and never idles while a job waits for it.
 *
 * Jobs of a task are released at least a period apart, at any offsets, and take any time up to
 * their task's. Two orders are known:
 *
 *  any     While a job waits the GPU is busy without a gap, since the start of a busy period. All
 *          that runs there until the job starts was released in that period: of each other task at
 *          most one job more than periods have passed, and of its own the earlier ones. So
 * whichever of them goes first, the job starts by the least w = q C_i + sum of (floor(w / T_j) + 1)
 * C_j where it is the q-th of its task in that period, from 0. period  Shorter periods first. The
 * same with the tasks whose period is no longer, and at most one job of another task, which was
 * running when the busy period began: non-preemptive response-time analysis with all jobs of the
 * busy period (Davis, Burns, Bril, Lukkien: Controller Area Network schedulability analysis, 2007).
 *
 * Both only grow with the times and with more jobs, so shorter times and fewer or later jobs change
 * nothing: that is what a simulation with the longest times can't tell. Pure: no allocation, no
 * I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/units.h"

struct serial_task {
	nsec_t time;   /* of one job, at most; all of them together stay below 2^63 ns */
	nsec_t period; /* 0: one job */
};

/* The longest response of a job of tasks[@index], in any order or, @by_period, that one;
 * UINT64_MAX: above @most, or not found. */
nsec_t serial_bound(const struct serial_task *tasks, size_t n, size_t index, bool by_period,
		    nsec_t most);
