/*
 * steer.c: see steer.h.
 */
#include "daemon/session/steer.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/session.h"
#include "proto/enforcement.h"

/* What the terms on one GPU depend on. */
struct scene {
	size_t gpu;
	unsigned n_sms, group, n_groups; /* group 0: sets can't be made */
	bool urgent, others;		 /* programs with a deadline, and without */
	/* The shortest deadlines, ascending. */
	nsec_t deadlines[PROTO_TERMS_LEVEL_MAX];
	size_t n_deadlines;
};

void steer_init(struct steer *steer, struct sessions *sessions) {
	*steer = (struct steer){.sessions = sessions, .changed = true};
}

void steer_changed(struct steer *steer) {
	steer->changed = true;
}

static bool is_urgent(const struct session *s) {
	return s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME && s->task.deadline > 0;
}

/* Whether it has terms on a GPU that is steered. */
static bool is_steered(const struct session *s, size_t gpu) {
	return s->terms.page && s->state == SESSION_ACTIVE && !quiet_withholds(s) &&
	       (s->task.gpu < 0 || s->task.gpu == (int)gpu);
}

/* Whether others have to reckon with it there. */
static bool is_present(const struct session *s, size_t gpu) {
	return is_steered(s, gpu) && (s->gpus == 0 || (s->gpus & BIT(gpu)));
}

static void note_deadline(struct scene *scene, nsec_t deadline) {
	size_t at = 0;

	while (at < scene->n_deadlines && scene->deadlines[at] < deadline) {
		at++;
	}
	if (at == PROTO_TERMS_LEVEL_MAX ||
	    (at < scene->n_deadlines && scene->deadlines[at] == deadline)) {
		return;
	}
	scene->n_deadlines += scene->n_deadlines < PROTO_TERMS_LEVEL_MAX;
	memmove(&scene->deadlines[at + 1], &scene->deadlines[at],
		(scene->n_deadlines - at - 1) * sizeof(nsec_t));
	scene->deadlines[at] = deadline;
}

/* The shortest deadline has the greatest level; those without one have level 0. */
static unsigned level_of(const struct scene *scene, const struct session *s) {
	unsigned level = PROTO_TERMS_LEVEL_MAX;

	if (!is_urgent(s)) {
		return 0;
	}
	for (size_t i = 0; i < scene->n_deadlines && scene->deadlines[i] < s->task.deadline; i++) {
		level -= level > 1;
	}
	return level;
}

/* How many groups at least, and at most, by the bounds of the task; the most counts. */
static unsigned clamp_groups(const struct scene *scene, const struct task_spec *task, unsigned n) {
	unsigned least = (task->job.min_sms + scene->group - 1) / scene->group;
	unsigned most = task->job.max_sms > 0 ? task->job.max_sms / scene->group : scene->n_groups;

	n = n < least ? least : n;
	n = n > most ? most : n;
	return n < 1 ? 1 : n > scene->n_groups ? scene->n_groups : n;
}

/* Programs with a deadline have the lower half of the groups, the others the rest, as long as there
 * are both; else all of it. */
static struct terms terms_of(const struct scene *scene, const struct session *s,
			     const char **ret_reason) {
	bool green = s->enforcement_mask & ENFORCEMENT_BIT(GREEN), urgent = is_urgent(s);
	struct terms t = {.steered = true, .level = level_of(scene, s)};
	unsigned half = scene->n_groups / 2, n = scene->n_groups, wanted;

	*ret_reason = "sets of SMs can't be made there";
	if (!green || scene->n_groups < 2) {
		return t;
	}
	*ret_reason = "no programs have to be kept apart there";
	if (scene->urgent && scene->others) {
		*ret_reason = urgent ? "programs without a deadline are there, and kept away"
				     : "programs with a deadline are there, and not disturbed";
		n = urgent ? half : n - half;
	}
	wanted = n;
	n = clamp_groups(scene, &s->task, wanted);
	if (n != wanted) {
		*ret_reason = "min-sms or max-sms of its task";
	}
	if (n < scene->n_groups) {
		t.n = n;
		t.group = scene->group;
		t.first = urgent ? 0 : scene->n_groups - n;
	}
	return t;
}

static void log_terms(const struct session *s, size_t gpu, const struct scene *scene) {
	const struct terms *t = &s->terms.now[gpu];
	char text[SMSET_TEXT_MAX] = "";
	struct smset sms;

	if (terms_sms(t, scene->n_sms, &sms) == 0) {
		smset_print(&sms, text, sizeof(text));
	}
	log_debug("session %llu ('%s') %s GPU %zu%s%s, level %u", (unsigned long long)s->id,
		  s->task.name, t->steered ? "is steered on" : "asks for its jobs on", gpu,
		  *text ? ": SMs " : "", text, t->level);
}

/* @steered: the policy steers on this GPU. */
static void write_terms(struct steer *steer, const struct scene *scene, bool steered) {
	nsec_t now = steer->sessions->now();
	struct session *s;

	TAILQ_FOREACH(s, &steer->sessions->list, link) {
		const char *reason =
			"the policy does not steer there: it is not steer, the GPU "
			"is not shared through MPS, or it is drained";
		struct terms t = {.steered = false};

		if (!s->terms.page) {
			continue;
		}
		if (steered && is_steered(s, scene->gpu)) {
			t = terms_of(scene, s, &reason);
		} else if (steered) {
			reason = "its task may not use this GPU, or its program is being ended";
		}
		s->terms.reason[scene->gpu] = reason;
		if (session_terms_set(&s->terms, scene->gpu, &t, now)) {
			log_terms(s, scene->gpu, scene);
		}
	}
}

static void steer_gpu(struct steer *steer, size_t gpu) {
	struct scene scene = {.gpu = gpu};
	const struct session *s;
	bool steered = engine_steers(steer->sessions->engine, gpu, &scene.group);

	scene.n_sms = inventory_gpu(steer->sessions->inventory, gpu)->n_sms;
	scene.n_groups = scene.group > 0 ? terms_groups(scene.n_sms, scene.group) : 0;
	TAILQ_FOREACH(s, &steer->sessions->list, link) {
		if (!steered || !is_present(s, gpu)) {
			continue;
		}
		scene.urgent |= is_urgent(s);
		scene.others |= !is_urgent(s);
		if (is_urgent(s)) {
			note_deadline(&scene, s->task.deadline);
		}
	}
	write_terms(steer, &scene, steered);
}

static uint32_t drained_gpus(const struct sched *sched) {
	uint32_t drained = 0;

	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		drained |= sched_gpu(sched, i)->drained ? BIT(i) : 0;
	}
	return drained;
}

void steer_look(struct steer *steer) {
	const struct sched *sched = engine_sched(steer->sessions->engine);
	const struct sched_policy *policy = sched_get_policy(sched);
	uint32_t drained = drained_gpus(sched);

	if (!steer->changed && policy == steer->policy && drained == steer->drained) {
		return;
	}
	steer->changed = false;
	steer->policy = policy;
	steer->drained = drained;
	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		steer_gpu(steer, i);
	}
}
