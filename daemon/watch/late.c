/* late.c: see late.h. */
#include "daemon/watch/late.h"

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/session/session.h"
#include "daemon/watch/report.h"
#include "daemon/watch/watched.h"

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

/* Between two looks, however many deadlines there are; and so many times what the last one took. */
#define LOOK_EVERY_NS NSEC_PER_MSEC
#define LOOK_REST     20

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct late *late = userdata;

	late->due = 0;
	late_look(late);
}

void late_init(struct late *late, const struct watched *watched, struct report *report) {
	*late = (struct late){.watched = watched, .report = report};
	timer_init(&late->timer, watched->base, on_timer, late);
}

void late_deinit(struct late *late) {
	timer_stop(&late->timer);
}

static void set_timer(struct late *late, nsec_t due) {
	nsec_t now = late->watched->now(), soonest = now + LOOK_EVERY_NS;

	soonest = soonest > late->rest ? soonest : late->rest;
	due = due > soonest ? due : soonest;
	timer_set(&late->timer, due - now + 1);
	late->due = due;
}

static void expect(struct late *late, nsec_t deadline) {
	if (deadline && feed_wanted(&late->report->feed) && (!late->due || deadline < late->due)) {
		set_timer(late, deadline);
	}
}

void late_watch(struct late *late) {
	expect(late, report_take_deadline(late->report));
}

bool late_is_late(const struct job *job, nsec_t now) {
	return job->record.deadline && job->record.deadline < now;
}

static void look_at(struct late *late, struct job *job, nsec_t now) {
	const struct sched_job *decided =
		sched_job(engine_sched(late->watched->engine), job->sched_id);

	if (!job->told_late && late_is_late(job, now)) {
		job->told_late = true;
		report_job(late->report, job, KIND(JOB_LATE));
	}
	if (!job->told_overrun && decided && decided->overrun) {
		job->told_overrun = true;
		report_job(late->report, job, KIND(JOB_OVERRUN));
	}
}

void late_look(struct late *late) {
	nsec_t now = late->watched->now(), next = 0, end;
	struct session *session;
	struct job *job;

	TAILQ_FOREACH(session, late->watched->sessions, link) {
		TAILQ_FOREACH(job, &session->jobs, link) {
			look_at(late, job, now);
			if (job->record.deadline && !job->told_late &&
			    (!next || job->record.deadline < next)) {
				next = job->record.deadline;
			}
		}
	}
	end = late->watched->now();
	late->rest = end + LOOK_REST * (end - now);
	expect(late, next);
}
