/* ready.c: see ready.h. */
#include "daemon/core/ready.h"

/* Between two decisions that only time has brought about. */
#define LOOK_MIN (1 * NSEC_PER_MSEC)

/* The GPUs that could start something now. */
static void find_open(const struct sched *s, bool ret[static SCHED_GPUS_MAX]) {
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		ret[k] = policy_free_slot(s, k) >= 0;
	}
}

static bool can_start(const struct sched *s, const bool *open, const struct sched_task *task,
		      const struct sched_job *job) {
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (open[k] && task->profiles[k] && sched_may_run(job->gpu_wanted, job->gpus, k) &&
		    policy_offer(s, k, job) > 0 && policy_may_share(s, k, job)) {
			return true;
		}
	}
	return false;
}

/* The least time from its start to its end on any GPU that the job may use. */
static nsec_t least_time(const struct sched *s, const struct sched_task *task,
			 const struct sched_job *job) {
	nsec_t least = UINT64_MAX;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (task->profiles[k] && sched_may_run(job->gpu_wanted, job->gpus, k) &&
		    task->fastest[k] < least) {
			least = task->fastest[k];
		}
	}
	return least + task->overhead;
}

/* When a job that can't be in time has to be over: see ready.h. @least: of its time. */
static nsec_t next_due(const struct sched_task *task, const struct sched_job *job, nsec_t least,
		       nsec_t now) {
	nsec_t unit = task->period > task->deadline ? task->period : task->deadline;
	nsec_t late = now + 2 * least - job->deadline; /* more than @least */

	return unit ? job->deadline + (late + unit - 1) / unit * unit - least : now + least;
}

static bool order_before(const struct sched *s, const struct ready_job *a,
			 const struct ready_job *b) {
	if (a->late != b->late) {
		return b->late;
	}
	if (sched_get_params(s)->queue == SCHED_QUEUE_EDF && a->job.deadline != b->job.deadline) {
		return a->job.deadline - 1 < b->job.deadline - 1; /* none: after all others */
	}
	return policy_goes_before(s, sched_job(s, a->id), sched_job(s, b->id));
}

static struct ready_job describe(const struct sched *s, sched_job_id id, nsec_t now) {
	const struct sched_params *params = sched_get_params(s);
	const struct sched_job *job = sched_job(s, id);
	const struct sched_task *task = sched_task(s, job->task);
	nsec_t least = least_time(s, task, job);
	bool hopeless = job->deadline && now + least > job->deadline;
	bool dropped =
		params->late == SCHED_LATE_DROP && job->deadline && now >= job->deadline;
	struct ready_job ready = {
		.id = id,
		.hopeless = hopeless,
		.job = {.task = task,
			.gpu_wanted = job->gpu_wanted,
			.gpus = job->gpus,
			.divisible = job->divisible,
			.apart = job->apart,
			.owner = job->owner,
			.release = now,
			.deadline = job->deadline},
	};

	if (dropped || (hopeless && params->skip_hopeless)) {
		ready.late = true;
	} else if (hopeless && params->reading == SCHED_READING_FIT) {
		ready.job.deadline = next_due(task, job, least, now);
	}
	return ready;
}

/* How long the job may wait and still be over in time, or if it can't, at the end of another
 * period. */
static nsec_t time_left(const struct sched_task *task, const struct sched_job *job, nsec_t least,
			nsec_t now) {
	nsec_t due = job->deadline;

	if (!due) {
		return task->period ? task->period : least;
	}
	if (now + least > due) {
		due = next_due(task, job, least, now);
	}
	return due > now + least ? due - now - least : 0;
}

void ready_hold_back(struct sched *s, sched_job_id id, nsec_t now) {
	const struct sched_job *job = sched_job(s, id);
	const struct sched_task *task = sched_task(s, job->task);
	nsec_t left = time_left(task, job, least_time(s, task, job), now);
	nsec_t release = task_table_next_release(policy_tasks(s)), wait = left;

	if (release > now && release - now < wait) {
		wait = release - now;
	} else if (release > 0 && release <= now) {
		wait = left / 8;
	}
	policy_look_at(s, now + (wait > LOOK_MIN ? wait : LOOK_MIN));
}

void ready_collect(struct ready *ret, struct sched *s, nsec_t now) {
	bool open[SCHED_GPUS_MAX];
	struct waiting_walk walk;

	ret->n = ret->n_timely = 0;
	find_open(s, open);
	for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);
		struct ready_job new;
		size_t i = ret->n;

		if (!task || !can_start(s, open, task, job)) {
			continue;
		}
		new = describe(s, id, now);
		if (i == READY_MAX) {
			if (!order_before(s, &new, &ret->list[i - 1])) {
				continue;
			}
			i--;
			ret->n_timely -= !ret->list[i].late;
		}
		ret->n = i + 1;
		ret->n_timely += !new.late;
		for (; i > 0 && order_before(s, &new, &ret->list[i - 1]); i--) {
			ret->list[i] = ret->list[i - 1];
		}
		ret->list[i] = new;
	}
}

size_t ready_coming(struct sched *s, nsec_t now, nsec_t until, struct timeline_job *ret,
		    size_t max) {
	struct task_coming coming[TASK_COMING_MAX];
	size_t n = task_table_coming(policy_tasks(s), now, until, coming, max);
	size_t n_known = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sched_task *task = sched_task(s, coming[i].task);

		if (task->n_gpus > 0) {
			ret[n_known++] = (struct timeline_job){
				.task = task,
				.gpu_wanted = task->gpu_wanted,
				.gpus = task->gpus,
				.divisible = task->divisible,
				.apart = task->apart,
				.owner = task->owner,
				.release = coming[i].release,
				.deadline = coming[i].deadline,
			};
		}
	}
	return n_known;
}
