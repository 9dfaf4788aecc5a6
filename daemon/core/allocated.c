/* allocated.c: see allocated.h. */
#include "daemon/core/allocated.h"

#include <string.h>

#include "daemon/core/books.h"
#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

/* Group @i of the GPU's; empty beyond the last. Without groups each SM is one. */
static struct smset group_of(const struct sched_gpu_model *model, unsigned i) {
	unsigned step = model->last_group > 0 ? model->step : 1;
	unsigned last = model->last_group > 0 ? model->last_group : 1;
	unsigned first = i * step, n_sms = model->power.n_sms;

	if (first + last > n_sms) {
		return SMSET_EMPTY;
	}
	return smset_range(first, first + last == n_sms ? last : step);
}

/* Whole groups of @from, from group @i on, as long as they are at most @n SMs. @in_row: up to the
 * first that is not in @from. */
static struct smset take_groups(const struct sched_gpu_model *model, const struct smset *from,
				unsigned i, unsigned n, bool in_row) {
	struct smset taken = SMSET_EMPTY, group;

	for (; group = group_of(model, i), !smset_empty(&group); i++) {
		bool fits = smset_within(&group, from) &&
			    smset_count(&taken) + smset_count(&group) <= n;

		if (!fits && in_row) {
			break;
		}
		taken = fits ? smset_or(&taken, &group) : taken;
	}
	return taken;
}

static struct smset smallest_group(const struct sched_gpu_model *model, const struct smset *from) {
	struct smset group, smallest = SMSET_EMPTY;

	for (unsigned i = 0; group = group_of(model, i), !smset_empty(&group); i++) {
		if (smset_within(&group, from) &&
		    (smset_empty(&smallest) || smset_count(&group) < smset_count(&smallest))) {
			smallest = group;
		}
	}
	return smallest;
}

struct smset allocated_pick(const struct sched_gpu_model *model, const struct smset *from,
			    unsigned n_sms) {
	struct smset best = SMSET_EMPTY, group, some;

	for (unsigned i = 0; group = group_of(model, i), !smset_empty(&group); i++) {
		struct smset row = take_groups(model, from, i, n_sms, true);

		if (smset_count(&row) > smset_count(&best)) {
			best = row;
		}
	}
	some = take_groups(model, from, 0, n_sms, false);
	if (smset_count(&some) > smset_count(&best)) {
		best = some;
	}
	return smset_empty(&best) ? smallest_group(model, from) : best;
}

/* What the job runs on. */
static struct smset wanted(const struct sched *s, const struct sched_job *job, size_t gpu) {
	const struct sched_gpu *g = &s->gpus[gpu];
	const struct smset *own = &s->allocated[gpu][job->allocation];
	unsigned most = sched_most_sms(&g->model, job->spec.max_sms);
	struct smset sms;

	if (!job->divisible || smset_empty(own)) {
		return smset_range(0, g->n_sms);
	}
	sms = most < smset_count(own) ? sched_pick_sms(&g->model, own, most, false) : *own;
	return smset_empty(&sms) ? *own : sms;
}

static int free_slot(const struct sched_gpu *gpu) {
	for (int i = 0; i < SCHED_SLOTS_MAX; i++) {
		if (gpu->slots[i] == SCHED_JOB_NONE) {
			return i;
		}
	}
	return -1;
}

static void start(struct sched *s, sched_job_id id, size_t gpu, unsigned slot,
		  const struct smset *sms, nsec_t now, struct sched_actions *actions) {
	books_place(s, id, gpu, slot, sms, now);
	if (s->explain) {
		explain_begin(s->explain, s->jobs[id].order);
		explain_because(s->explain, EXPLAIN_START_ALLOCATED);
		books_explain_grant(s, id, now);
	}
	actions->list[actions->n++] = (struct sched_action){SCHED_ACTION_GRANT, id, SCHED_JOB_NONE};
}

/* Starts the job on one of the GPUs that it may use, or claims its SMs there: later jobs don't get
 * them. @kept: see allocated_start(). */
static void start_or_claim(struct sched *s, sched_job_id id, struct smset *claimed, uint32_t *kept,
			   nsec_t now, struct sched_actions *actions) {
	const struct sched_job *job = &s->jobs[id];

	for (size_t k = 0; k < s->n_gpus; k++) {
		const struct sched_gpu *gpu = &s->gpus[k];
		struct smset sms = wanted(s, job, k), left = smset_minus(&gpu->free, &claimed[k]);
		int slot = free_slot(gpu);

		if (gpu->drained || !sched_may_run(job->gpu_wanted, job->gpus, k)) {
			continue;
		}
		if (slot >= 0 && smset_within(&sms, &left) && policy_may_share(s, k, job)) {
			start(s, id, k, (unsigned)slot, &sms, now, actions);
			return;
		}
		/* Where one process at a time runs, it must end before others can start. */
		claimed[k] = sched_may_be_beside(gpu->sharing, job->apart, k)
				     ? smset_or(&claimed[k], &sms)
				     : smset_range(0, gpu->n_sms);
		*kept |= UINT32_C(1) << k;
	}
}

uint32_t allocated_start(struct sched *s, nsec_t now, struct sched_actions *actions) {
	struct smset claimed[SCHED_GPUS_MAX] = {0};
	bool all[SCHED_GPUS_MAX];
	uint32_t kept = 0, others = 0; /* GPUs for which jobs wait that the policy decides about */
	struct waiting_walk walk;

	if (s->waiting.n_allocated == 0) {
		return 0;
	}
	memset(all, true, sizeof(all));
	for (sched_job_id id = waiting_first(&s->waiting, s->jobs, all, &walk);
	     id != SCHED_JOB_NONE; id = waiting_next(&walk)) {
		const struct sched_job *job = &s->jobs[id];
		uint32_t gpus = job->gpu_wanted >= 0 ? UINT32_C(1) << job->gpu_wanted
				: job->gpus > 0	     ? job->gpus
						     : UINT32_MAX;

		if (job->allocation > 0) {
			uint32_t mine = 0;

			start_or_claim(s, id, claimed, &mine, now, actions);
			kept |= mine & ~others;
			continue;
		}
		for (size_t k = 0; k < s->n_gpus; k++) {
			if (gpus & UINT32_C(1) << k) {
				claimed[k] = smset_range(0, s->gpus[k].n_sms);
			}
		}
		others |= gpus;
	}
	return kept;
}
