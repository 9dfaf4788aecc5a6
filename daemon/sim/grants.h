/*
 * grants.h: the arbiter that is the daemon's own scheduler (sched.h): each job runs on SMs granted
 * to it alone, so nothing that other jobs do changes how long it takes.
 */
#pragma once

#include "daemon/sim/sim.h"

/* Of the setup it reads policy, params, overhead, power, clock and n_explain. */
extern const struct sim_arbiter sim_grants;
