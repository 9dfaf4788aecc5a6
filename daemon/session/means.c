/*
 * means.c: see means.h.
 */
#include "daemon/session/means.h"

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/session-job.h"
#include "daemon/session/session.h"
#include "proto/enforcement.h"
#include "proto/terms.h"

static bool has_mps(const struct sessions *all, size_t gpu) {
	return inventory_gpu(all->inventory, gpu)->sharing == SCHED_SHARING_MPS;
}

/* Whether others are preempted for jobs of @s. */
static bool preempts(const struct session *s) {
	const struct preempter *p = s->all->preempter;

	return preempter_works(p) && s->owner.placed && owner_is_wanted(&s->owner, p);
}

/* Whether all programs that have used the GPU take part, but those for which there was no place:
 * however many of them a user has, jobs of others are stopped. */
static bool all_take_part(const struct sessions *all, size_t gpu) {
	const struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->state == SESSION_ACTIVE && s->gpus & BIT(gpu) && !s->owner.left_out &&
		    !(has_mps(all, gpu) ? s->levels : preempts(s))) {
			return false;
		}
	}
	return true;
}

/* Streams of the job can be moved to another level, which counts among clients of one MPS. */
static bool has_levels(const struct job *job) {
	return job->session->levels && !(job->apart & BIT(job->gpu)) &&
	       job->record.enforcement_mask & ENFORCEMENT_BIT(GREEN);
}

/* The highest level of the jobs that are aside on @gpu; -1: there are none. */
static int highest_aside(const struct sessions *all, size_t gpu) {
	const struct session *s;
	const struct job *job;
	int highest = -1;

	TAILQ_FOREACH(s, &all->list, link) {
		TAILQ_FOREACH(job, &s->jobs, link) {
			if (job->aside && job->gpu == gpu && (int)job->level > highest) {
				highest = (int)job->level;
			}
		}
	}
	return highest;
}

static enum sched_stop find(const struct job *job) {
	const struct session *s = job->session;
	const struct sched_policy *policy = sched_get_policy(engine_sched(s->all->engine));

	if (s->fd < 0) {
		return SCHED_STOP_NEVER;
	}
	if (!policy->stops || !all_take_part(s->all, job->gpu)) {
		return SCHED_STOP_LAUNCHES;
	}
	if (!has_mps(s->all, job->gpu)) {
		return owner_has_group(&s->owner, job->gpu) ? SCHED_STOP_PREEMPT
							    : SCHED_STOP_LAUNCHES;
	}
	return job->level < PROTO_TERMS_LEVEL_MAX && !(job->apart & BIT(job->gpu))
		       ? SCHED_STOP_LEVEL
		       : SCHED_STOP_LAUNCHES;
}

static nsec_t took(const struct session *s, size_t gpu, enum sched_stop stop) {
	switch (stop) {
	case SCHED_STOP_LAUNCHES:
		return s->stop_longest;
	case SCHED_STOP_PREEMPT:
		return preempter_report(s->all->preempter).gpus[gpu].longest_ns;
	default:
		return 0;
	}
}

/* Above all jobs that are aside on its GPU. */
static unsigned level_of(const struct job *job) {
	int highest = highest_aside(job->session->all, job->gpu);

	if (highest < 0 || !has_mps(job->session->all, job->gpu) || !has_levels(job)) {
		return 0;
	}
	return (unsigned)highest < PROTO_TERMS_LEVEL_MAX ? (unsigned)highest + 1
							 : PROTO_TERMS_LEVEL_MAX;
}

void means_granted(struct job *job) {
	const struct session *s = job->session;
	enum sched_stop stop;

	if (!job->aside) {
		job->level = level_of(job);
	}
	stop = find(job);
	engine_set_stop(s->all->engine, job, stop, took(s, job->gpu, stop));
	session_job_grant(job);
}

/* Whether @job gives way to @by without being told. */
static bool yields(const struct job *job, const struct job *by) {
	switch (find(job)) {
	case SCHED_STOP_PREEMPT:
		return true;
	case SCHED_STOP_LEVEL:
		return has_levels(by) &&
		       highest_aside(job->session->all, job->gpu) < (int)PROTO_TERMS_LEVEL_MAX;
	default:
		return false;
	}
}

void means_stop(struct job *job, const struct job *by) {
	if (by && job->state == JOB_RUNNING && yields(job, by)) {
		session_job_put_aside(job);
	} else {
		session_job_stop(job);
	}
}
