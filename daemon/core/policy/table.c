/*
 * table.c: the table of policies, made from policies.def.
 */
#include "daemon/core/policy.h"

#include <string.h>

#define POLICY(file, name) extern const struct sched_policy policy_##name;
#include "daemon/core/policy/policies.def"
#undef POLICY

static const struct sched_policy *const policies[] = {
#define POLICY(file, name) &policy_##name,
#include "daemon/core/policy/policies.def"
#undef POLICY
	NULL,
};

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
