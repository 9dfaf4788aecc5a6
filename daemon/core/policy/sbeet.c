/*
 * sbeet.c: sBEET (Alg. 1-3), each job on the GPU it belongs to. The policies of this file
 * differ only in how tasks are given their GPUs before anything runs:
 *
 *  sbeet            the energy-preferred GPU of each task (Definition 11); with one GPU, chapter 2
 *  sbeet-mg-offline Alg. 4 (3.6: "sBEET-mg Offline Only")
 *  bfd-, ffd-, wfd-sbeet  bin packing, largest task first (3.6.1)
 */
#include "daemon/core/sbeet.h"
#include "daemon/core/partition.h"

static bool home_is_full(const struct sbeet *b, size_t index) {
	return sbeet_full(b, sbeet_home(&b->ready->list[index].job));
}

static struct sbeet_choice allocate_at_home(const struct sbeet *b, size_t index) {
	return sbeet_allocate(b, index, sbeet_home(&b->ready->list[index].job));
}

/* Alg. 1: through the ready queue until no SM is free or all were visited. */
static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct sbeet_rules rules = {home_is_full, allocate_at_home, sbeet_reason};

	sbeet_decide(s, now, &rules, actions);
}

static void distribute_bfd(struct sched *s) {
	partition_by_size(s, PARTITION_BEST_FIT);
}

static void distribute_ffd(struct sched *s) {
	partition_by_size(s, PARTITION_FIRST_FIT);
}

static void distribute_wfd(struct sched *s) {
	partition_by_size(s, PARTITION_WORST_FIT);
}

const struct sched_policy policy_sbeet = {
	.name = "sbeet",
	.summary = "balances energy and deadlines on the GPU that each task prefers",
	.plans = true,
	.decide = decide,
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_AT_HOME,
	.params = SCHED_PARAMS_SBEET,
};

const struct sched_policy policy_bfd_sbeet = {
	.name = "bfd-sbeet",
	.summary = "sbeet on each GPU, tasks packed by best fit decreasing",
	.plans = true,
	.decide = decide,
	.distribute = distribute_bfd,
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_AT_HOME,
	.params = SCHED_PARAMS_SBEET | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};

const struct sched_policy policy_ffd_sbeet = {
	.name = "ffd-sbeet",
	.summary = "sbeet on each GPU, tasks packed by first fit decreasing",
	.plans = true,
	.decide = decide,
	.distribute = distribute_ffd,
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_AT_HOME,
	.params = SCHED_PARAMS_SBEET | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};

const struct sched_policy policy_wfd_sbeet = {
	.name = "wfd-sbeet",
	.summary = "sbeet on each GPU, tasks packed by worst fit decreasing",
	.plans = true,
	.decide = decide,
	.distribute = distribute_wfd,
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_AT_HOME,
	.params = SCHED_PARAMS_SBEET | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};

const struct sched_policy policy_sbeet_mg_offline = {
	.name = "sbeet-mg-offline",
	.summary = "sbeet on each GPU, tasks distributed by energy and utilisation",
	.plans = true,
	.decide = decide,
	.distribute = partition_by_energy,
	.priority = "which task chooses its GPU first",
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_AT_HOME,
	.params = SCHED_PARAMS_SBEET,
};
