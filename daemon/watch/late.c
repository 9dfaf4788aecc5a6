/*
 * late.c: see late.h.
 */
#include "daemon/watch/late.h"

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/server.h"
#include "daemon/watch/report.h"

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

/* Between two looks, however many deadlines there are; and so many times what the last one took. */
#define LOOK_EVERY_NS NSEC_PER_MSEC
#define LOOK_REST     20

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct late *late = userdata;

	late->due = 0;
	late_look(late);
}

void late_init(struct late *late, struct server *server) {
	*late = (struct late){.server = server};
	event_assign(&late->timer, server->base, -1, EV_TIMEOUT, on_timer, late);
}

void late_deinit(struct late *late) {
	event_del(&late->timer);
}

static void set_timer(struct late *late, nsec_t due) {
	nsec_t now = late->server->now(), soonest = now + LOOK_EVERY_NS;
	struct timeval t;

	soonest = soonest > late->rest ? soonest : late->rest;
	due = due > soonest ? due : soonest;
	t = util_timeval(due - now + 1);
	if (event_add(&late->timer, &t) == 0) {
		late->due = due;
	}
}

void late_expect(struct late *late, nsec_t deadline) {
	if (deadline && feed_wanted(&late->server->feed) && (!late->due || deadline < late->due)) {
		set_timer(late, deadline);
	}
}

bool late_is_late(const struct job *job, nsec_t now) {
	return job->deadline && job->deadline < now;
}

static void look_at(const struct server *server, struct job *job, nsec_t now) {
	const struct sched_job *decided = sched_job(engine_sched(server->engine), job->sched_id);

	if (!job->told_late && late_is_late(job, now)) {
		job->told_late = true;
		report_job(job, KIND(JOB_LATE));
	}
	if (!job->told_overrun && decided && decided->overrun) {
		job->told_overrun = true;
		report_job(job, KIND(JOB_OVERRUN));
	}
}

void late_look(struct late *late) {
	struct server *server = late->server;
	nsec_t now = server->now(), next = 0, end;
	struct session *session;
	struct job *job;

	TAILQ_FOREACH(session, &server->sessions, link) {
		TAILQ_FOREACH(job, &session->jobs, link) {
			look_at(server, job, now);
			if (job->deadline && !job->told_late && (!next || job->deadline < next)) {
				next = job->deadline;
			}
		}
	}
	end = server->now();
	late->rest = end + LOOK_REST * (end - now);
	if (next) {
		late_expect(late, next);
	}
}
