/*
 * scene.c: see scene.h.
 */
#include "daemon/session/scene.h"

#include <string.h>

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/allocations.h"
#include "daemon/session/preempting.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "proto/enforcement.h"

/* Between two kernels of a job (launches under MPS, HARDWARE.md). */
#define LAUNCH_GAP 2500

/* Of a job that can be predicted. */
#define LAUNCHES_MAX 100000

/* Programs with a deadline take little of a GPU up to this part of its time, and are in time if
 * together they take no more than this part of the shortest deadline. */
#define LITTLE_PART  0.35
#define IN_TIME_PART 0.8

bool scene_is_urgent(const struct session *s) {
	return s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME && s->task.deadline > 0;
}

const struct smset *scene_own_sms(const struct session *s, size_t gpu) {
	return allocations_sms(s->all->allocations, s->allocation, gpu);
}

bool scene_makes_sets(const struct session *s) {
	return s->enforcement_mask & ENFORCEMENT_BIT(GREEN);
}

bool scene_terms_of_sms(const struct session *s, size_t gpu, const struct smset *sms,
			struct terms *ret) {
	unsigned n_sms = inventory_gpu(s->all->inventory, gpu)->n_sms, group;
	struct terms t = {.steered = true};
	struct smset same;

	engine_steers(s->all->engine, gpu, &group);
	if (smset_count(sms) == n_sms) {
		*ret = t;
		return true;
	}
	if (group == 0 || !scene_makes_sets(s)) {
		return false;
	}
	t.group = group;
	t.first = (unsigned)smset_next(sms, 0) / group;
	for (t.n = 1; terms_sms(&t, n_sms, &same) == 0; t.n++) {
		if (smset_equal(&same, sms)) {
			*ret = t;
			return true;
		}
	}
	return false;
}

/* Whether it may run there without asking, as far as its allocation is concerned: not before it has
 * the green context, for which nobody waits under terms. */
static bool may_be_steered(const struct session *s, size_t gpu) {
	const struct smset *own = scene_own_sms(s, gpu);
	struct terms t;

	return allocations_may_use(s->all->allocations, s->allocation, gpu) &&
	       (!own || ((s->held & BIT(gpu)) && scene_terms_of_sms(s, gpu, own, &t)));
}

bool scene_is_steered(const struct session *s, size_t gpu) {
	return s->terms.page && s->state == SESSION_ACTIVE && !quiet_withholds(s) &&
	       !(session_mps_apart(s) & BIT(gpu)) && (s->task.gpu < 0 || s->task.gpu == (int)gpu) &&
	       may_be_steered(s, gpu) &&
	       !(s->owner.left_out && preempting_is_sliced(s->all, gpu));
}

bool scene_is_present(const struct session *s, size_t gpu) {
	return scene_is_steered(s, gpu) && !scene_own_sms(s, gpu) &&
	       (s->gpus == 0 || (s->gpus & BIT(gpu)));
}

struct plan_task scene_task(const struct session *s, size_t gpu) {
	const struct sched *sched = engine_sched(s->all->engine);
	uint64_t launches, waves;
	const struct profile_table *p = NULL;
	struct plan_task t = {.known = false};

	if (scene_is_urgent(s)) {
		t.model.period = s->task.period;
		t.model.deadline = s->task.deadline;
	}
	t.copies_nothing = work_seen_copies_nothing(&s->seen);
	if (s->sched_task != SCHED_TASK_NONE) {
		p = sched_task(sched, s->sched_task)->profiles[gpu];
	}
	if (!p || !work_seen_shape(&s->seen, &launches, &waves) || launches > LAUNCHES_MAX) {
		return t;
	}
	t.known = true;
	t.model.copy_in = p->copy_in;
	t.model.copy_out = p->copy_out;
	t.model.launches = (unsigned)launches;
	t.model.block = profile_exec(p, p->n_sms) / waves;
	t.model.gap = LAUNCH_GAP;
	t.model.kernels = p->exec;
	return t;
}

static struct scene_member member_of(const struct session *s, const struct plan_task *task) {
	return (struct scene_member){
		.line = s->line,
		.deadline = task->model.deadline,
		.tasks = s->seen.tasks,
		.shapes = task->known ? s->seen.shapes : 0,
		.known = task->known,
		.copies_nothing = !task->known && task->copies_nothing,
	};
}

/* Why programs on @gpu ask for their jobs. NULL: they are steered. @ret_group: as engine_steers().
 */
static const char *why_withdrawn(const struct sessions *all, size_t gpu, unsigned *ret_group) {
	const struct sched *sched = engine_sched(all->engine);
	bool steers = engine_steers(all->engine, gpu, ret_group);

	if (inventory_gpu(all->inventory, gpu)->lost) {
		return "the GPU is lost: the driver can't reach it";
	}
	return steers				  ? NULL
	       : sched_gpu(sched, gpu)->drained	  ? "the GPU is drained"
	       : !sched_get_policy(sched)->steers ? "the policy is not steer"
	       : preempting_is_sliced(all, gpu)
		       ? "the GPU is not shared through MPS, and programs are not "
			 "preempted"
		       : "sbeetd is being stopped";
}

void scene_look_at_gpu(const struct sessions *all, size_t gpu, struct scene *ret) {
	const struct sched_params *params = sched_get_params(engine_sched(all->engine));

	*ret = (struct scene){.gpu = gpu, .lowest = UINT64_MAX};
	ret->withdrawn = why_withdrawn(all, gpu, &ret->cut.group);
	ret->steered = !ret->withdrawn;
	ret->cut.gates = params->yield;
	ret->cut.guards = params->guard;
	ret->cut.sms = inventory_gpu(all->inventory, gpu)->n_sms;
	ret->sliced = ret->steered && preempting_is_sliced(all, gpu);
}

void scene_look(const struct sessions *all, size_t gpu, struct scene *ret) {
	struct session *s;

	scene_look_at_gpu(all, gpu, ret);
	TAILQ_FOREACH(s, &all->list, link) {
		if (ret->sliced && scene_is_steered(s, gpu) &&
		    preempting_urgency(s) < ret->lowest) {
			ret->lowest = preempting_urgency(s);
		}
		if (ret->steered && scene_is_present(s, gpu) && ret->n < MODEL_TASKS_MAX) {
			ret->loose |= !scene_is_urgent(s) &&
				      (ret->cut.group == 0 || !scene_makes_sets(s));
			ret->sessions[ret->n] = s;
			ret->tasks[ret->n] = scene_task(s, gpu);
			ret->members[ret->n] = member_of(s, &ret->tasks[ret->n]);
			ret->n_urgent += ret->members[ret->n].deadline > 0;
			ret->n++;
		}
	}
}

bool scene_can_share(const struct scene *scene) {
	return scene->n_urgent > 0 && scene->n_urgent < scene->n && scene->cut.group > 0 &&
	       !scene->sliced && !scene->loose &&
	       terms_groups(scene->cut.sms, scene->cut.group) >= 2;
}

/* How long a job takes alone, on all SMs. */
static nsec_t alone(const struct scene *scene, unsigned i) {
	const struct model_task *t = &scene->tasks[i].model;

	return t->copy_in + t->kernels[scene->cut.sms] + t->copy_out;
}

bool scene_is_better_measured(const struct scene *scene) {
	unsigned n_unknown = 0;
	nsec_t all = 0, shortest = UINT64_MAX;
	double part = 0;

	for (unsigned i = 0; i < scene->n; i++) {
		const struct model_task *t = &scene->tasks[i].model;

		n_unknown += !scene->tasks[i].known;
		if (t->deadline > 0) {
			shortest = t->deadline < shortest ? t->deadline : shortest;
		}
		if (t->deadline > 0 && scene->tasks[i].known) {
			all += alone(scene, i);
			part += t->period ? (double)alone(scene, i) / (double)t->period : 1;
		}
	}
	return n_unknown > 0 && scene_can_share(scene) &&
	       (scene->n_urgent == 1 ||
		(part <= LITTLE_PART && (double)all <= IN_TIME_PART * (double)shortest));
}

void scene_remember(const struct scene *scene, struct scene_past *ret) {
	memcpy(ret->members, scene->members, scene->n * sizeof(*scene->members));
	ret->n = scene->n;
	ret->n_urgent = scene->n_urgent;
	ret->cut = scene->cut;
}

static int number_in(const struct scene_past *past, const struct scene_member *member) {
	for (unsigned i = 0; i < past->n; i++) {
		if (past->members[i].line == member->line &&
		    past->members[i].tasks == member->tasks) {
			return (int)i;
		}
	}
	return -1;
}

bool scene_follows(const struct scene *scene, const struct scene_past *past,
		   int from[static MODEL_TASKS_MAX]) {
	unsigned n_stayed = 0;

	for (unsigned i = 0; i < scene->n; i++) {
		from[i] = number_in(past, &scene->members[i]);
		n_stayed += scene->members[i].deadline > 0 && from[i] >= 0;
	}
	return n_stayed == past->n_urgent && n_stayed == scene->n_urgent &&
	       past->cut.sms == scene->cut.sms && past->cut.group == scene->cut.group &&
	       past->cut.gates == scene->cut.gates && past->cut.guards == scene->cut.guards;
}

static bool is_known_otherwise(const struct scene_member *a, const struct scene_member *b) {
	return a->shapes != b->shapes || a->known != b->known ||
	       a->copies_nothing != b->copies_nothing;
}

enum scene_change scene_compare(const struct scene *scene, const struct scene_past *past,
				int from[static MODEL_TASKS_MAX]) {
	bool others = past->n != scene->n, known = false;

	if (!scene_follows(scene, past, from)) {
		return SCENE_TASKS;
	}
	for (unsigned i = 0; i < scene->n; i++) {
		const struct scene_member *now = &scene->members[i];

		if (from[i] >= 0 && !scene->sessions[i]->terms.now[scene->gpu].steered) {
			return SCENE_TASKS; /* a new page says nothing yet */
		}
		if (from[i] >= 0 && is_known_otherwise(&past->members[from[i]], now)) {
			known |= now->deadline > 0;
			others |= now->deadline == 0;
		}
		others |= from[i] != (int)i;
	}
	return known ? SCENE_KNOWN : others ? SCENE_OTHERS : SCENE_SAME;
}
