/*
 * marks.h: a program says where its jobs begin and end, by sbeet.h or by ranges of NVTX.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"
#include "shim/state.h"

struct mark;

/*
 * The calling thread begins a job, see sbeet_job_begin_within(). Keeps errno. Return: what was
 * marked, for marks_end_job(); valid for good. NULL: sbeet is off in this process or this call, or
 * there is no memory.
 */
struct mark *marks_begin_job(nsec_t release, nsec_t deadline);

/* Whether programs find this library's sbeet_mark(). Not where it was not preloaded but loaded by
 * NVTX alone, as in a child from whose environment LD_PRELOAD was taken: what the program launches
 * would pass us by. Nor where it is the second libsbeet.so. */
bool marks_are_found(void);

/* What sbeet.h calls. */
SBEET_EXPORT void sbeet_mark(unsigned mark, uint64_t release_ns, uint64_t deadline_ns);

/* The job that was begun there ends. Any thread may say so. Keeps errno. */
void marks_end_job(struct mark *m);
