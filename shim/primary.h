/*
 * primary.h: how often the program holds the primary context of each device, so that it is known
 * which release takes the context down.
 *
 * Whoever counts holds the device's lock across the driver's own function, and across what goes
 * with the context: a thread that retains it meanwhile waits, and has it made anew. The lock comes
 * before all others of ours; only wrappers take it, never while they are inside state_enter().
 */
#pragma once

#include <cuda.h>

/* A device that we don't know has none. In the middle of this the driver may call the program back,
 * which may retain or release it again in the same thread. The thread can't be cancelled until
 * primary_unlock(), which is given what this returns. */
int primary_lock(CUdevice device);
void primary_unlock(CUdevice device, int cancel);

/* The rest with the lock held. */

/* One more holds @context, the driver says. */
void primary_retained(CUdevice device, CUcontext context);

/* One less holds it. Return: the context if it goes with that. NULL: others have it still, or it is
 * not known. */
CUcontext primary_released(CUdevice device);

/* NULL: not known. */
CUcontext primary_context(CUdevice device);

/* After fork, in the child: forget everything without calling the driver. */
void primary_after_fork(void);
