/*
 * resume.c: what outlives connections and daemons. See resume.h.
 */
#include "daemon/session/resume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/absent.h"
#include "daemon/session/ledger.h"
#include "daemon/session/session-job.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session.h"

void resume_note(const struct job *job) {
	const struct session *s = job->session;
	struct ledger_entry e = {
		.job = job->record,
		.identity = s->identity,
		.release = job->release,
		.uid = s->cred.uid,
		.job_class = (uint32_t)job->job_class,
		.priority = job->spec.priority,
	};

	snprintf(e.task, sizeof(e.task), "%s", s->task.name);
	snprintf(e.program, sizeof(e.program), "%s", s->program);
	ledger_write(s->all->ledger, job->gpu, job->record.slot, &e);
}

void resume_forget(const struct job *job) {
	const struct sessions *all = job->session->all;

	/* When we stop, jobs run on: the next daemon is to know of them. */
	if (job->state != JOB_WAITING && job->sched_id != SCHED_JOB_NONE && !all->stopping) {
		ledger_erase(all->ledger, job->gpu, job->record.slot);
	}
}

/* ---- from the ledger ---- */

/* Return: NULL if there is no room, or the place is taken; then there is no job. */
static struct job *adopt(struct session *s, struct job *job) {
	job->owner = s->id;
	job->apart = session_mps_apart(s);
	job->label = s->task.name;
	job->stop = s->fd >= 0 ? SCHED_STOP_LAUNCHES : SCHED_STOP_NEVER; /* nobody to be told */
	job->inherited = true;
	job->level = PROTO_TERMS_LEVEL_MAX; /* nobody knows: none gets above it */
	if (session_job_add(s, job)) {
		return job_free(job);
	}
	if (engine_adopt(s->all->engine, job)) {
		session_job_take_back(s, job);
		return job_free(job);
	}
	resume_note(job);
	session_tell(s, SESSION_EVENT_RESUME, job);
	return job;
}

static struct job *job_of_entry(struct session *s, const struct ledger_entry *e, size_t gpu) {
	struct job *job = job_from_record(s, &e->job, gpu);

	if (job) {
		job->job_class = (enum sched_class)e->job_class;
		job->spec.priority = e->priority;
		job->release = e->release;
	}
	return job;
}

/* Return: 0; -ESRCH if its process is dead; SESSION_E_QUOTA or another negative errno. */
static int absent_session(struct session **ret, struct sessions *all,
			  const struct ledger_entry *e) {
	struct session *s = absent_find(&all->absent, &e->identity);
	int r;

	if (s) {
		*ret = s;
		return 0;
	}
	r = session_new_absent(&s, all, all->next_id, e->uid, &e->identity);
	if (r) {
		return r;
	}
	all->next_id++;
	snprintf(s->program, sizeof(s->program), "%.*s", PROTO_NAME_MAX, e->program);
	snprintf(s->task.name, sizeof(s->task.name), "%.*s", PROTO_NAME_MAX, e->task);
	session_tell(s, SESSION_EVENT_START, NULL);
	*ret = s;
	return 0;
}

/* Return: 0; -ESRCH if it runs no more, or not here; or that there was no room for it. */
static int restore(struct sessions *all, const struct ledger_entry *e) {
	int gpu = inventory_find(all->inventory, e->job.uuid), r;
	struct session *s;
	struct smset whole;
	struct job *job;

	if (gpu < 0) {
		return -ESRCH;
	}
	whole = smset_range(0, inventory_gpu(all->inventory, (size_t)gpu)->n_sms);
	if (!smset_within(&e->job.sms, &whole)) {
		return -ESRCH;
	}
	r = absent_session(&s, all, e);
	if (r) {
		return r;
	}
	job = job_of_entry(s, e, (size_t)gpu);
	return job && adopt(s, job) ? 0 : -ENOMEM;
}

bool resume_absent(struct sessions *all) {
	const struct ledger_entry *e;
	struct session *s, *next;
	bool complete = true;
	unsigned n = 0;
	int r;

	for (size_t i = 0; (e = ledger_left(all->ledger, i)); i++) {
		r = restore(all, e);
		n += r == 0;
		complete &= r == 0 || r == -ESRCH;
	}
	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->n_jobs == 0) {
			session_end(s);
		}
	}
	if (n > 0) {
		log_info("%u jobs run since before this start; their SMs stay theirs", n);
	}
	return complete;
}

static void on_trusted(evutil_socket_t fd, short what, void *userdata) {
	struct sessions *all = userdata;

	all->trusting = false;
	engine_hold(all->engine, false);
}

int resume_trust(struct sessions *all) {
	static const struct timeval grace = {.tv_usec = RESUME_GRACE_MS * 1000};

	log_warning(
		"What jobs ran under the sbeetd before is not known in full; nothing is "
		"granted for %d ms, so that programs can tell",
		RESUME_GRACE_MS);
	if (event_base_once(all->base, -1, EV_TIMEOUT, on_trusted, all, &grace) < 0) {
		return -ENOMEM;
	}
	all->trusting = true;
	engine_skip_sequences(all->engine);
	engine_hold(all->engine, true);
	return 0;
}

/* ---- from a Hello ---- */

/* What this process had before, if it shows the secret that it was given then. */
static struct identity identity_before(const struct session *s, const Sbeet__Hello *hello) {
	struct identity before = s->identity;

	memset(before.secret, 0, sizeof(before.secret));
	if (hello->secret.len > 0) {
		memcpy(before.secret, hello->secret.data, sizeof(before.secret));
	}
	return before;
}

static bool is_same(const struct job *job, const struct granted_job *held, int gpu) {
	return job->state != JOB_WAITING && job->record.number == held->number &&
	       (int)job->gpu == gpu && job->record.slot == held->slot &&
	       smset_equal(&held->sms, &job->record.sms);
}

/* The job that is meant, among those of the process's sessions that are gone. */
static struct job *find_held(const struct sessions *all, const struct identity *before,
			     const struct granted_job *held, int gpu) {
	struct session *other;
	struct job *job;

	for (other = absent_find(&all->absent, before); other;
	     other = absent_next(&other->absent)) {
		TAILQ_FOREACH(job, &other->jobs, link) {
			if (is_same(job, held, gpu)) {
				return job;
			}
		}
	}
	return NULL;
}

/* The user of @to may be another one: the program has dropped its rights. */
static void move(struct job *job, struct session *to) {
	struct session *from = job->session;

	session_tell(from, SESSION_EVENT_LEAVE, job);
	TAILQ_REMOVE(&from->jobs, job, link);
	from->n_jobs--;
	quota_move(from->user, to->user, QUOTA_JOBS, 1);
	TAILQ_INSERT_TAIL(&to->jobs, job, link);
	to->n_jobs++;
	if (from->gpus & ~to->gpus) {
		to->gpus |= from->gpus;
		session_tell(to, SESSION_EVENT_TERMS, NULL);
	}
	job->session = to;
	job->records_ops = false; /* over the new connection */
	job->owner = to->id;
	job->label = to->task.name;
	job->task = SCHED_TASK_NONE; /* its session's, which ends */
	job->stop = SCHED_STOP_LAUNCHES;
	if (job->sched_id != SCHED_JOB_NONE) {
		engine_moved(to->all->engine, job);
		resume_note(job);
	}
	session_tell(to, SESSION_EVENT_RESUME, job);
}

/* What @held says, as far as it can be true on this GPU. NULL: it can't, or there is no memory. */
static struct job *job_of_claim(struct session *s, const struct granted_job *held, size_t index) {
	const struct inventory_gpu *gpu = inventory_gpu(s->all->inventory, index);
	struct smset all = smset_range(0, gpu->n_sms);
	struct granted_job claim = *held;
	nsec_t now = s->all->now();
	bool whole = smset_equal(&held->sms, &all);

	if (!smset_within(&held->sms, &all) || held->sequence >= now ||
	    whole != (held->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE) ||
	    !(held->enforcement_mask & BIT(held->enforcement))) {
		return NULL;
	}
	claim.requested = held->requested < now ? held->requested : now;
	claim.granted = held->granted < now ? held->granted : now;
	claim.enforcement_mask &= s->enforcement_mask;
	return job_from_record(s, &claim, index);
}

/* It runs, but not here any more: it is told to end, and may report that. */
static void disown(struct session *s, const Sbeet__Held *held, int gpu) {
	log_event(quota_log(s->user), LOG_LEVEL_WARNING,
		  &(struct log_about){.id = LOG_ID_PEER,
				      .task = s->task.name,
				      .gpu = gpu,
				      .job = held->job,
				      .uid = s->cred.uid},
		  "session %llu (pid %d, '%s'): job %llu claims SMs that it was not granted, or "
		  "that another job has by now; it is told to end",
		  (unsigned long long)s->id, s->cred.pid, s->task.name,
		  (unsigned long long)held->job);
	s->n_disowned++;
	session_say_revoke(s, held->job, false, "sbeetd has no record of granting it these SMs");
}

static void take_over(struct session *s, const struct identity *before, const Sbeet__Held *held) {
	int gpu = inventory_find(s->all->inventory, held->gpu_uuid.data);
	struct granted_job claim;
	struct job *job = NULL;

	if (session_job_find(s, held->job)) {
		return; /* named twice */
	}
	if (granted_job_from_wire(held, &claim) == 0) {
		job = find_held(s->all, before, &claim, gpu);
		if (job) {
			move(job, s);
			return;
		}
		if (gpu >= 0 && s->all->trusting) {
			job = job_of_claim(s, &claim, (size_t)gpu);
		}
	}
	if (!job || !adopt(s, job)) {
		disown(s, held, gpu);
	}
}

/* It came to its end while nobody heard of that. Else it was heard of, or was never known. */
static void take_end(struct session *s, const struct identity *before, const Sbeet__JobDone *done) {
	struct session *other;
	struct job *job;

	for (other = absent_find(&s->all->absent, before); other;
	     other = absent_next(&other->absent)) {
		job = session_job_find(other, done->job);
		if (job && job->state != JOB_WAITING) {
			move(job, s);
			session_job_done(s, job, done);
			return;
		}
	}
}

/* What is left of a process that is connected again. */
static void end_absent(struct sessions *all, const struct identity *identity) {
	struct session *s;

	while ((s = absent_find(&all->absent, identity))) {
		session_end(s);
	}
}

/* What the process had before it executed another program, whose library has no secret. The kernel
 * has ended all of that before the new one began. */
static void end_replaced(struct sessions *all, const struct identity *identity) {
	struct session *s = absent_find_process(&all->absent, identity), *next;

	for (; s; s = next) {
		next = absent_next_process(&s->absent);
		if (s->has_thread) {
			session_end(s);
		}
	}
}

void resume_session(struct session *s, const Sbeet__Hello *hello) {
	const struct identity before = identity_before(s, hello);

	for (size_t i = 0; i < hello->n_held && s->fd >= 0; i++) {
		take_over(s, &before, hello->held[i]);
	}
	for (size_t i = 0; i < hello->n_ended && s->fd >= 0; i++) {
		take_end(s, &before, hello->ended[i]);
	}
	if (s->fd >= 0) {
		/* What it records now was another daemon's wish. */
		session_job_record_ops(s, s->record_ops);
	}
	if (!s->replayed && s->fd >= 0) {
		end_absent(s->all, &before);
		if (s->has_thread && hello->secret.len == 0) {
			end_replaced(s->all, &s->identity);
		}
	}
}

void resume_replayed(struct sessions *all) {
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->fd >= 0 && s->state != SESSION_NEW) {
			end_absent(all, &s->identity);
		}
	}
}
