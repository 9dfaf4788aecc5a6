/*
 * steer.c: see steer.h.
 */
#include "daemon/session/steer.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/planner.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session.h"
#include "daemon/session/writer.h"

/* ---- one GPU ---- */

static void changed_at(struct steer_gpu *g) {
	g->steer->changed |= BIT(g->gpu);
}

static void look_at_gpu(struct steer_gpu *g) {
	struct terms terms[MODEL_TASKS_MAX];
	int from[MODEL_TASKS_MAX];
	enum scene_change change;
	struct scene scene;
	bool planned;

	g->steer->changed &= ~BIT(g->gpu);
	writer_tell_deadlines(g->steer->sessions, g->gpu);
	scene_look(g->steer->sessions, g->gpu, &scene);
	log_debug("GPU %zu: %u programs are there", g->gpu, scene.n);
	g->loose = scene.loose;
	g->lowest = scene.lowest;
	writer_set_others(&scene, g->steer->sessions);
	change = scene_compare(&scene, &g->past, from);
	if (change == SCENE_SAME) {
		return;
	}
	scene_remember(&scene, &g->past);
	planned = planning_follow(&g->planning, &scene, change, from, g->steer->window);
	if (planned) {
		sharing_stop(&g->sharing);
	} else {
		sharing_follow(&g->sharing, &scene);
	}
	if (!planning_holds(&g->planning)) {
		sharing_write(&g->sharing, &scene, terms);
		if (planned) {
			planning_begin(&g->planning, &scene, terms);
		}
	}
}

/* Return: whether the programs of @ret are those of the last look; else it looks again soon. */
static bool is_same(struct steer_gpu *g, struct scene *ret) {
	int from[MODEL_TASKS_MAX];

	scene_look(g->steer->sessions, g->gpu, ret);
	if (scene_compare(ret, &g->past, from) == SCENE_SAME) {
		return true;
	}
	changed_at(g);
	return false;
}

static void on_sharing(int fd, short what, void *userdata) {
	struct steer_gpu *g = userdata;
	struct scene scene;

	(void)fd;
	(void)what;
	if (is_same(g, &scene)) {
		sharing_look(&g->sharing, &scene, g->steer->sessions->now());
	}
}

static bool needs_board(const struct session *s) {
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		const struct terms *t = &s->terms.now[i];

		if (t->copies != TERMS_COPIES_WHOLE || t->awaited || t->yields) {
			return true;
		}
	}
	return false;
}

/* To those whose copies are held, who are awaited, or who yield: without it their work goes as
 * ever.
 */
static void hand_out_boards(struct sessions *all) {
	struct session *s, *next;

	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->takes_board && !s->seat.board && s->state == SESSION_ACTIVE &&
		    needs_board(s) && board_join(&all->boards, s->cred.uid, &s->seat) == 0) {
			session_say_board(s); /* may end it */
		}
	}
}

static void on_judge(int fd, short what, void *userdata) {
	struct steer_gpu *g = userdata;
	struct scene scene;

	(void)fd;
	(void)what;
	if (is_same(g, &scene)) {
		planning_judge(&g->planning, &scene);
		hand_out_boards(g->steer->sessions);
	}
}

static void on_planned(void *userdata, size_t gpu, struct plan *plan) {
	struct steer *steer = userdata;
	struct steer_gpu *g = &steer->gpus[gpu];
	int from[MODEL_TASKS_MAX];
	enum scene_change change;
	struct scene scene;

	scene_look(steer->sessions, gpu, &scene);
	change = scene_compare(&scene, &g->past, from);
	if (change != SCENE_SAME) {
		changed_at(g); /* a new one will be made, or none is needed */
		if (change == SCENE_TASKS || !g->planning.awaits) {
			return;
		}
		look_at_gpu(g);
	}
	planning_answer(&g->planning, &scene, plan);
	hand_out_boards(steer->sessions);
}

/* ---- one program ---- */

/* Whether the terms of others on this GPU depend on @s, as the GPU was last looked at, or would if
 * it was now. */
static bool matters(const struct steer_gpu *g, const struct scene *gpu, const struct session *s,
		    bool is_new) {
	for (unsigned i = 0; i < g->past.n; i++) {
		if (g->past.members[i].line == s->line) {
			return true;
		}
	}
	if (gpu->steered && g->past.n < MODEL_TASKS_MAX && scene_is_present(s, g->gpu)) {
		return true;
	}
	/* Who is more urgent than the least urgent rings. */
	return gpu->sliced &&
	       (is_new ? preempting_urgency(s) < g->lowest : preempting_urgency(s) <= g->lowest);
}

/* Return: whether all have to be looked at; else the terms of @s alone were written. */
static bool session_changed_at(struct steer_gpu *g, struct session *s, bool is_new) {
	struct scene scene;

	scene_look_at_gpu(g->steer->sessions, g->gpu, &scene);
	if (matters(g, &scene, s, is_new)) {
		changed_at(g);
		return true;
	}
	if (s->terms.page && s->state == SESSION_ACTIVE) {
		scene.loose = g->loose;
		scene.lowest = g->lowest;
		writer_tell_deadline(s, g->gpu);
		writer_set_other(&scene, s);
	}
	return false;
}

void steer_session_changed(struct steer *steer, struct session *s) {
	const struct sched *sched = engine_sched(steer->sessions->engine);

	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		session_changed_at(&steer->gpus[i], s, false);
	}
	steer->any_changed = true;
}

void steer_welcome(struct steer *steer, struct session *s) {
	const struct sched *sched = engine_sched(steer->sessions->engine);

	for (size_t i = 0; s->terms.page && i < sched_n_gpus(sched); i++) {
		if (session_changed_at(&steer->gpus[i], s, true)) {
			look_at_gpu(&steer->gpus[i]);
		}
	}
	steer->any_changed = true;
}

/* ---- all ---- */

void steer_changed(struct steer *steer) {
	steer->changed = UINT32_MAX;
	steer->any_changed = true;
}

static void on_preempter(void *userdata) {
	steer_changed(userdata);
}

void steer_init(struct steer *steer, struct sessions *sessions, struct event_base *base,
		nsec_t window, bool may_preempt, nsec_t turn, const char *state) {
	int r;

	*steer = (struct steer){.sessions = sessions, .window = window};
	steer_changed(steer);
	preempting_init(&steer->preempting, sessions, base, may_preempt, turn, state);
	r = planner_new(&steer->planner, base, planner_threads(), on_planned, steer);
	if (r < 0) {
		log_warning("no plans are made, programs are steered by the rule alone: %s",
			    strerror(-r));
	}
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		struct steer_gpu *g = &steer->gpus[i];

		g->steer = steer;
		g->gpu = i;
		planning_init(&g->planning, sessions, steer->planner, i, on_judge, g);
		sharing_init(&g->sharing, base, on_sharing, g);
	}
}

void steer_deinit(struct steer *steer) {
	preempting_deinit(&steer->preempting);
	steer->planner = planner_free(steer->planner);
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		planning_deinit(&steer->gpus[i].planning);
		sharing_stop(&steer->gpus[i].sharing);
	}
}

/* What its job takes alone, on the GPU of these where it takes longest; 0: not known. */
static nsec_t needed_by(const struct steer *steer, const struct session *s) {
	nsec_t longest = 0;

	for (size_t i = 0; i < sched_n_gpus(engine_sched(steer->sessions->engine)); i++) {
		struct plan_task t;
		nsec_t needed;

		if (!s->terms.now[i].sliced) {
			continue;
		}
		t = scene_task(s, i);
		if (t.known) {
			needed = t.model.copy_in + t.model.copy_out +
				 t.model.kernels[inventory_gpu(steer->sessions->inventory, i)
							 ->n_sms];
			longest = needed > longest ? needed : longest;
		}
	}
	return longest;
}

static void tell_needed(const struct steer *steer) {
	struct session *s;

	TAILQ_FOREACH(s, &steer->sessions->list, link) {
		s->owner.needed = needed_by(steer, s);
	}
}

/* GPUs that are drained or lost. */
static uint32_t closed_gpus(const struct steer *steer) {
	const struct sched *sched = engine_sched(steer->sessions->engine);
	uint32_t closed = 0;

	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		if (sched_gpu(sched, i)->drained ||
		    inventory_gpu(steer->sessions->inventory, i)->lost) {
			closed |= BIT(i);
		}
	}
	return closed;
}

/* Programs of a GPU that has become shared through MPS, or is not any more, get all terms anew. */
static void follow_slices(struct steer *steer) {
	uint32_t sliced = 0;

	for (size_t i = 0; i < sched_n_gpus(engine_sched(steer->sessions->engine)); i++) {
		if (preempting_is_sliced(steer->sessions, i)) {
			sliced |= BIT(i);
		}
		if ((sliced ^ steer->sliced) & BIT(i)) {
			steer->gpus[i].past = (struct scene_past){0};
			steer_changed(steer);
		}
	}
	steer->sliced = sliced;
}

void steer_look(struct steer *steer) {
	const struct sched *sched = engine_sched(steer->sessions->engine);
	const struct sched_policy *policy = sched_get_policy(sched);
	uint32_t closed = closed_gpus(steer);

	follow_slices(steer);
	if (policy != steer->policy || closed != steer->closed) {
		steer->policy = policy;
		steer->closed = closed;
		steer_changed(steer);
	}
	if (!steer->changed && !steer->any_changed) {
		return;
	}
	steer->any_changed = false;
	preempting_start(&steer->preempting, policy, on_preempter, steer);
	preempting_readmit(&steer->preempting);
	engine_set_preempts(steer->sessions->engine, preempter_works(steer->sessions->preempter));
	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		if (steer->changed & BIT(i)) {
			look_at_gpu(&steer->gpus[i]);
		}
	}
	steer->changed = 0; /* of those that are not there */
	hand_out_boards(steer->sessions);
	tell_needed(steer);
	preempting_hand_over(&steer->preempting);
}

bool steer_explain(const struct steer *steer, const struct session *s, size_t gpu,
		   struct steer_told *ret) {
	const struct steer_gpu *g = &steer->gpus[gpu];
	const struct planning *p = &g->planning;

	for (unsigned i = 0; planning_holds(p) && i < g->past.n; i++) {
		if (g->past.members[i].line == s->line && s->terms.now[gpu].steered) {
			*ret = (struct steer_told){
				.plans = p->plans,
				.verdict = p->judged ? tune_action_name(p->action) : NULL,
				.slow = p->tune.slow[i],
				.since = p->since,
				.predicted = tune_way(&p->tune)->predicted[i],
				.seen = planning_seen(p, s, i),
			};
			return true;
		}
	}
	return false;
}
