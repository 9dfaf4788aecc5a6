/*
 * writer.c: see writer.h.
 */
#include "daemon/session/writer.h"

#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/session/preempting.h"
#include "daemon/session/scene.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session.h"

/* How many groups at least, and at most, by the bounds of the task; the most counts. */
static unsigned clamp_groups(const struct plan_gpu *cut, const struct task_spec *task, unsigned n) {
	unsigned n_groups = terms_groups(cut->sms, cut->group);
	unsigned least = (task->job.min_sms + cut->group - 1) / cut->group;
	unsigned most = task->job.max_sms > 0 ? task->job.max_sms / cut->group : n_groups;

	n = n < least ? least : n;
	n = n > most ? most : n;
	return n < 1 ? 1 : n > n_groups ? n_groups : n;
}

const char writer_sliced[] =
	"the GPU is shared by time slices, and programs are preempted for more urgent ones";

static const char reason_allocated[] = "the SMs of its allocation";

static const char reason_bounds[] = "min-sms or max-sms of its task";

/* @t within the bounds of the program and its task. @reason: of @t; another one where they count.
 */
static struct terms within_bounds(const struct scene *scene, const struct session *s,
				  struct terms t, const char **reason) {
	unsigned n_groups = terms_groups(scene->cut.sms, scene->cut.group), n;
	unsigned wanted = t.n > 0 ? t.n : n_groups;
	bool lower = t.first == 0 && (t.n > 0 || scene_is_urgent(s));

	n = clamp_groups(&scene->cut, &s->task, wanted);
	*reason = n != wanted ? reason_bounds : *reason;
	t.n = 0;
	t.first = t.group = 0;
	if (!scene_makes_sets(s)) {
		*reason = "the program can't be kept to a part of the GPU";
	} else if (n < n_groups) {
		t.n = n;
		t.group = scene->cut.group;
		t.first = lower ? 0 : n_groups - n;
	}
	return t;
}

/* As many SMs of its allocation as its task may have. */
static void within_allocation(const struct scene *scene, const struct session *s, struct terms *t) {
	struct terms own = *t;
	unsigned most;

	if (scene_terms_of_sms(s, scene->gpu, scene_own_sms(s, scene->gpu), &own) && own.n > 0) {
		most = clamp_groups(&scene->cut, &s->task, own.n);
		t->first = own.first;
		t->n = most < own.n ? most : own.n;
		t->group = own.group;
		t->level = 0; /* as it has it */
	}
}

static void log_terms(const struct session *s, const struct scene *scene) {
	const struct terms *t = &s->terms.now[scene->gpu];
	char text[SMSET_TEXT_MAX] = "", level[32] = "", marks[TERMS_MARKS_MAX];
	struct smset sms;

	if (terms_sms(t, scene->cut.sms, &sms) == 0) {
		smset_print(&sms, text, sizeof(text));
	}
	if (t->level > 0) {
		snprintf(level, sizeof(level), ", level %u", t->level);
	}
	terms_print_marks(t, marks);
	log_debug("session %llu ('%s') %s GPU %zu%s%s%s%s", (unsigned long long)s->id, s->task.name,
		  t->steered ? "is steered on" : "asks for its jobs on", scene->gpu,
		  *text ? ": SMs " : "", text, level, marks);
}

/* One kernel of @s on the SMs of @t, as profiled; 0: nobody has. */
static nsec_t kernel_of(const struct scene *scene, const struct session *s, const struct terms *t) {
	const struct plan_task task = scene_task(s, scene->gpu);
	struct smset sms;

	return task.known && terms_sms(t, scene->cut.sms, &sms) == 0
		       ? task.model.kernels[smset_count(&sms)] / task.model.launches
		       : 0;
}

void writer_set(const struct scene *scene, struct session *s, const struct terms *terms,
		const char *reason) {
	struct terms t = *terms;

	if (t.steered && scene->sliced) {
		t.sliced = true;
		t.rings = preempting_urgency(s) > scene->lowest;
	} else if (t.steered && scene->loose && scene_is_urgent(s)) {
		/* Without a free SM a level costs nothing: see HARDWARE.md. */
		t.level = PROTO_TERMS_LEVEL_MAX;
	}
	if (t.steered && scene_own_sms(s, scene->gpu)) {
		within_allocation(scene, s, &t);
		reason = reason_allocated;
	} else if (t.steered && scene->cut.group > 0) {
		t = within_bounds(scene, s, t, &reason);
	}
	s->terms.reason[scene->gpu] = reason;
	session_terms_set_kernel(&s->terms, scene->gpu, kernel_of(scene, s, &t));
	if (session_terms_set(&s->terms, scene->gpu, &t, s->all->now())) {
		log_terms(s, scene);
	}
}

void writer_set_other(const struct scene *scene, struct session *s) {
	struct terms t = {.steered = scene->steered && scene_is_steered(s, scene->gpu)};

	writer_set(scene, s, &t,
		   scene->withdrawn ? scene->withdrawn
		   : session_mps_apart(s) & BIT(scene->gpu)
			   ? "it is no client of MPS, through which others share the GPU"
		   : !t.steered && s->owner.left_out
			   ? "the process that preempts has no place for it, see its preemption"
		   : !t.steered ? "its task may not use this GPU, or its program is being ended"
		   : !scene_is_present(s, scene->gpu) ? "it does not run there yet"
		   : scene->sliced		      ? writer_sliced
						      : "too many programs are there to plan for");
}

void writer_set_others(const struct scene *scene, const struct sessions *all) {
	unsigned member = 0; /* the next; they are in the order of the list */
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (member < scene->n && scene->sessions[member] == s) {
			member++;
		} else if (s->terms.page) {
			writer_set_other(scene, s);
		}
	}
}

void writer_tell_deadline(struct session *s, size_t gpu) {
	const struct plan_task t = scene_task(s, gpu);

	session_terms_set_next(&s->terms, gpu, t.model.period, t.model.copy_in);
	session_terms_set_due(&s->terms, gpu,
			      scene_is_urgent(s) && !s->terms.hopeless[gpu] ? s->task.deadline : 0,
			      s->terms.tail[gpu], t.model.period);
}

void writer_tell_deadlines(const struct sessions *all, size_t gpu) {
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->terms.page) {
			writer_tell_deadline(s, gpu);
		}
	}
}
