/* simulated.c: see simulated.h. */
#include "client/sim/simulated.h"

#include <string.h>

#include "daemon/sim/grants.h"
#include "daemon/sim/shared.h"

static const struct mps {
	struct sched_policy policy;
	enum sim_terms terms;
	unsigned cap_percent; /* 0: as the parameter says */
} mps[] = {
	{{.name = "mps", .summary = "MPS alone: first come, first served"}, SIM_TERMS_SAME, 0},
	{{.name = "mps-25", .summary = "MPS, each program on a quarter of the SMs at most"},
	 SIM_TERMS_SAME,
	 25},
	{{.name = "mps-33", .summary = "MPS, each program on a third of the SMs at most"},
	 SIM_TERMS_SAME,
	 33},
	{{.name = "mps-50", .summary = "MPS, each program on half of the SMs at most"},
	 SIM_TERMS_SAME,
	 50},
	{{.name = "mps-75", .summary = "MPS, each program on three quarters of the SMs at most"},
	 SIM_TERMS_SAME,
	 75},
	{{.name = "mps-level", .summary = "MPS, stream priorities by deadline"},
	 SIM_TERMS_LEVELS,
	 0},
	{{.name = "share",
	  .summary = "steer without profiles: others get what the deadlines leave, as measured"},
	 SIM_TERMS_SHARED,
	 0},
};
#define N_MPS (sizeof(mps) / sizeof(mps[0]))

const struct sched_policy *simulated_mps(size_t index) {
	return index < N_MPS ? &mps[index].policy : NULL;
}

/* NULL: it is one of sbeetd's. */
static const struct mps *mps_of(const struct sched_policy *policy) {
	for (size_t i = 0; i < N_MPS; i++) {
		if (policy == &mps[i].policy) {
			return &mps[i];
		}
	}
	return NULL;
}

const struct sched_policy *simulated_find(const char *name) {
	for (size_t i = 0; i < N_MPS; i++) {
		if (strcmp(mps[i].policy.name, name) == 0) {
			return &mps[i].policy;
		}
	}
	return sched_policy_find(name);
}

bool simulated_shares(const struct sched_policy *policy) {
	return policy->steers || mps_of(policy);
}

void simulated_setup(const struct sched_policy *policy, const struct params *params,
		     struct sim_setup *ret) {
	const struct mps *m = mps_of(policy);

	ret->arbiter = simulated_shares(policy) ? &sim_shared : &sim_grants;
	ret->policy = policy;
	ret->terms = m ? m->terms : SIM_TERMS_PLANNED;
	ret->cap_percent = !m || m->terms == SIM_TERMS_SHARED ? 0
			   : m->cap_percent		      ? m->cap_percent
							      : params->mps_percent;
	ret->params = params->sched;
	ret->exec = params->exec;
	ret->exec_share_permille = params->exec_share_permille;
	ret->overhead = params->overhead;
	ret->sequential = params->sequential;
}
