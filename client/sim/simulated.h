/*
 * simulated.h: what can be simulated by name: sbeetd's policies, and what programs get that share a
 * GPU without sbeet, under MPS.
 */
#pragma once

#include "client/sim/params.h"

/* mps, share and their like: no policies of sbeetd's scheduler, of which only name and summary are
 * set. NULL after the last one. */
const struct sched_policy *simulated_mps(size_t index);

/* One of these or one of sbeetd's; NULL if there is none of this name. */
const struct sched_policy *simulated_find(const char *name);

/* Whether programs don't ask under it, so there are no decisions to explain. */
bool simulated_shares(const struct sched_policy *policy);

/* Fills in all of @ret that follows from @policy and @params. */
void simulated_setup(const struct sched_policy *policy, const struct params *params,
		     struct sim_setup *ret);
