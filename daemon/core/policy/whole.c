/*
 * whole.c: the policies without spatial multitasking: one job at a time on a GPU, on all the
 * SMs that its limit allows. They differ in who goes first and in where a job may go. The last
 * three can also give what remains of a GPU (params.packing).
 *
 *  fcfs       any idle GPU, in order of arrival (2.5.5)
 *  rm         any idle GPU, shortest period first (2.5.5)
 *  load-dist  any idle GPU, as params.queue says (3.4.3: an idle GPU first, most SMs first)
 *  bcf, lcf   the GPU of the task's home, as params.queue says; load concentration (3.6)
 */
#include "daemon/core/partition.h"
#include "daemon/core/policy.h"

struct rule {
	policy_before_fn before;
	bool at_home;  /* tasks stay where sched_distribute() put them */
	bool in_order; /* of waiting: who comes first in the walk goes first */
	bool may_pack; /* params.packing counts */
};

static bool may_use(const struct sched *s, const struct rule *rule, const struct sched_job *job,
		    size_t gpu) {
	const struct sched_task *task = sched_task(s, job->task);

	if (rule->at_home && job->gpu_wanted < 0 && task && task->n_gpus > 0 && task->home >= 0) {
		return task_home(task, -1, job->gpus) == gpu;
	}
	return policy_may_use(s, job, gpu);
}

static bool is_idle(const struct sched *s, size_t gpu) {
	return smset_count(&sched_gpu(s, gpu)->free) == sched_gpu(s, gpu)->n_sms;
}

/* Beside other jobs, if the parameters say so. */
static bool packs(const struct sched *s, const struct rule *rule) {
	return rule->may_pack && sched_get_params(s)->packing == SCHED_PACKING_REMAINING;
}

/* How many SMs @job would have there now; 0: it can't start. */
static unsigned offer(const struct sched *s, const struct rule *rule, const struct sched_job *job,
		      size_t gpu) {
	const struct sched_task *task = sched_task(s, job->task);
	unsigned n;

	if (!may_use(s, rule, job, gpu) || (!packs(s, rule) && !is_idle(s, gpu)) ||
	    policy_free_slot(s, gpu) < 0 || !policy_may_share(s, gpu, job)) {
		return 0;
	}
	n = policy_offer(s, gpu, job);
	if (packs(s, rule) && job->divisible && task && task->profiles[gpu] &&
	    task->m_opt[gpu] < n) {
		n = task->m_opt[gpu];
	}
	return n;
}

/* Where @job can start with most SMs left over for it, or -1: of those that run nothing, where GPUs
 * are given whole, the biggest. */
static int find_gpu(const struct sched *s, const struct rule *rule, const struct sched_job *job) {
	unsigned most = 0;
	int found = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		unsigned n = policy_offer(s, k, job);

		if (n > most && offer(s, rule, job, k) > 0) {
			most = n;
			found = (int)k;
		}
	}
	return found;
}

/* The most jobs that can start now. */
static size_t count_room(const struct sched *s, const struct rule *rule) {
	size_t n = 0;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		n += packs(s, rule) ? sched_slots(sched_get_params(s), &sched_gpu(s, k)->model)
				    : is_idle(s, k);
	}
	return n;
}

/* The GPUs that the job could have. */
static void explain_places(struct sched *s, const struct rule *rule, sched_job_id id, nsec_t now) {
	const struct sched_job *job = sched_job(s, id);

	explain_begin(policy_explain(s), job->order);
	explain_because(policy_explain(s), EXPLAIN_START_NEXT);
	for (size_t k = 0; policy_explain(s) && k < sched_n_gpus(s); k++) {
		unsigned n = offer(s, rule, job, k);

		if (n > 0) {
			policy_try_place(s, id, k, n, now);
		}
	}
}

/* One walk over the waiting jobs for each that may start. */
static void decide(struct sched *s, const struct rule *rule, nsec_t now,
		   struct sched_actions *actions) {
	for (size_t n = count_room(s, rule); n > 0; n--) {
		sched_job_id first = SCHED_JOB_NONE;
		struct waiting_walk walk;
		int place = -1;

		for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
		     id = waiting_next(&walk)) {
			const struct sched_job *job = sched_job(s, id);
			int gpu = -1;

			if (first == SCHED_JOB_NONE || rule->before(s, job, sched_job(s, first))) {
				gpu = find_gpu(s, rule, job);
			}
			if (gpu >= 0) {
				first = id;
				place = gpu;
				if (rule->in_order) {
					break;
				}
			}
		}
		if (first == SCHED_JOB_NONE) {
			return;
		}
		explain_places(s, rule, first, now);
		policy_start(s, first, (size_t)place, (unsigned)policy_free_slot(s, (size_t)place),
			     offer(s, rule, sched_job(s, first), (size_t)place), now, actions);
	}
}

void policy_start_whole(struct sched *s, policy_before_fn before, nsec_t now,
			struct sched_actions *actions) {
	decide(s, &(struct rule){before, false, false, false}, now, actions);
}

/* The order in which they wait. */
static bool waits_before(const struct sched *s, const struct sched_job *a,
			 const struct sched_job *b) {
	(void)s;
	(void)a;
	(void)b;
	return false; /* what comes first in the walk has come first */
}

static nsec_t period_of(const struct sched *s, const struct sched_job *job) {
	const struct sched_task *task = sched_task(s, job->task);

	return task && task->period ? task->period : UINT64_MAX;
}

static bool period_before(const struct sched *s, const struct sched_job *a,
			  const struct sched_job *b) {
	nsec_t x = period_of(s, a), y = period_of(s, b);

	return x != y ? x < y : a->order < b->order;
}

static void decide_fcfs(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct rule rule = {waits_before, false, true, false};

	decide(s, &rule, now, actions);
}

static void decide_rm(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct rule rule = {period_before, false, false, false};

	decide(s, &rule, now, actions);
}

static void decide_queue(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct rule rule = {policy_goes_before, false, false, true};

	decide(s, &rule, now, actions);
}

static void decide_at_home(struct sched *s, nsec_t now, struct sched_actions *actions) {
	static const struct rule rule = {policy_goes_before, true, false, true};

	decide(s, &rule, now, actions);
}

static void distribute_bcf(struct sched *s) {
	partition_by_size(s, PARTITION_BIGGEST);
}

static void distribute_lcf(struct sched *s) {
	partition_by_size(s, PARTITION_LITTLEST);
}

const struct sched_policy policy_fcfs = {
	.name = "fcfs",
	.summary = "first come, first served: the whole GPU to one job at a time",
	.decide = decide_fcfs,
	.serial = SCHED_SERIAL_ANY,
};

const struct sched_policy policy_rm = {
	.name = "rm",
	.summary = "rate monotonic: the whole GPU to the ready job of the shortest period",
	.decide = decide_rm,
	.serial = SCHED_SERIAL_PERIOD,
};

#define PARAMS                                                     \
	(SCHED_PARAMS_SLOTS | SCHED_PARAM_BIT(SCHED_PARAM_QUEUE) | \
	 SCHED_PARAM_BIT(SCHED_PARAM_PACKING))

const struct sched_policy policy_load_dist = {
	.name = "load-dist",
	.summary = "load distribution: the most urgent job to the biggest idle GPU, whole",
	.decide = decide_queue,
	.serial = SCHED_SERIAL_ANY,
	.places = true,
	.params = PARAMS,
};

const struct sched_policy policy_bcf = {
	.name = "bcf",
	.summary = "load concentration: largest task first, to the biggest GPU with capacity",
	.plans = true,
	.decide = decide_at_home,
	.serial = SCHED_SERIAL_ANY,
	.distribute = distribute_bcf,
	.places = true,
	.params = PARAMS | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};

const struct sched_policy policy_lcf = {
	.name = "lcf",
	.summary = "load concentration: largest task first, to the littlest GPU with capacity",
	.plans = true,
	.decide = decide_at_home,
	.serial = SCHED_SERIAL_ANY,
	.distribute = distribute_lcf,
	.places = true,
	.params = PARAMS | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};
