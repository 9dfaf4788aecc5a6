/*
 * sharing.c: see sharing.h.
 */
#include "daemon/session/sharing.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/core/steer/renumber.h"
#include "daemon/session/session.h"
#include "daemon/session/writer.h"

void sharing_init(struct sharing *s, struct event_base *base, event_callback_fn fn,
		  void *userdata) {
	*s = (struct sharing){.pause = share_pause(0, true)};
	timer_init(&s->timer, base, fn, userdata);
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

/* Those of the last look, of programs that it has seen. */
static void find_counters(struct sharing *s, const struct scene *scene, const int *from) {
	if (s->on) {
		renumber(s->before, sizeof(*s->before), from, scene->n);
	}
	for (unsigned i = 0; i < scene->n; i++) {
		if (!s->on || from[i] < 0) {
			s->before[i] = seen_of(scene->sessions[i]);
		}
	}
}

static bool follows(const struct scene *scene, const struct sharing_known *known,
		    int from[static MODEL_TASKS_MAX]) {
	return known->past.n > 0 && scene_follows(scene, &known->past, from);
}

static void start(struct sharing *s, const struct scene *scene) {
	int from[MODEL_TASKS_MAX] = {0};

	if (!follows(scene, &s->known, from)) {
		const struct sharing_known before = s->known;

		s->on = false;
		s->known = s->other;
		s->other = before;
	}
	if (follows(scene, &s->known, from)) {
		share_move(&s->known.share, from, scene->n);
	} else {
		share_start(&s->known.share, scene->n, &scene->cut);
	}
	find_counters(s, scene, from);
	scene_remember(scene, &s->known.past);
	if (!s->on) { /* the last programs may have done nothing, and the next look be far off */
		s->on = true;
		s->pause = share_pause(0, true);
		s->looked = 0;
		timer_stop(&s->timer);
	}
	if (!timer_is_set(&s->timer)) {
		timer_set(&s->timer, s->pause);
	}
}

void sharing_follow(struct sharing *s, const struct scene *scene) {
	if (scene_can_share(scene)) {
		start(s, scene);
	} else {
		sharing_stop(s);
	}
}

void sharing_stop(struct sharing *s) {
	s->on = false;
	timer_stop(&s->timer);
}

void sharing_look(struct sharing *s, const struct scene *scene, nsec_t now) {
	struct terms terms[MODEL_TASKS_MAX];
	struct share_seen seen[MODEL_TASKS_MAX] = {0};
	bool busy = false, changed;

	for (unsigned i = 0; i < s->known.share.n; i++) {
		const struct share_seen *before = &s->before[i];
		struct share_seen latest = seen_of(scene->sessions[i]);

		seen[i] = latest;
		seen[i].jobs -= before->jobs;
		seen[i].missed -= before->missed;
		seen[i].launches -= before->launches;
		seen[i].response -= before->response;
		seen[i].unreported -= before->unreported;
		busy |= seen[i].busy || seen[i].jobs > 0;
		s->before[i] = latest;
	}
	changed = share_look(&s->known.share, seen, s->looked ? now - s->looked : 0);
	s->looked = now;
	s->pause = share_pause(s->pause, busy);
	timer_set(&s->timer, s->pause);
	if (changed) {
		log_debug("GPU %zu: programs %s a deadline get more of it", scene->gpu,
			  s->known.share.trying ? "without" : "with");
		sharing_write(s, scene, terms);
	}
}

/* ---- the terms ---- */

/* Why the rule gives the program @i these terms. */
static const char *rule_reason(const struct scene *scene, const struct terms *terms, unsigned i) {
	bool apart = false;

	if (scene->sliced) {
		return writer_sliced;
	}
	if (scene->cut.group == 0) {
		return "the programs there can't be kept to parts of the GPU";
	}
	for (unsigned k = 0; k < scene->n; k++) {
		apart |= terms[k].n > 0;
	}
	if (terms[i].n > 0) {
		return scene_is_urgent(scene->sessions[i])
			       ? "its blocks run long beside the deadlines of others"
			       : "programs with a deadline are there, and not disturbed";
	}
	return apart ? "programs without a deadline, or of long blocks, are there, and kept away"
		     : "no programs have to be kept apart there";
}

void sharing_write(const struct sharing *s, const struct scene *scene, struct terms *ret) {
	const struct share *share = s->on ? &s->known.share : NULL;
	nsec_t deadlines[MODEL_TASKS_MAX];

	for (unsigned i = 0; i < scene->n; i++) {
		ret[i] = (struct terms){.steered = true};
		deadlines[i] = scene->tasks[i].model.deadline;
	}
	if (scene->n > 0 && scene->cut.group > 0) {
		plan_rule(&scene->cut, scene->tasks, scene->n, ret);
	}
	if (share) {
		share_apply(share, deadlines, scene->cut.group, ret);
	}
	for (unsigned i = 0; i < scene->n; i++) {
		const char *reason = share ? share_reason(share, deadlines[i], i) : NULL;

		writer_set(scene, scene->sessions[i], &ret[i],
			   reason ? reason : rule_reason(scene, ret, i));
	}
}
