/*
 * dependent.h: launches that begin before the kernel in front of them is complete: CUDA's
 * programmatic dependent launches, of kernels that wait first of all (shim/ptx/wait-first.h and
 * sass.h).
 *
 * Beside three programs that launch as well, each launch of a short kernel takes half as long then
 * (H200, under MPS), and alone a fifth less: tests/gpu/HARDWARE.md, 12. What the program computes
 * is the same: its kernels wait for all that is in front of them on their stream, and the driver
 * makes such a launch as any other behind what is no kernel.
 *
 * Where all GPUs are of compute capability 9.0, or, where the driver compiles PTX, newer.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "shim/launch.h"
#include "shim/real.h"

/* Whether it is asked for: as the last Welcome said. Before that it is not. For code that is loaded
 * from then on. */
void dependent_allow(bool is_allowed);

/* What the driver is to load in place of @image, or of the file at @path if that is NULL, in the
 * current context (@is_library: on any GPU). NULL: nothing else, or it is not asked for. To be
 * freed. Calls the driver. */
void *dependent_image(bool is_library, const void *image, const char *path);

/* Launches @function as a dependent kernel, with what @like says but for its attributes. Only for
 * one that waits first of all, into a stream that is not being captured. @per_thread: as by a _ptsz
 * function. Return: the driver's result; if it is an error, nothing was launched. */
CUresult dependent_launch(const struct real *real, const CUlaunchConfig *like, CUfunction function,
			  void **params, void **extra, bool per_thread);

/* The same for @l, into @at: like enforce_launch_at(), if it can't be a dependent kernel. */
CUresult dependent_launch_at(const struct launch *l, CUstream at);
