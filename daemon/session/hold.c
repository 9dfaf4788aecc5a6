/* hold.c: see hold.h. */
#include "daemon/session/hold.h"

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session.h"

/* Between two looks at most. */
#define LOOK_MAX (1 * NSEC_PER_SEC)

/* After longer than this without a look the daemon itself stood still (it was stopped, or the whole
 * machine), and with it perhaps everybody: nobody can be blamed for that time. */
#define ASLEEP_MIN (2 * LOOK_MAX)

static bool holds_too_long(const struct hold *hold, const struct job *job, nsec_t now) {
	return (job->state == JOB_RUNNING || job->state == JOB_PREEMPTED) && job->terms == 0 &&
	       now - job->record.granted > hold->limit && engine_is_awaited(hold->all->engine, job);
}

static void take_back(struct session *s, struct job *job, nsec_t now) {
	log_event(
		quota_log(s->user), LOG_LEVEL_WARNING,
		&(struct log_about){.id = LOG_ID_HOLD,
				    .task = s->task.name,
				    .gpu = (int)job->gpu,
				    .job = job->record.number,
				    .uid = s->cred.uid},
		"session %llu (pid %d, '%s'): job %llu has held %u SMs of GPU %zu for %llu ms and "
		"others wait: it may start nothing more (see --max-hold)",
		(unsigned long long)s->id, s->cred.pid, s->task.name,
		(unsigned long long)job->record.number, smset_count(&job->record.sms), job->gpu,
		(unsigned long long)((now - job->record.granted) / NSEC_PER_MSEC));
	job_set_state(job, JOB_PREEMPTED);
	session_tell(s, SESSION_EVENT_REVOKE, job);
	session_say_revoke(s, job->record.number, s->stops,
			   "it has held its SMs for too long, and others wait");
}

/* Whether the program is still there. May end the session. */
static void ask(const struct hold *hold, struct session *s, nsec_t now) {
	nsec_t since = s->pinged > hold->awake ? s->pinged : hold->awake;

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

static void look_at(const struct hold *hold, struct session *s, nsec_t now) {
	bool too_long = false;
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (!holds_too_long(hold, job, now)) {
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
		ask(hold, s, now);
	}
}

static void on_hold(evutil_socket_t fd, short what, void *userdata) {
	struct hold *hold = userdata;
	nsec_t now = hold->all->now();
	struct session *s, *next;

	if (now - hold->looked > ASLEEP_MIN) {
		hold->awake = now;
	}
	hold->looked = now;
	for (s = TAILQ_FIRST(&hold->all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		look_at(hold, s, now);
	}
}

void hold_init(struct hold *hold, struct sessions *all, nsec_t limit) {
	*hold = (struct hold){.all = all, .limit = limit};
	timer_init(&hold->timer, all->base, on_hold, hold);
}

void hold_deinit(struct hold *hold) {
	timer_stop(&hold->timer);
}

void hold_watch(struct hold *hold) {
	nsec_t pause = hold->limit / 2 < LOOK_MAX ? hold->limit / 2 : LOOK_MAX;

	if (hold->limit > 0 && engine_any_waits(hold->all->engine) && !timer_is_set(&hold->timer)) {
		timer_set(&hold->timer, pause + 1);
	}
}
