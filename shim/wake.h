/*
 * wake.h: how others wake the tracker's thread (track.h).
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"

#define WAKE_NEVER UINT64_MAX

/* Before the first sleep: makes it be measured by the clock that nsec_now() reads. */
void wake_init(void);

/* There is something for the tracker to do now. */
void wake_tracker(void);

/* The same by somebody who may be in the middle of anything. Return: false if another thread, or
 * its own, is just doing so: to be tried again. */
bool wake_tracker_at_exit(void);

/* A job is open. Costs nothing while the tracker is up anyway, and looks again within a
 * millisecond. */
void wake_for_job(void);

/* The tracker's: sleeps until @deadline (WAKE_NEVER: there is none) or until it is woken. With
 * @n_jobs also until that says that a job is open; NULL: it looks again soon enough. */
void wake_sleep(nsec_t deadline, unsigned (*n_jobs)(void));

/* After fork, in the child: nobody sleeps. */
void wake_after_fork(void);
