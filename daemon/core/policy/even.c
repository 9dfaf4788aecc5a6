/*
 * even.c: two slots a GPU, half of the SMs each; first come, first served. A job that wants
 * more than half (min_sms), or was never measured with so few, has the GPU for itself. So has a
 * program that was alone there for SCHED_ALONE short jobs, until another job comes: that one waits
 * for one job at most, and then both have their half.
 *
 * The first job in arrival order that a GPU can't take now closes that GPU for all later ones until
 * it has run. So a job that needs the whole GPU, or one of another owner on an exclusive GPU, waits
 * for no more than what runs already, and is never overtaken by a stream of jobs that would fit.
 */
#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

#define SLOTS 2

/* The SMs that are a slot's, within the GPU's limit. One SM can't be split: then there is slot 0
 * alone. */
static struct smset slot_sms(const struct sched_gpu *gpu, unsigned slot) {
	const struct sched_gpu_model *model = &gpu->model;
	unsigned low = sched_whole_steps(model, model->limit / 2);
	struct smset rest;

	if (slot == 0) {
		return smset_range(0, low > 0 ? low : model->limit);
	}
	rest = smset_range(low, model->limit - low);
	return low > 0 ? sched_pick_sms(model, &rest, sched_whole_steps(model, model->limit - low),
					false)
		       : SMSET_EMPTY;
}

/* The same for a job, which may want more than that: then it is alone. */
static struct smset job_sms(const struct sched *s, size_t index, unsigned slot,
			    const struct sched_job *job) {
	const struct sched_gpu *gpu = sched_gpu(s, index);
	struct smset sms = slot_sms(gpu, slot);

	if (policy_least(s, index, job) <= smset_count(&sms)) {
		return sms;
	}
	return slot == 0 ? smset_range(0, gpu->model.limit) : SMSET_EMPTY;
}

/* Nobody else has wanted the GPU for a while. */
static bool is_alone(const struct sched_gpu *gpu, const struct sched_job *job) {
	return gpu->last_owner == job->owner && gpu->n_alone == SCHED_ALONE &&
	       smset_count(&gpu->free) == gpu->n_sms;
}

/* Where on this GPU the job could start now. */
static bool find_place(const struct sched *s, size_t index, const struct sched_job *job,
		       unsigned *ret_slot, struct smset *ret_sms) {
	const struct sched_gpu *gpu = sched_gpu(s, index);

	if (!policy_may_share(s, index, job)) {
		return false;
	}
	if (!job->divisible) {
		if (smset_count(&gpu->free) < gpu->n_sms) {
			return false;
		}
		*ret_slot = 0;
		*ret_sms = gpu->free;
		return true;
	}
	if (is_alone(gpu, job)) {
		*ret_slot = 0;
		*ret_sms = smset_range(0, gpu->model.limit);
		return true;
	}
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		struct smset sms = job_sms(s, index, slot, job);

		if (gpu->slots[slot] == SCHED_JOB_NONE && !smset_empty(&sms) &&
		    smset_within(&sms, &gpu->free)) {
			*ret_slot = slot;
			*ret_sms = sms;
			return true;
		}
	}
	return false;
}

/*
 * The open GPU for @job: the one with most free SMs among those that can take it now (then
 * @ret_slot and @ret_sms are set), else among those that will. Return: whether it can start;
 * @ret_gpu is -1 if no GPU that it may use is open.
 */
static bool find_gpu(const struct sched *s, const bool *open, const struct sched_job *job,
		     int *ret_gpu, unsigned *ret_slot, struct smset *ret_sms) {
	bool found = false;
	unsigned most = 0;

	*ret_gpu = -1;
	for (size_t i = 0; i < sched_n_gpus(s); i++) {
		unsigned slot, n_free;
		struct smset sms;
		bool now;

		if (!open[i] || !policy_may_use(s, job, i)) {
			continue;
		}
		n_free = smset_count(&sched_gpu(s, i)->free);
		now = find_place(s, i, job, &slot, &sms);
		if (*ret_gpu >= 0 && (now < found || (now == found && n_free <= most))) {
			continue;
		}
		found = now;
		most = n_free;
		*ret_gpu = (int)i;
		if (now) {
			*ret_slot = slot;
			*ret_sms = sms;
		}
	}
	return found;
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	bool open[SCHED_GPUS_MAX];
	struct waiting_walk walk;
	sched_job_id id;
	size_t n_open = 0;

	for (size_t i = 0; i < sched_n_gpus(s); i++) {
		open[i] = !smset_empty(&sched_gpu(s, i)->free) && sched_any_waits(s, (int)i);
		n_open += open[i];
	}
	for (id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE && n_open > 0;
	     id = waiting_next(&walk)) {
		unsigned slot = 0;
		struct smset sms;
		int gpu;

		if (find_gpu(s, open, sched_job(s, id), &gpu, &slot, &sms)) {
			policy_grant(s, id, (size_t)gpu, slot, &sms, now, actions);
			if (!smset_empty(&sched_gpu(s, (size_t)gpu)->free) &&
			    sched_any_waits(s, gpu)) {
				continue;
			}
		}
		if (gpu >= 0) {
			open[gpu] = false;
			n_open--;
		}
	}
}

const struct sched_policy policy_even = {
	.name = "even",
	.summary =
		"two jobs at a time on each GPU, half of the SMs each, in order of arrival; all "
		"for a lone program",
	.decide = decide,
	.counts_alone = true,
};
