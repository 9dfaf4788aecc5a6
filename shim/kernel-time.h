/*
 * kernel-time.h: how long single kernels take by themselves, for programs that yield and that
 * nobody has profiled. One launch in some is measured: with an event in front of it and one behind,
 * whose distance is asked for at a later launch.
 *
 * Kernels are told apart by function, blocks and shared memory; with other parameters one may still
 * take longer. It may also have waited for others while it was measured, so the least of late
 * counts.
 *
 * By one thread alone, but for the end of a context.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/units.h"

struct launch;

#define KERNEL_TIMES   1024
#define KERNEL_SAMPLES 8 /* at a time */

/* A kernel in one size. */
struct kernel_time {
	uint64_t key;	   /* 0: free */
	uint32_t ns;	   /* that it takes; 0: not known yet */
	uint32_t launches; /* from the last one that was measured on; 0: none was */
};

struct kernel_sample {
	CUevent begin, end; /* NULL: not made yet */
	uint64_t key;	    /* of what is measured; 0: free */
	CUstream stream;
};

/* What one thread knows. All 0 at first. */
struct kernel_times {
	struct kernel_time known[KERNEL_TIMES];
	struct kernel_sample samples[KERNEL_SAMPLES];
	unsigned n_flying;	    /* of these were begun */
	unsigned launches;	    /* since they were looked at */
	_Atomic(CUcontext) context; /* of the events; NULL: there are none */
};

/* The entry of the kernel of @launch, made if need be. Valid until the next look-up. */
struct kernel_time *kernel_time_find(struct kernel_times *t, const struct launch *launch);

/* In front of a launch into @stream of @context, which is current; behind all that it waits for.
 * @time: its kernel's entry. Return: what goes to kernel_time_end(); NULL: this launch is not
 * measured. */
struct kernel_sample *kernel_time_begin(struct kernel_times *t, struct kernel_time *time,
					CUcontext context, CUstream stream);

/* The driver was asked to launch it, and said @rc. */
void kernel_time_end(struct kernel_times *t, struct kernel_sample *sample, CUresult rc);

/* By any thread, before the driver's own function: events of @context are gone. */
void kernel_time_forget(struct kernel_times *t, CUcontext context);
