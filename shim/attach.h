/*
 * attach.h: how often contexts were attached to (cuCtxAttach) beyond their making, so that it is
 * known which cuCtxDetach takes one down.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

void attach_add(CUcontext context);

/* Return: whether there was one, which is gone now. */
bool attach_take(CUcontext context);

/* The context goes, with all that attached to it. */
void attach_forget(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void attach_after_fork(void);
