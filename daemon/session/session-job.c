/*
 * session-job.c: see session-job.h.
 */
#include "daemon/session/session-job.h"
#include "daemon/session/allocations.h"

#include <string.h>

#include "daemon/base/awake.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/core/steer/plan.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/resume.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "proto/enforcement.h"

/* A request may lie this far back: the program was stopped or the machine busy. */
#define REQUEST_AGE_MAX NSEC_PER_SEC

/* Nobody waits for who runs under terms, so its priority is looked at no more often than this. */
#define PRIORITY_READ_NS (100 * NSEC_PER_MSEC)

/* A program that goes on loading code is no longer cold after so many jobs: else nobody would see
 * that it is late. */
#define COLD_MAX 256

/* How often a program is told to send operations of jobs that run, until one of them ends, which
 * shows that it reads. A socket has room for four times as many packets. */
#define RECORD_OPS_MAX 64

struct job *session_job_find(struct session *s, uint64_t number) {
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->record.number == number) {
			return job;
		}
	}
	return NULL;
}

void session_job_drop(struct session *s, struct job *job, bool done) {
	if (!done) {
		session_tell(s, SESSION_EVENT_ABANDON, job);
		if (!s->all->stopping) { /* else it goes on without us */
			log_debug("session %llu (pid %d, '%s'): job %llu is given up, %s",
				  (unsigned long long)s->id, s->cred.pid, s->task.name,
				  (unsigned long long)job->record.number,
				  job_state_name(job->state));
		}
		s->counters.launches += job->launches;
	}
	resume_forget(job);
	engine_finish(s->all->engine, job, done);
	session_tell(s, SESSION_EVENT_LEAVE, job);
	TAILQ_REMOVE(&s->jobs, job, link);
	s->n_jobs--;
	quota_release(s->user, QUOTA_JOBS, 1);
	if (job->terms == 0) {
		awake_touch(s->all->awake, s->all->now()); /* it may ask for the next one */
	}
	job_free(job);
	quiet_job_gone(s);
}

void session_job_drop_waiting(struct session *s) {
	struct job *job, *next;

	for (job = TAILQ_FIRST(&s->jobs); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->state == JOB_WAITING || job->state == JOB_STOPPED) {
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

void session_job_take_back(struct session *s, struct job *job) {
	TAILQ_REMOVE(&s->jobs, job, link);
	s->n_jobs--;
	quota_release(s->user, QUOTA_JOBS, 1);
}

/* The time that the client claims, as far as it can be true. @oldest: it may lie this far back. */
static nsec_t clamp_request(const struct session *s, nsec_t claimed, nsec_t oldest) {
	nsec_t now = s->all->now();

	if (claimed == 0 || claimed > now) {
		return now;
	}
	return !s->replayed && now - claimed > oldest ? now - oldest : claimed;
}

/* What the program says of a job's times. */
struct times {
	nsec_t requested; /* as far as it can be true */
	nsec_t marked;	  /* its release; 0: it is not told */
	nsec_t deadline;  /* from its release; 0: its task's */
};

/* The release that the program has marked, as far as it can be true. */
static nsec_t marked_release(const struct times *told) {
	nsec_t oldest = told->requested > REQUEST_AGE_MAX ? told->requested - REQUEST_AGE_MAX : 0;

	return told->marked < oldest ? oldest : told->marked;
}

/* When @job was released, and so when it is due. A job that waited under the sbeetd before keeps
 * its release. */
static void set_times(struct session *s, struct job *job, const struct times *told) {
	struct task_request request = {
		.at = told->requested,
		.gpu = job->gpu,
		.tid = job->record.tid,
		.alone = s->n_jobs == 0,
	};

	job->record.requested = request.at;
	job->own_deadline = told->deadline;
	job->release = s->replayed    ? s->replayed_release
		       : told->marked ? marked_release(told)
				      : task_release(&s->releases, &s->task, &request);
	job->woken = !s->replayed && !told->marked && s->releases.woken;
	if (!job->release || job->release > job->record.requested) {
		job->release = job->record.requested;
	}
	job->record.deadline = task_deadline(&s->task, job->release, job->own_deadline);
}

/* The session runs jobs on this GPU. */
static void note_gpu(struct session *s, size_t gpu) {
	if (!(s->gpus & BIT(gpu))) {
		s->gpus |= BIT(gpu);
		session_tell(s, SESSION_EVENT_TERMS, NULL);
	}
}

static void set_gpu(struct job *job, size_t gpu) {
	const struct session *s = job->session;

	job->gpu = gpu;
	job->profile = s->own_profiles[gpu];
	memcpy(job->record.uuid, inventory_gpu(s->all->inventory, gpu)->uuid,
	       sizeof(job->record.uuid));
}

/* A job of the session's task on GPU @gpu; NULL: no memory. */
static struct job *make_job(struct session *s, uint64_t number, uint32_t tid, size_t gpu) {
	struct job *job = job_new(s, number);

	if (!job) {
		return NULL;
	}
	session_task_refresh(s);
	note_gpu(s, gpu);
	job->owner = s->id;
	job->allocation =
		allocations_sms(s->all->allocations, s->allocation, gpu) ? s->allocation : 0;
	job->alone = job->allocation > 0 &&
		     allocations_sessions(s->all->allocations, job->allocation) == 1;
	job->apart = session_mps_apart(s);
	job->label = s->task.name;
	job->task = s->sched_task;
	job->record.tid = tid;
	set_gpu(job, gpu);
	job->job_class = s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				 ? SCHED_CLASS_REALTIME
				 : SCHED_CLASS_BEST_EFFORT;
	job->spec = s->task.job;
	job->spec.priority = session_task_priority(s);
	job->stop = SCHED_STOP_LAUNCHES;
	return job;
}

/* An allocation with SMs of its own on some of the GPUs only leaves the job where it asked to run:
 * it is confined there, or not, whatever the others are like. */
static uint32_t choice_of(const struct session *s, const struct job *job, uint32_t others) {
	bool own = job->allocation > 0;

	for (size_t k = 0; k < inventory_n_gpus(s->all->inventory); k++) {
		if ((others & BIT(k)) &&
		    own != (allocations_sms(s->all->allocations, s->allocation, k) != NULL)) {
			return 0;
		}
	}
	return others;
}

struct job *session_job_open(struct session *s, const Sbeet__Request *request, size_t gpu,
			     uint32_t others) {
	struct times told = {
		.requested = clamp_request(s, request->release_ns, REQUEST_AGE_MAX),
		.marked = request->marked_ns,
		.deadline = request->own_deadline_ns,
	};
	struct job *job;

	session_task_read_priority(s);
	job = make_job(s, request->job, request->tid, gpu);
	if (!job) {
		return NULL;
	}
	job->gpus = choice_of(s, job, others);
	job->record.enforcement_mask = request->enforcement_mask & s->enforcement_mask;
	job->sm_step = request->sm_step;
	set_times(s, job, &told);
	if (!quiet_withholds(s) && engine_arrive(s->all->engine, job)) {
		return job_free(job);
	}
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	session_tell(s, SESSION_EVENT_REQUEST, job);
	return job;
}

/* Watchers come and go as they like; a program that does not read just now must not be hung up on
 * because of that. Jobs under terms see it in the page. */
static void tell_record_ops(struct session *s, struct job *job, bool on) {
	if (job->state == JOB_WAITING || job->state == JOB_STOPPED || job->terms != 0 ||
	    job->records_ops == on || (on && s->n_recorded == RECORD_OPS_MAX)) {
		return;
	}
	job->records_ops = on;
	s->n_recorded += on;
	session_say_record_ops(s, job->record.number, on);
}

struct job *session_job_begin(struct session *s, const Sbeet__Began *began, size_t gpu,
			      const struct smset *sms) {
	nsec_t now = s->all->now(), at = began->began_ns;
	struct times told = {
		/* Nobody waits because of what it claims, and its account may come late. */
		.requested = clamp_request(s, began->release_ns, now),
		.marked = began->marked_ns,
		.deadline = began->own_deadline_ns,
	};
	struct job *job;

	if (now - s->cpu_priority_read >= PRIORITY_READ_NS) {
		s->cpu_priority_read = now;
		session_task_read_priority(s);
	}
	job = make_job(s, began->job, began->tid, gpu);
	if (!job) {
		return NULL;
	}
	job->terms = began->terms;
	job->record.sms = *sms;
	job->record.enforcement = terms_unpack(began->terms).n > 0
					  ? SBEET__ENFORCEMENT__ENFORCEMENT_GREEN
					  : SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	job->record.enforcement_mask = BIT(job->record.enforcement) | ENFORCEMENT_BIT(WHOLE);
	set_times(s, job, &told);
	job->record.granted = at < job->record.requested || at > now ? job->record.requested : at;
	job_set_state(job, JOB_RUNNING);
	s->terms.began[gpu] = began->terms;
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	session_tell(s, SESSION_EVENT_GRANT, job);
	return job;
}

void session_job_grant(struct job *job) {
	struct session *s = job->session;
	bool told = !job->aside; /* else it runs all the time */

	set_gpu(job, job->gpu); /* it may be another one than it asked for */
	note_gpu(s, job->gpu);
	session_tell(s, SESSION_EVENT_GRANT, job);
	resume_note(job);
	job->aside = false;
	if (told) {
		job->records_ops = s->record_ops;
		session_say_grant(job); /* may end the session, and @job with it */
	}
	/* Other jobs of a session that was cut off just now may run. This one never will. */
	if (s->state == SESSION_DRAINING && s->fd < 0) {
		session_job_drop(s, job, false);
	}
}

/* Its SMs are free. */
static void leave_gpu(struct session *s, struct job *job) {
	nsec_t now = s->all->now();

	job->continued = true;
	job->ran += now > job->record.granted ? now - job->record.granted : 0;
	session_tell(s, SESSION_EVENT_STOP, job);
}

void session_job_put_aside(struct job *job) {
	struct session *s = job->session;

	job_set_state(job, JOB_PREEMPTED);
	session_tell(s, SESSION_EVENT_REVOKE, job);
	resume_forget(job);
	job_set_state(job, JOB_STOPPED);
	leave_gpu(s, job);
	job->aside = true;
	job->record.granted = 0;
	job->record.sms = (struct smset){0};
	engine_put_aside(s->all->engine, job);
	session_tell(s, SESSION_EVENT_REQUEST, job);
}

void session_job_stop(struct job *job) {
	struct session *s = job->session;

	if (s->fd < 0) {
		return; /* it is told when it is back: see engine_moved() */
	}
	job->stop_told = s->all->now();
	if (job->state == JOB_RUNNING) { /* else it may not have heard of that */
		job_set_state(job, JOB_PREEMPTED);
		session_tell(s, SESSION_EVENT_REVOKE, job);
	}
	session_say_revoke(s, job->record.number, s->stops,
			   "a job of higher priority needs the GPU");
}

void session_job_stopped(struct session *s, struct job *job) {
	nsec_t now = s->all->now();

	if (job->state == JOB_RUNNING) {
		job_set_state(job, JOB_PREEMPTED); /* as the daemon before us wanted */
	}
	if (job->stop_told && now - job->stop_told > s->stop_longest) {
		s->stop_longest = now - job->stop_told;
	}
	job->stop_told = 0;
	resume_forget(job);
	engine_stopped(s->all->engine, job);
	leave_gpu(s, job);
	awake_touch(s->all->awake, now); /* it may ask for the rest */
	quiet_job_gone(s);
}

void session_job_continue(struct session *s, struct job *job, const Sbeet__Request *request) {
	job->record.enforcement_mask = request->enforcement_mask & s->enforcement_mask;
	job->sm_step = request->sm_step;
	job->record.granted = 0;
	job->record.sms = (struct smset){0};
	job_set_state(job, JOB_WAITING);
	session_tell(s, SESSION_EVENT_REQUEST, job);
	if (!quiet_withholds(s) && engine_arrive(s->all->engine, job)) {
		session_job_drop(s, job, false);
		session_say_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				  "sbeetd has no room for more jobs");
	}
}

void session_job_record_ops(struct session *s, bool on) {
	struct job *job, *next;

	s->record_ops = on;
	session_terms_record_ops(&s->terms, on);
	for (job = s->counts ? TAILQ_FIRST(&s->jobs) : NULL; job && s->fd >= 0; job = next) {
		next = TAILQ_NEXT(job, link);
		tell_record_ops(s, job, on); /* may hang up */
	}
}

/* When @job ended, as far as the client's word can be true. */
static nsec_t clamp_finished(const struct job *job, nsec_t claimed, nsec_t now) {
	return claimed < job->record.granted || claimed > now ? now : claimed;
}

/* From now on it can run there without asking: see scene.c. */
static void note_held(struct session *s, const struct job *job) {
	if (job->allocation > 0 && !(s->held & BIT(job->gpu)) &&
	    job_enforcement(job) == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN) {
		s->held |= BIT(job->gpu);
		session_tell(s, SESSION_EVENT_TERMS, NULL);
	}
}

/* Of a job that is cold. Return: false if it counts as others do. */
static bool count_cold(struct session_counters *c, const Sbeet__JobDone *done, nsec_t response,
		       bool missed) {
	if (!done->cold || c->cold_jobs == COLD_MAX) {
		return false;
	}
	c->cold_jobs++;
	c->cold_misses += missed;
	c->cold_launches += done->launches;
	c->cold_responses += response;
	return true;
}

/* Several threads with jobs of their own have several in each period. */
static void count_period(struct session *s, struct job *job) {
	struct session_counters *c = &s->counters;
	nsec_t most = s->task.period / 4 * 3;

	job->within_period = most > 0 && s->scope == SBEET__SCOPE__SCOPE_PROCESS &&
			     c->period_began > 0 && job->release < c->period_began + most;
	if (job->within_period) {
		c->within_period++;
	} else {
		c->period_began = job->release;
	}
}

static void count_done(struct session *s, struct job *job, const Sbeet__JobDone *done,
		       nsec_t finished) {
	struct session_counters *c = &s->counters;
	bool missed = job->record.deadline && finished > job->record.deadline;
	nsec_t wait = job_waited(job, finished), started_late = job_started_late(job);

	c->jobs++;
	c->jobs_partition += enforcement_has(job_enforcement(job), ENFORCEMENT_CONFINES);
	c->launches += done->launches;
	c->copies += done->copies;
	c->outside_blocks += done->outside_blocks;
	c->misses += missed;
	count_period(s, job);
	c->max_wait = wait > c->max_wait ? wait : c->max_wait;
	if (started_late > c->max_started_late) {
		c->max_started_late = started_late;
	}
	c->woken += job->woken;
	c->late_by_wake += job->woken && job->record.deadline && !missed &&
			   finished + PLAN_WAKE > job->record.deadline;
	c->last_response = finished > job->release ? finished - job->release : 0;
	c->responses += c->last_response;
	if (c->last_response > c->max_response) {
		c->max_response = c->last_response;
	}
	if (!count_cold(c, done, c->last_response, missed) &&
	    c->last_response > c->max_response_since) {
		c->max_response_since = c->last_response;
	}
	job->finished = finished;
	job->launches = done->launches;
	job->launched = done->launched_ns ? done->launched_ns : job->launched;
	job->kernel_end = done->kernel_end_ns;
	job->cold = done->cold;
	if (work_seen_add(&s->seen, done->launches, done->waves, done->copies)) {
		session_tell(s, SESSION_EVENT_TERMS, NULL);
	}
	note_held(s, job);
	session_task_learn(s, job, done, finished);
	session_tell(s, SESSION_EVENT_DONE, job);
}

void session_job_done(struct session *s, struct job *job, const Sbeet__JobDone *done) {
	struct task_last last = {.release = job->release, .gpu = job->gpu, .tid = job->record.tid};

	job->unconfined |= done->unconfined;
	if (!done->cancelled) {
		last.ended = clamp_finished(job, done->finished_ns, s->all->now());
		count_done(s, job, done, last.ended);
		s->n_recorded = 0;
	} else {
		log_debug("session %llu (pid %d, '%s'): job %llu was not used",
			  (unsigned long long)s->id, s->cred.pid, s->task.name,
			  (unsigned long long)job->record.number);
	}
	task_ended(&s->releases, &last);
	session_job_drop(s, job, !done->cancelled);
}
