/*
 * stgm.c: spatio-temporal GPU management (2.3), with the test that 2.5.5 puts in place of
 * the original's response-time analysis: a GPU whose tasks' utilisations U_i sum up to more than 1
 * falls back to rm, where each job gets all SMs.
 *
 * Else, offline, each task starts with the fewest SMs with which it can meet its deadline, and as
 * long as the U_i(m_i) sum up to more than 1, the task whose utilisation falls most gets a step
 * more. At run time jobs start in rate-monotonic order, each where its number of SMs is free. More
 * than one GPU (the original has one): tasks are spread by worst fit.
 */
#include "daemon/core/partition.h"
#include "daemon/core/policy.h"

static uint64_t utilisation(const struct sched_task *task) {
	return partition_utilisation_at(task, (size_t)task->home, task->n_sms);
}

static unsigned next_count(const struct sched_gpu_model *model, unsigned m) {
	return m + model->step < model->limit ? m + model->step : model->limit;
}

/* The task of GPU @gpu that gains most by one step more; NULL if none gains anything. @ret_sum: of
 * all their utilisations. */
static struct sched_task *find_gainer(struct sched *s, size_t gpu, uint64_t *ret_sum) {
	const struct sched_gpu_model *model = &sched_gpu(s, gpu)->model;
	struct task_table *tasks = policy_tasks(s);
	struct sched_task *best = NULL;
	uint64_t most = 0;

	*ret_sum = 0;
	for (sched_task_id id = 0; id < tasks->n; id++) {
		struct sched_task *task = task_table_get(tasks, id);
		uint64_t now, more;

		if (!task || task->home != (int)gpu) {
			continue;
		}
		now = utilisation(task);
		more = partition_utilisation_at(task, gpu, next_count(model, task->n_sms));
		*ret_sum += now;
		if (now > more && now - more > most) {
			most = now - more;
			best = task;
		}
	}
	return best;
}

/* The fewest SMs with which the task is in time alone, or all. */
static unsigned least_sms(const struct sched_task *task, const struct sched_gpu_model *model) {
	const struct profile_table *p = task->profiles[task->home];
	unsigned m = task_least_sms(task, model, (size_t)task->home);

	m = m > model->step ? m : sched_whole_steps(model, model->step);
	while (m < model->limit && profile_total(p, m) > task->deadline) {
		m = next_count(model, m);
	}
	return m;
}

/* Sets n_sms of the tasks of one GPU. */
static void share_out(struct sched *s, size_t gpu) {
	const struct sched_gpu_model *model = &sched_gpu(s, gpu)->model;
	struct task_table *tasks = policy_tasks(s);
	struct sched_task *gainer;
	uint64_t total = 0, sum;

	for (sched_task_id id = 0; id < tasks->n; id++) {
		struct sched_task *task = task_table_get(tasks, id);

		if (task && task->home == (int)gpu) {
			task->n_sms = (uint16_t)least_sms(task, model);
			total += partition_utilisation_mean(s, task, gpu);
		}
	}
	for (sched_task_id id = 0; total > PARTITION_WHOLE && id < tasks->n; id++) {
		struct sched_task *task = task_table_get(tasks, id);

		if (task && task->home == (int)gpu) {
			task->n_sms = (uint16_t)model->limit;
		}
	}
	while (total <= PARTITION_WHOLE) {
		gainer = find_gainer(s, gpu, &sum);
		if (sum <= PARTITION_WHOLE || !gainer) {
			break;
		}
		gainer->n_sms = (uint16_t)next_count(model, gainer->n_sms);
	}
}

static void distribute(struct sched *s) {
	partition_by_size(s, PARTITION_WORST_FIT);
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		share_out(s, k);
	}
}

/* The GPU on which the job finds its SMs now, or -1. @ret_n: how many. */
static int find_place(const struct sched *s, const struct sched_job *job, unsigned *ret_n) {
	const struct sched_task *task = sched_task(s, job->task);
	int gpu = (int)task_home(task, job->gpu_wanted, job->gpus);
	unsigned n;

	if (policy_free_slot(s, (size_t)gpu) < 0 || !policy_may_share(s, (size_t)gpu, job)) {
		return -1;
	}
	n = sched_gpu(s, (size_t)gpu)->model.limit;
	if (!job->divisible) {
		n = sched_gpu(s, (size_t)gpu)->n_sms;
	} else if (gpu == task->home && task->n_sms > 0) {
		n = task->n_sms;
	}
	*ret_n = n;
	return n <= policy_offer(s, (size_t)gpu, job) ? gpu : -1;
}

static bool first_of(const struct sched_task *a, const struct sched_job *x,
		     const struct sched_task *b, const struct sched_job *y) {
	nsec_t s = a->period ? a->period : UINT64_MAX, t = b->period ? b->period : UINT64_MAX;

	return s != t ? s < t : x->order < y->order;
}

/* The first job in rate-monotonic order that can start, until none can. */
static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	bool wanted[SCHED_GPUS_MAX];

	for (;;) {
		sched_job_id first = SCHED_JOB_NONE;
		struct waiting_walk walk;
		unsigned n_sms = 0;
		int gpu = -1;

		for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
		     id = waiting_next(&walk)) {
			const struct sched_job *job = sched_job(s, id), *best = sched_job(s, first);
			const struct sched_task *task = sched_task(s, job->task);
			unsigned n;
			int k;

			if (!task || task->n_gpus == 0 ||
			    (best && !first_of(task, job, sched_task(s, best->task), best))) {
				continue;
			}
			k = find_place(s, job, &n);
			if (k >= 0) {
				first = id;
				gpu = k;
				n_sms = n;
			}
		}
		if (first == SCHED_JOB_NONE) {
			break;
		}
		policy_start(s, first, (size_t)gpu, (unsigned)policy_free_slot(s, (size_t)gpu),
			     n_sms, now, actions);
	}
	policy_wanted(s, wanted);
	policy_fill(s, wanted, now, actions);
}

const struct sched_policy policy_stgm = {
	.name = "stgm",
	.summary = "a fixed number of SMs for each task, as few as utilisation allows",
	.plans = true,
	.decide = decide,
	.distribute = distribute,
	.places = true,
	.jobs_per_gpu = SCHED_SLOTS_MAX, /* "does not limit the number of jobs" (2.5.5) */
	.params = SCHED_PARAMS_SLOTS | SCHED_PARAM_BIT(SCHED_PARAM_REFERENCE_SMS),
};
