/*
 * session-job.c: see session-job.h.
 */
#include "daemon/session-job.h"

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/engine.h"
#include "daemon/metrics.h"
#include "daemon/quota.h"
#include "daemon/report.h"
#include "daemon/resume.h"
#include "daemon/server.h"
#include "daemon/session-say.h"
#include "daemon/session-task.h"

#define EVENT(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

/* A release may lie this far back: the program was stopped or the machine busy. */
#define RELEASE_AGE_MAX NSEC_PER_SEC

struct job *session_job_find(struct session *s, uint64_t number) {
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->number == number) {
			return job;
		}
	}
	return NULL;
}

void session_job_drop(struct session *s, struct job *job, bool done) {
	if (!done) {
		report_job(job, EVENT(JOB_ABANDON));
		if (!s->server->stopping) { /* else it goes on without us */
			log_debug("session %llu (pid %d, '%s'): job %llu is given up, %s",
				  (unsigned long long)s->id, s->cred.pid, s->task.name,
				  (unsigned long long)job->number, job_state_name(job->state));
		}
		s->counters.launches += job->launches;
		s->server->n_launches += job->launches;
	}
	resume_forget(job);
	account_job_ends(job);
	if (job->sched_id != SCHED_JOB_NONE) {
		engine_finish(s->server->engine, job, done);
	} else {
		job_set_state(job, done ? JOB_DONE : JOB_ABANDONED); /* SMs that were not its */
	}
	answers_job_gone(s->server, job);
	TAILQ_REMOVE(&s->jobs, job, link);
	s->n_jobs--;
	if (s->n_jobs == 0) {
		task_idle(&s->task, s->server->now());
	}
	quota_release(s->user, QUOTA_JOBS, 1);
	awake_touch(&s->server->awake, s->server->now());
	job_free(job);
	ending_job_gone(s);
}

void session_job_drop_waiting(struct session *s) {
	struct job *job, *next;

	for (job = TAILQ_FIRST(&s->jobs); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->state == JOB_WAITING) {
			session_job_drop(s, job, false);
		}
	}
}

int session_job_add(struct session *s, struct job *job) {
	if (quota_charge(s->user, QUOTA_JOBS, 1)) {
		return SESSION_E_QUOTA;
	}
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	return 0;
}

/* The time that the client claims, as far as it can be true. */
static nsec_t clamp_release(const struct session *s, nsec_t claimed, nsec_t now) {
	if (claimed == 0 || claimed > now) {
		return now;
	}
	return !s->replayed && now - claimed > RELEASE_AGE_MAX ? now - RELEASE_AGE_MAX : claimed;
}

struct job *session_job_open(struct session *s, const Sbeet__Request *request, size_t gpu) {
	struct job *job = job_new(s, request->job);

	if (!job) {
		return NULL;
	}
	session_task_refresh(s);
	job->owner = s->id;
	job->label = s->task.name;
	job->task = s->sched_task;
	job->tid = request->tid;
	job->gpu = gpu;
	s->gpus |= BIT(gpu);
	job->enforcement_mask = request->enforcement_mask & s->enforcement_mask;
	job->sm_step = request->sm_step;
	job->job_class = s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				 ? SCHED_CLASS_REALTIME
				 : SCHED_CLASS_BEST_EFFORT;
	job->priority = s->task.priority;
	job->min_sms = s->task.min_sms;
	job->max_sms = s->task.max_sms;
	job->release =
		task_release(&s->task, clamp_release(s, request->release_ns, s->server->now()));
	job->deadline = task_deadline(&s->task, job->release);
	if (!ending_withholds(s) && engine_arrive(s->server->engine, job)) {
		return job_free(job);
	}
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	report_job(job, EVENT(JOB_REQUEST));
	return job;
}

void session_job_grant(struct job *job) {
	struct session *s = job->session;

	report_job(job, EVENT(JOB_GRANT));
	resume_note(job);
	account_job_begins(job);
	session_say_grant(job);
	/* Other jobs of a session that was cut off just now may run. This one never will. */
	if (s->state == SESSION_DRAINING && s->fd < 0) {
		session_job_drop(s, job, false);
	}
}

static void count_done(struct session *s, const struct job *job, const Sbeet__JobDone *done) {
	struct session_counters *c = &s->counters;
	nsec_t now = s->server->now(), finished = done->finished_ns;

	if (finished < job->granted || finished > now) {
		finished = now;
	}
	c->jobs++;
	c->jobs_partition += job_enforcement(job) > SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	c->launches += done->launches;
	c->copies += done->copies;
	c->outside_blocks += done->outside_blocks;
	c->misses += job->deadline && finished > job->deadline;
	s->server->n_misses += job->deadline && finished > job->deadline;
	if (job->granted > job->release && job->granted - job->release > c->max_wait) {
		c->max_wait = job->granted - job->release;
	}
	c->last_response = finished > job->release ? finished - job->release : 0;
	if (c->last_response > c->max_response) {
		c->max_response = c->last_response;
	}
	metrics_job(s->server->metrics, s->task.name,
		    job->granted > job->release ? job->granted - job->release : 0, c->last_response,
		    job->deadline && finished > job->deadline);
	session_task_learn(s, job, done, finished);
	report_job_done(job, finished, done->launches);
}

void session_job_done(struct session *s, struct job *job, const Sbeet__JobDone *done) {
	if (!done->cancelled) {
		count_done(s, job, done);
		s->server->n_launches += done->launches;
	} else {
		log_debug("session %llu (pid %d, '%s'): job %llu was not used",
			  (unsigned long long)s->id, s->cred.pid, s->task.name,
			  (unsigned long long)job->number);
	}
	session_job_drop(s, job, !done->cancelled);
}
