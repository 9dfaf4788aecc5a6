/*
 * plan-cases.h: random scenarios for `sbeetctl plan`, and whether what was said of them holds.
 */
#pragma once

#include "client/sim/planning.h"

struct plan_case {
	struct scenario scenario; /* owned */
	struct planning planning; /* owned; policy and params are set */
	nsec_t hyperperiod, offset;
};

/*
 * The same for the same @seed: two to seven tasks on one or two GPUs, whose sum of G(M) / T on the
 * first GPU is @demand_permille for each GPU, with copies, offsets and deadlines; policies and
 * parameters in turn.
 */
void plan_case_make(struct plan_case *ret, uint64_t seed, unsigned demand_permille);
void plan_case_deinit(struct plan_case *c);

/* Jobs late in so many hyperperiods after the largest offset, as planned. */
uint64_t plan_case_simulate(const struct plan_case *c, unsigned hyperperiods);

/* The same when things are not as planned, by @seed: jobs take less than their longest times, first
 * releases are others, and each program stays on one of its GPUs, or all move. */
uint64_t plan_case_vary(struct plan_case *c, uint64_t seed, unsigned hyperperiods);

/* What is wrong with the schedule that plan_table_write() makes of the case, which is in time by
 * it: NULL: nothing. Looks at the file alone, and at what the tasks are. */
const char *plan_case_check_table(const struct plan_case *c, const char *path);
