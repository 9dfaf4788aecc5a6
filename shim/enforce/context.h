/*
 * context.h: what confined launches keep in the device memory of each context of the program:
 * control blocks, one for each stream that they use, and SM sets.
 *
 * Look-ups (context_current, context_find_set, context_find_control) are for the launch path. The
 * rest allocates and copies; it uses a non-blocking stream of its own, so it neither waits for the
 * program's work nor makes that wait. One lock guards changes and is never held across a call into
 * the driver. Control blocks are never given back before their context ends: streams that are
 * destroyed leave theirs to new streams, once the counters in it say that nothing uses it any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/real.h"

#include "proto/smset.h"
#include "shim/launch.h"
#include "shim/ptx/twin.h"

/* Different SM sets that one context can hold; a policy has far fewer. */
#define CONTEXT_SETS_MAX 4096

/* A control block. @launches_begun is the host's side of twin_ctl's launches and
 * stops. */
struct control {
	CUdeviceptr address;
	_Atomic(uint64_t) launches_begun;
	_Atomic(uint64_t) launches_seen; /* twin_ctl's when last read, as is outside_seen */
	_Atomic(uint64_t) outside_seen;
	struct control *next; /* among the context's spare or left ones */
	struct control *next_of_all;
};

struct context;

/* GPUs that are looked at. */
#define CONTEXT_GPUS_MAX 64

/* The compute capabilities of all GPUs that the driver tells of: 90 for 9.0; 0: it does not tell
 * which. @ret has room for CONTEXT_GPUS_MAX. Return: how many. */
unsigned context_all_sms(unsigned *ret);

/* The calling thread's current context; made known on first sight. NULL: none, or no memory. */
struct context *context_current(void);

/* The same for who knows which it is. */
struct context *context_of(CUcontext current);

CUcontext context_handle(const struct context *c);
uint64_t context_serial(const struct context *c); /* from 1; no other one of the process has it */
unsigned context_sm(const struct context *c); /* 90 for compute capability 9.0 */
CUdevice context_device(const struct context *c);
unsigned context_n_sms(const struct context *c);
unsigned context_workers_max(const struct context *c); /* slots in each control block */

/* Device address of a struct twin_set; 0 if context_prepare_set() was not called for it. */
CUdeviceptr context_find_set(const struct context *c, const struct smset *set);

/* Return: 0; -ENOMEM (device or host); -ENOSPC above CONTEXT_SETS_MAX. */
int context_prepare_set(struct context *c, const struct smset *set);

/* Does the launch run in @c, which is current? A library's kernel runs where its stream is. */
bool context_has_stream(struct context *c, const struct launch *l);

/* The control block of the launch's stream. A stream that was not seen before gets a spare one;
 * only without one memory is allocated. NULL: no memory. */
struct control *context_find_control(struct context *c, const struct launch *l);

/* Sees to it that the next new stream finds a spare control block. Return: 0, -ENOMEM. */
int context_prepare_control(struct context *c);

/* Blocks that ran outside their set since the last call. Reads device memory. */
uint64_t context_read_outside(struct context *c);

/* Copies to or from device memory and waits for that. Return: 0, -EIO. */
int context_write(struct context *c, CUdeviceptr to, const void *from, size_t n);
int context_read(struct context *c, void *to, CUdeviceptr from, size_t n);

/* The stream by a handle that means the same from every thread but for CU_STREAM_PER_THREAD. */
CUstream context_stream(const struct launch *l);

void context_stream_destroying(CUstream stream); /* of whichever context */
void context_destroying(CUcontext handle);
void context_after_fork(void);
