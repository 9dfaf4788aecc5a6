/*
 * sharing.c: see sharing.h.
 */
#include "daemon/session/sharing.h"

#include <string.h>

#include "daemon/session/session.h"

void sharing_init(struct sharing *s, struct event_base *base, event_callback_fn fn,
		  void *userdata) {
	*s = (struct sharing){.pause = share_pause(0, true)};
	event_assign(&s->timer, base, -1, 0, fn, userdata);
}

/* Since the session is there, but for `longest`: since this was asked last. Of jobs that were not
 * cold. */
static struct share_seen seen_of(struct session *session) {
	const struct session_counters *c = &session->counters;
	bool realtime = session->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	struct share_seen seen = {
		.deadline = realtime ? session->task.deadline : 0,
		.busy = session->n_jobs > 0,
		.jobs = c->jobs - c->cold_jobs,
		.missed = c->misses - c->cold_misses,
		.launches = c->launches - c->cold_launches,
		.response = c->responses - c->cold_responses,
		.longest = c->max_response_since,
		.unreported = c->unreported,
	};

	session->counters.max_response_since = 0;
	return seen;
}

static void wait(struct sharing *s) {
	struct timeval tv = nsec_timeval(s->pause);

	event_add(&s->timer, &tv);
}

/* Those of the last look, of programs that it has seen. */
static void find_counters(struct sharing *s, const struct scene *scene, const int *from) {
	struct share_seen before[MODEL_TASKS_MAX];

	memcpy(before, s->before, sizeof(before));
	for (unsigned i = 0; i < scene->n; i++) {
		s->before[i] =
			s->on && from[i] >= 0 ? before[from[i]] : seen_of(scene->sessions[i]);
	}
}

void sharing_start(struct sharing *s, const struct scene *scene) {
	int from[MODEL_TASKS_MAX] = {0};

	if (s->past.n > 0 && scene_follows(scene, &s->past, from)) {
		share_move(&s->share, from, scene->n);
	} else {
		share_start(&s->share, scene->n, &scene->cut);
		s->on = false;
	}
	find_counters(s, scene, from);
	scene_remember(scene, &s->past);
	if (!s->on) {
		s->on = true;
		s->pause = share_pause(0, true);
		s->looked = 0;
	}
	if (!event_pending(&s->timer, EV_TIMEOUT, NULL)) {
		wait(s);
	}
}

void sharing_stop(struct sharing *s) {
	s->on = false;
	event_del(&s->timer);
}

bool sharing_look(struct sharing *s, struct session *const *sessions, nsec_t now) {
	struct share_seen seen[MODEL_TASKS_MAX] = {0};
	bool busy = false, changed;

	for (unsigned i = 0; i < s->share.n; i++) {
		const struct share_seen *before = &s->before[i];
		struct share_seen latest = seen_of(sessions[i]);

		seen[i] = latest;
		seen[i].jobs -= before->jobs;
		seen[i].missed -= before->missed;
		seen[i].launches -= before->launches;
		seen[i].response -= before->response;
		seen[i].unreported -= before->unreported;
		busy |= seen[i].busy || seen[i].jobs > 0;
		s->before[i] = latest;
	}
	changed = share_look(&s->share, seen, s->looked ? now - s->looked : 0);
	s->looked = now;
	s->pause = share_pause(s->pause, busy);
	wait(s);
	return changed;
}
