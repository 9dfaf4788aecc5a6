/*
 * plan.h: how a virtual grid is spread over workers. Pure arithmetic, no driver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/launch.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/twin.h"

/* Kernel parameters that a launch passes on the stack. 4 KiB of parameters, the limit of old
 * drivers, are at most this many of four bytes. */
#define PLAN_PARAMS_MAX 1024

/* Attributes of a launch that its twin is launched with; there are fewer kinds of them. */
#define PLAN_ATTRIBUTES_MAX 32

struct plan {
	uint64_t n_blocks; /* of the virtual grid */
	uint32_t n_workers;
};

/*
 * Workers that fill @set_sms SMs of a GPU with @gpu_sms, where @occupancy blocks of the twin fit on
 * one SM. All arguments at least 1. @n_workers_max: what the control block has slots for.
 * Return: 0; -EINVAL: the grid is not one that a driver would take; -E2BIG: it is larger than
 * TWIN_BLOCKS_MAX.
 */
int plan_make(struct plan *ret, const unsigned grid[3], unsigned set_sms, unsigned gpu_sms,
	      unsigned occupancy, unsigned n_workers_max);

/* The most that plan_make() can ask for on a GPU: what control blocks are made for. */
unsigned plan_workers_max(unsigned gpu_sms, unsigned blocks_per_sm);

/* May a launch with these attributes run as a twin? NULL is a launch without any. */
bool plan_attributes_allow(const CUlaunchConfig *config);

/* Those of the attributes, which plan_attributes_allow(), that the twin is launched with too: all
 * but leave to start early. @ret has room for PLAN_ATTRIBUTES_MAX. Return: how many. */
unsigned plan_attributes(const CUlaunchConfig *config, CUlaunchAttribute *ret);

/* May a launch like this run as @twin at all? Shape and parameters only. */
bool plan_launch_allows(const struct twin_kernel *twin, const struct launch *l);

/*
 * The twin's kernelParams, for a launch that plan_launch_allows(): pointers to the original's
 * parameters, wherever the program keeps them, then one to @arg. @params has room for
 * PLAN_PARAMS_MAX + 1.
 */
void plan_params(const struct twin_kernel *twin, const struct launch *l, struct twin_arg *arg,
		 void **params);
