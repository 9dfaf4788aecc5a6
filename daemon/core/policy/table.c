/*
 * table.c: the table of policies. A new one is added here and nowhere else.
 */
#include "daemon/core/policy.h"

#include <string.h>

/* clang-format off */
static const struct sched_policy *const policies[] = {
	&policy_even,
	&policy_fcfs,
	&policy_rm,
	&policy_stgm,
	&policy_load_dist,
	&policy_bcf,
	&policy_lcf,
	&policy_sbeet,
	&policy_bfd_sbeet,
	&policy_ffd_sbeet,
	&policy_wfd_sbeet,
	&policy_sbeet_mg,
	&policy_sbeet_mg_offline,
	&policy_lookahead,
	&policy_fixed,
	NULL,
};
/* clang-format on */

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
