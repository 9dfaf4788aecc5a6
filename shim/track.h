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

/*
 * The stream, or all streams of the context, are about to go. When this returns the tracker has its
 * hands off them. What was still running on a stream is followed by an event from now on; what ran
 * in a context counts as complete.
 */
void track_stream_going(CUstream stream);
void track_context_going(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void track_after_fork(void);
