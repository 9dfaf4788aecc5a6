/*
 * host-function.h: functions of the program that the driver calls from its streams
 * (cuLaunchHostFunc, cuStreamAddCallback).
 *
 * Such a function may take a lock under which another thread of the program launches, and that
 * thread may wait in op.c: for the job to end of which the function's stream is a part, or for
 * another program's. While a function runs, its stream has nothing on the GPU: everything before it
 * is complete, and everything behind it waits. So a job of which nothing is left but such streams
 * counts as complete while a thread waits here, and waits for no lock of the program.
 *
 * The driver calls one function after the other, so that a function in one stream may hold up those
 * that other streams have come to.
 *
 * Functions that are captured into graphs, or are added as nodes, go to the driver as they are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

/* What the driver is to call in place of a function of the program. The driver's from the call that
 * takes it, and calls it once. */
struct host_function;

/* For a stream as the program names it. NULL: the stream is being captured, or there is no memory:
 * then the program's own function is to be handed over. */
struct host_function *host_function_new(CUhostFn function, void *data, CUstream stream,
					bool per_thread);
struct host_function *host_function_new_callback(CUstreamCallback callback, void *data,
						 CUstream stream, bool per_thread);

/* The driver has not taken it. */
void host_function_free(struct host_function *h);

/* To be handed over instead, with the struct for data. A callback is told the program's stream. */
void CUDA_CB host_function_call(void *data);
void CUDA_CB host_function_call_back(CUstream stream, CUresult status, void *data);

/* Whether a thread of the program waits for a job, and a function has run for so long that it may
 * wait for that thread, in the stream of @key (worker_stream_key()) of @context or before those
 * that this stream has. */
bool host_function_blocks(uint64_t key, CUcontext context);

/* After fork, in the child: none runs. */
void host_function_after_fork(void);
