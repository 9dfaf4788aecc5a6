/*
 * grants.h: the arbiter that drives the daemon's own scheduler (sched.h): each job runs on SMs that
 * are granted to it alone, so no other job changes how long it takes.
 *
 * A granted job moves its task's data if that last ran on another GPU (migration cost), copies in,
 * runs its kernel, copies out; copies of different jobs do not slow each other down. It holds its
 * SMs until the last copy is over, or, with free_at_kernel_end, until the kernel is over. An
 * overhead comes before all that: what opening and closing a job takes on a real machine, and no
 * profile contains.
 *
 * A policy may stop a job (sched_policy.stops), at once and wherever it is; the rest of it is done
 * when it is granted again. params.epsilon is what it takes to hand the GPU on, during which it
 * does nothing: under a policy by segments the job's own call at its begin and at its end, else
 * each grant.
 */
#pragma once

#include "daemon/sim/sim.h"

/* It alone reads the setup's policy, params, overhead, power, clock and n_explain. */
extern const struct sim_arbiter sim_grants;
