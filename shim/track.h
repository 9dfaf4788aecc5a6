/*
 * track.h: the one thread of ours in the process: ends jobs whose program polls, or does nothing,
 * and sends records. Started with the first job; asleep while there is no job.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

/* Return: whether there is a tracker. Without one no job may be opened, for nothing would end it.
 */
bool track_start(void);

/* A job is open. Costs nothing while the tracker is up anyway, and comes again within a
 * millisecond. */
void track_job_opened(void);

/* There is something to do now. */
void track_kick(void);

/*
 * The stream, or all streams of the context, are about to go. When this returns the tracker has its
 * hands off them. What was still running on a stream is followed by an event from now on; what ran
 * in a context counts as complete.
 */
void track_stream_going(CUstream stream);
void track_context_going(CUcontext context);

/* @u belongs to no job from now on, and the tracker has its hands off it. */
struct stream_use;
void track_release(struct stream_use *u);

/* Waits for the tracker to finish the questions that it is asking the driver just now. */
void track_settle(void);

/* After fork, in the child: forget everything without calling the driver. */
void track_after_fork(void);
