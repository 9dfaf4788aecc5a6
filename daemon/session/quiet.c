/*
 * quiet.c: see quiet.h.
 */
#include "daemon/session/quiet.h"

#include <errno.h>

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session.h"

bool quiet_runs(const struct session *s) {
	const struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->state != JOB_WAITING && job->state != JOB_STOPPED) {
			return true;
		}
	}
	return false;
}

/* What was withheld goes to the engine. */
static void go_on(struct session *s) {
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->state == JOB_WAITING && job->sched_id == SCHED_JOB_NONE &&
		    engine_arrive(s->all->engine, job)) {
			session_goodbye(s, "sbeetd has no room for its jobs");
			return;
		}
	}
}

static void tell(struct session *s, bool running) {
	struct quiet *q = &s->quiet;

	q->told = true;
	q->done(q->asker, q->request, s, running);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	if (!s->quiet.asker) {
		session_tell(s, SESSION_EVENT_TERMS, NULL);
		go_on(s);
	} else if (!s->quiet.told) {
		tell(s, true);
	}
}

static void look(struct session *s) {
	if (s->quiet.asker && !s->quiet.told && !quiet_runs(s)) {
		event_del(&s->quiet.timer);
		tell(s, false);
	}
}

/* What it runs may end and waits for nothing; what it waits for is out of the engine. */
static void make_quiet(struct session *s) {
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->state == JOB_WAITING && job->sched_id != SCHED_JOB_NONE) {
			engine_withdraw(s->all->engine, job);
		} else if (job->state == JOB_RUNNING) {
			job_set_state(job, JOB_PREEMPTED);
			session_tell(s, SESSION_EVENT_REVOKE, job);
			session_say_revoke(s, job->record.number, false,
					   "its program is to be ended");
			if (s->fd < 0) {
				return; /* it did not take the message: its end is under way */
			}
		}
	}
}

void quiet_init(struct session *s) {
	event_assign(&s->quiet.timer, s->all->base, -1, EV_TIMEOUT, on_timer, s);
}

int quiet_begin(struct session *s, nsec_t limit, quiet_fn done, void *asker, uint32_t request) {
	struct timeval t = nsec_timeval(limit);

	if (s->quiet.asker) {
		return -EBUSY;
	}
	if (event_add(&s->quiet.timer, &t) < 0) {
		return -ENOMEM;
	}
	s->quiet.asker = asker;
	s->quiet.request = request;
	s->quiet.done = done;
	s->quiet.told = false;
	session_tell(s, SESSION_EVENT_TERMS, NULL); /* it asks from now on, and waits */
	make_quiet(s);
	look(s);
	return 0;
}

void quiet_end(struct session *s, const void *asker) {
	if (s->quiet.asker == asker) {
		/* Not from here: the engine may be at work. */
		s->quiet.asker = NULL;
		event_active(&s->quiet.timer, EV_TIMEOUT, 0);
	}
}

bool quiet_withholds(const struct session *s) {
	return s->quiet.asker != NULL;
}

void quiet_job_gone(struct session *s) {
	look(s);
}

void quiet_session_gone(struct session *s) {
	look(s);
	event_del(&s->quiet.timer);
	s->quiet.asker = NULL;
}
