/*
 * counts.h: telling sbeetd how often kernels were launched in jobs, and what the open jobs have
 * done so far.
 *
 * Each thread counts for itself (worker.h), so a launch shares no cache line with another thread's.
 * The tracker adds up, ten times a second at most. A daemon without the feature "counts" is told
 * nothing.
 */
#pragma once

#include "proto/units.h"

/* Tells what is new, if it is time. By the tracker. Return: when to call again at the latest;
 * WAKE_NEVER: when a job was opened. */
nsec_t counts_tell(nsec_t now);

/* The process exits: tells what there is, unless it would have to wait. */
void counts_leave(void);

/* After fork, in the child: forget everything. */
void counts_after_fork(void);
