/*
 * means.h: what can stop a running job, and how fast, for policies that stop jobs
 * (policy_stop()):
 *
 *	launches  its program holds its launches back (Revoke, Stopped)
 *	level     under MPS: the other job's streams get a higher level than its own
 *	preempt   without MPS: its channel groups are preempted while the other job is open
 *
 * With the last two it is put aside: its program is told nothing, its work goes on in the gaps that
 * the other job leaves, and the other job starts at once. They need every program on the GPU to
 *take part. Otherwise launches are held back.
 */
#pragma once

#include <stdbool.h>

struct job;

/* For the engine: @job was granted. Notes what can stop it, sets its level, and tells its program.
 * May end it. */
void means_granted(struct job *job);

/* For the engine: @job is to leave the GPU for @by (NULL: that has ended). */
void means_stop(struct job *job, const struct job *by);
