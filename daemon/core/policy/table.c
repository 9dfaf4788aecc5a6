/*
 * table.c: the table of policies. A new one is a file beside this one, a line
 * in the list below, and its name in meson.build.
 */
#include "daemon/core/policy.h"

#include <string.h>

/* In the order in which they are listed. */
#define POLICIES(X)         \
	X(even)             \
	X(fcfs)             \
	X(rm)               \
	X(stgm)             \
	X(load_dist)        \
	X(bcf)              \
	X(lcf)              \
	X(sbeet)            \
	X(bfd_sbeet)        \
	X(ffd_sbeet)        \
	X(wfd_sbeet)        \
	X(sbeet_mg)         \
	X(sbeet_mg_offline) \
	X(lookahead)        \
	X(steer)            \
	X(fixed)

#define DECLARE(policy) extern const struct sched_policy policy_##policy;
#define ADDRESS(policy) &policy_##policy,

POLICIES(DECLARE)

static const struct sched_policy *const policies[] = {POLICIES(ADDRESS) NULL};

const struct sched_policy *const *sched_policies(void) {
	return policies;
}

const struct sched_policy *sched_policy_find(const char *name) {
	for (size_t i = 0; policies[i]; i++) {
		if (strcmp(policies[i]->name, name) == 0) {
			return policies[i];
		}
	}
	return NULL;
}

const struct sched_policy *sched_policy_find_live(const char *name) {
	const struct sched_policy *policy = sched_policy_find(name);

	return policy && !policy->simulated ? policy : NULL;
}
