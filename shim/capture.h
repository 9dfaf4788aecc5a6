/*
 * capture.h: whether the program captures streams into graphs.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

/* Between these no stream may be asked anything, as that would spoil the capture. */
void capture_begin(void);
void capture_end(void);

/* Whether any stream is being captured. */
bool capture_any(void);

/* Whether an operation on the stream goes into a graph. @per_thread: stream 0 is the thread's own.
 * Free of cost while nobody captures. */
bool capture_is_on(CUstream stream, bool per_thread);

/* After fork, in the child: forget everything without calling the driver. */
void capture_after_fork(void);
