/*
 * dependent.h: launches that begin before the kernel in front of them is complete: CUDA's
 * programmatic dependent launches, of kernels that wait first of all (shim/ptx/wait-first.h and
 * sass.h). Only where that is asked for.
 *
 * Beside three programs that launch as well, each launch of a short kernel takes half as long then
 * (H200, under MPS), and alone a fifth less: tests/gpu/HARDWARE.md, 12. What the program computes
 * is the same: its kernels wait for all that is in front of them on their stream, and the driver
 * makes such a launch as any other behind what is no kernel.
 *
 * A kernel may let the next one begin early (griddepcontrol.launch_dependents). As a dependent one
 * that would take SMs while the first still runs, and may run for long: it may wait for a kernel of
 * another stream, which has no room then. So a dependent launch is only made behind a kernel that
 * waits first of all, too: in such code there is no other griddepcontrol. The state of a stream is
 * a turn: of the process, which changes before each launch of anything else, kernel or graph, in
 * any stream, and before each wait for an event, that may have been recorded in the middle of a
 * kernel. A thread remembers in which turn its last kernel on a stream was one that waits first; in
 * the same turn nothing else can have come behind that. Launches of other threads into the stream
 * at the same time, in no order of their own, are not told apart.
 *
 * Where all GPUs are of compute capability 9.0, or, where the driver compiles PTX, newer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/enforce/kernel.h"
#include "shim/launch.h"
#include "shim/real.h"

/* Whether it is asked for: as the last Welcome said. Before that it is not. For code that is loaded
 * from then on. */
void dependent_allow(bool is_allowed);

/* What the driver is to load in place of @image, or of the file at @path if that is NULL, in the
 * current context (@is_library: on any GPU). NULL: nothing else, or it is not asked for. To be
 * freed. Calls the driver. */
void *dependent_image(bool is_library, const void *image, const char *path);

/* Whether the driver compiles @image, what dependent_image() gave. Then it may need other
 * registers, for instance, than the program's own. Machine code is told of as it was: its notes
 * stay. */
bool dependent_is_compiled(const void *image);

/* Whether the driver tells the same of each kernel of @module, in which all wait first, as of
 * @own's: registers, sizes, versions; from these follows how many blocks fit on an SM. @image,
 * @path: as above. In the current context. Calls the driver. */
bool dependent_tells_the_same(const void *image, const char *path, CUmodule module, CUmodule own);

/* Of a stream where no kernel was launched. */
#define DEPENDENT_TURN_NONE 0

/* See above; from 1. */
extern _Atomic uint64_t dependent_turn __attribute__((visibility("hidden")));

/* Before anything but a kernel that waits first of all is launched, and before a stream waits for
 * an event. */
static inline void dependent_end_turn(void) {
	if (atomic_load_explicit(&kernel_any_waits_first, memory_order_relaxed)) {
		atomic_fetch_add(&dependent_turn, 1);
	}
}

/* Launches @function as @config says, into a stream that is not being captured, while there are
 * kernels that wait first of all. @turn: of the stream, if @function is one of those: then it is a
 * dependent kernel where it can be; else NULL. Writes into @config. @per_thread: as by a _ptsz
 * function. Return: the driver's result; if it is an error, nothing was launched. */
CUresult dependent_launch(const struct real *real, uint64_t *turn, CUlaunchConfig *config,
			  CUfunction function, void **params, void **extra, bool per_thread);

/* The same for @l, a kernel that waits first of all, into @at. */
CUresult dependent_launch_at(const struct launch *l, uint64_t *turn, CUstream at);
