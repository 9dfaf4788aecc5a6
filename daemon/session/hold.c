/* hold.c: see hold.h. */
#include "daemon/session/hold.h"

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/server.h"
#include "daemon/session/session-say.h"

/* Between two looks at most. */
#define LOOK_MAX (1 * NSEC_PER_SEC)

/* After longer than this without a look the daemon itself stood still (it was stopped, or the whole
 * machine), and with it perhaps everybody: nobody can be blamed for that time. */
#define ASLEEP_MIN (2 * LOOK_MAX)

static bool holds_too_long(const struct server *server, const struct job *job, nsec_t now) {
	return (job->state == JOB_RUNNING || job->state == JOB_PREEMPTED) &&
	       now - job->granted > server->max_hold && engine_waits_for(server->engine, job->gpu);
}

static void take_back(struct session *s, struct job *job, nsec_t now) {
	log_event(
		quota_log(s->user), LOG_LEVEL_WARNING,
		&(struct log_about){.id = LOG_ID_HOLD,
				    .task = s->task.name,
				    .gpu = (int)job->gpu,
				    .job = job->number,
				    .uid = s->cred.uid},
		"session %llu (pid %d, '%s'): job %llu has held %u SMs of GPU %zu for %llu ms and "
		"others wait: it may start nothing more (see --max-hold)",
		(unsigned long long)s->id, s->cred.pid, s->task.name,
		(unsigned long long)job->number, smset_count(&job->sms), job->gpu,
		(unsigned long long)((now - job->granted) / NSEC_PER_MSEC));
	job_set_state(job, JOB_PREEMPTED);
	session_tell(s, SESSION_EVENT_REVOKE, job);
	session_say_revoke(s, job->number, "it has held its SMs for too long, and others wait");
}

/* Whether the program is still there. May end the session. */
static void ask(struct session *s, nsec_t now) {
	nsec_t awake = s->server->hold_awake, since = s->pinged > awake ? s->pinged : awake;

	if (!s->answers_pings || s->fd < 0) {
		return;
	}
	since = s->read_at > since ? s->read_at : since;
	if (s->pinged == 0) {
		s->pinged = now;
		session_say_ping(s);
	} else if (now > since && now - since > HOLD_ANSWER_MAX) {
		log_event(quota_log(s->user), LOG_LEVEL_WARNING,
			  &(struct log_about){.id = LOG_ID_HOLD,
					      .task = s->task.name,
					      .gpu = -1,
					      .uid = s->cred.uid},
			  "session %llu (pid %d, '%s') holds SMs that others wait for and does not "
			  "answer: its session ends, and its SMs go to others. Look whether the "
			  "process is stopped; it connects again when it goes on",
			  (unsigned long long)s->id, s->cred.pid, s->task.name);
		session_goodbye(s, "the program does not answer while others wait for its SMs");
	}
}

static void look_at(struct session *s, nsec_t now) {
	bool too_long = false;
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (!holds_too_long(s->server, job, now)) {
			continue;
		}
		too_long = true;
		if (job->state == JOB_RUNNING) {
			take_back(s, job, now);
		}
		if (s->fd < 0) {
			return; /* it did not take the message: its end is under way */
		}
	}
	if (too_long) {
		ask(s, now);
	}
}

static void on_hold(evutil_socket_t fd, short what, void *userdata) {
	struct server *server = userdata;
	nsec_t now = server->now();
	struct session *s, *next;

	if (now - server->hold_looked > ASLEEP_MIN) {
		server->hold_awake = now;
	}
	server->hold_looked = now;
	for (s = TAILQ_FIRST(&server->sessions); s; s = next) {
		next = TAILQ_NEXT(s, link);
		look_at(s, now);
	}
}

void hold_init(struct server *server) {
	event_assign(&server->hold, server->base, -1, EV_TIMEOUT, on_hold, server);
}

void hold_deinit(struct server *server) {
	event_del(&server->hold);
}

void hold_watch(struct server *server) {
	nsec_t pause = server->max_hold / 2 < LOOK_MAX ? server->max_hold / 2 : LOOK_MAX;
	struct timeval t = util_timeval(pause + 1);

	if (server->max_hold > 0 && engine_any_waits(server->engine) &&
	    !event_pending(&server->hold, EV_TIMEOUT, NULL)) {
		event_add(&server->hold, &t); /* without memory: at the next event */
	}
}
