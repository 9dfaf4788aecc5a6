/*
 * steer.c: where programs run is told them beforehand (daemon/session/steer.h), and nobody asks.
 *
 * What is left to decide are the jobs of those that do ask: programs whose library reads no terms,
 * and all programs on a GPU that is not shared through MPS. Those are lookahead's.
 */
#include "daemon/core/policy.h"

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	policy_lookahead.decide(s, now, actions);
}

const struct sched_policy policy_steer = {
	.name = "steer",
	.summary =
		"under MPS nobody waits: tasks with a deadline are kept apart from the others; "
		"else as lookahead",
	.decide = decide,
	.divides = true,
	.places = true,
	.steers = true,
	.overdue = SCHED_OVERDUE_ANYWHERE,
	.params = SCHED_PARAMS_LOOKAHEAD | SCHED_PARAM_BIT(SCHED_PARAM_YIELD) |
		  SCHED_PARAM_BIT(SCHED_PARAM_GUARD) | SCHED_PARAM_BIT(SCHED_PARAM_DEPENDENT),
};
