/*
 * trial.h: one launch of a kernel, as it is and as its twin, on the machine of machine.h: random
 * grids, SM sets, placement and interleaving; stopped in the middle and launched again; with the SM
 * set changing under it. Memory, variables of the module and printed text must be the same, every
 * virtual block must have run exactly once, and the control block must be ready for the next
 * launch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/ptx/transform.h"
#include "tests/func/twin/sample.h"

/* The kernel of a transformed module; NULL if there is none. */
const struct twin_kernel *trial_find(const struct transform *tr, const char *name);

/* Runs @s, of the module @ptx whose twins are @tr, as @seed says and @first repeats. Prints what
 * went wrong. Return: did it go well? */
bool trial_run(const struct sample *s, const char *ptx, const struct transform *tr, uint64_t seed,
	       uint64_t first);
