/*
 * planning.c: see planning.h.
 */
#include "daemon/session/planning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/core/steer/renumber.h"
#include "daemon/session/planner.h"
#include "daemon/session/session.h"
#include "daemon/session/writer.h"

void planning_init(struct planning *p, const struct sessions *all, struct planner *planner,
		   size_t gpu, event_callback_fn judge, void *userdata) {
	*p = (struct planning){.all = all, .planner = planner, .gpu = gpu};
	timer_init(&p->judge, all->base, judge, userdata);
}

void planning_deinit(struct planning *p) {
	timer_stop(&p->judge);
	free(p->kept);
}

bool planning_holds(const struct planning *p) {
	return p->plans > 0;
}

/* ---- the question ---- */

static void log_question(const struct planning *p, const struct scene *scene) {
	for (unsigned i = 0; i < scene->n; i++) {
		const struct model_task *t = &scene->tasks[i].model;

		if (scene->tasks[i].known) {
			log_debug(
				"session %llu ('%s'): jobs of %u launches, %llu us on all SMs, "
				"%.2f times as slow as profiled, in blocks of %llu us; %llu us "
				"of copies before them, %llu behind",
				(unsigned long long)scene->sessions[i]->id,
				scene->sessions[i]->task.name, t->launches,
				(unsigned long long)t->kernels[scene->cut.sms] / NSEC_PER_USEC,
				p->tune.slow[i], (unsigned long long)t->block / NSEC_PER_USEC,
				(unsigned long long)t->copy_in / NSEC_PER_USEC,
				(unsigned long long)t->copy_out / NSEC_PER_USEC);
		}
	}
}

/* No answer will come. */
static void forget_question(struct planning *p) {
	planner_cancel(p->planner, p->gpu);
	p->question.n = 0;
	p->awaits = p->outdated = false;
}

/* Asks for a plan with what is known of the tasks by now. If the last question has no answer yet,
 * that is awaited first: else programs that come and go kept all plans from being made. Return:
 * whether one will come. */
static bool ask_planner(struct planning *p, const struct scene *scene) {
	struct plan_task tasks[MODEL_TASKS_MAX];
	nsec_t(*slower)[PROTO_SMS_MAX + 1];
	int r = -ENOMEM;

	if (p->awaits) {
		p->outdated = true;
		return true;
	}
	slower = calloc(MODEL_TASKS_MAX, sizeof(*slower));
	log_question(p, scene);
	scene_remember(scene, &p->question);
	p->asked = p->all->now();
	if (slower) {
		memcpy(tasks, scene->tasks, scene->n * sizeof(*tasks));
		tune_apply(&p->tune, tasks, scene->cut.sms, slower);
		r = planner_ask(p->planner, p->gpu, &scene->cut, tasks, scene->n);
	}
	free(slower);
	if (r < 0 && !p->failed) {
		p->failed = true;
		log_warning("GPU %zu: no plan is made, programs are steered by the rule alone: %s",
			    p->gpu, strerror(-r));
	}
	p->awaits = r == 0;
	return p->awaits;
}

static bool can_plan(const struct planning *p, const struct scene *scene) {
	return p->planner && scene->n >= 2 && scene->cut.group > 0 &&
	       plan_can_predict(scene->tasks, scene->n) && !scene_is_better_measured(scene);
}

/* ---- what the plan does ---- */

/* What its jobs have done since it is there: from their releases, as predictions count. */
static struct seen seen_of(const struct session *s) {
	return (struct seen){
		.jobs = s->counters.jobs,
		.missed = s->counters.misses - s->counters.cold_misses + s->counters.late_by_wake,
		.response = s->counters.responses + s->counters.woken * PLAN_WAKE,
		.unreported = s->counters.unreported,
		.behind = (int64_t)(s->releases.left_out + s->releases.waiting),
		.waiting = s->releases.waiting,
	};
}

/* What the terms do that hold from now on. */
static void count_from_now(struct planning *p, const struct scene *scene) {
	p->since = p->all->now();
	for (unsigned i = 0; i < scene->n; i++) {
		p->before[i] = seen_of(scene->sessions[i]);
	}
}

struct seen planning_seen(const struct planning *p, const struct session *s, unsigned i) {
	const struct seen seen = seen_of(s);

	return seen_since(&seen, &p->before[i]);
}

/* The same of all. Return: for how long they have held. */
static nsec_t see_all(const struct planning *p, const struct scene *scene, struct seen *ret) {
	for (unsigned i = 0; i < scene->n; i++) {
		ret[i] = planning_seen(p, scene->sessions[i], i);
	}
	return p->all->now() - p->since;
}

/* ---- the way that holds ---- */

/* A plan goes on for those whom it was made for. @from: as scene_follows(). */
static void move_plan(struct planning *p, const struct scene *scene, const int *from) {
	renumber(p->hopeless, sizeof(*p->hopeless), from, scene->n);
	renumber(p->before, sizeof(*p->before), from, scene->n);
	tune_move(&p->tune, &scene->cut, scene->tasks, from, scene->n);
	for (unsigned i = 0; i < scene->n; i++) {
		struct session *s = scene->sessions[i];

		if (from[i] < 0) {
			p->before[i] = seen_of(s);
		}
		writer_set(scene, s, &tune_way(&p->tune)->terms[i],
			   from[i] >= 0 ? s->terms.reason[scene->gpu]
					: "planned for others: it has what they leave, until the "
					  "next plan");
	}
}

static void judge_later(struct planning *p) {
	timer_set(&p->judge, tune_step(&p->tune));
}

/* Another way holds from now on, and is judged. */
static void write_way(struct planning *p, const struct scene *scene, const char *reason) {
	const struct plan_way *way = tune_way(&p->tune);

	p->plans++;
	count_from_now(p, scene);
	for (unsigned i = 0; i < scene->n; i++) {
		scene->sessions[i]->terms.tail[scene->gpu] = way->tail[i];
	}
	writer_tell_deadlines(p->all, scene->gpu);
	for (unsigned i = 0; i < scene->n; i++) {
		writer_set(scene, scene->sessions[i], &way->terms[i], reason);
	}
	judge_later(p);
}

static void log_plan(const struct scene *scene, const struct plan *plan, nsec_t took) {
	const struct model_result all = model_result_sum(plan->predicted, scene->n);

	log_debug(
		"GPU %zu: a plan for %u programs after %llu ms, the best of %u%s: %u of %u jobs "
		"late",
		scene->gpu, scene->n, (unsigned long long)(took / NSEC_PER_MSEC), plan->n_tried,
		plan->is_whole ? "" : " so far", all.missed, all.released);
}

/* ---- what the owner tells ---- */

/* Nothing is planned any more: the rule will hold. */
static void forget(struct planning *p, const struct scene *scene, nsec_t window) {
	forget_question(p);
	tune_start(&p->tune, scene->n, window);
	timer_stop(&p->judge);
	p->judged = false;
	p->plans = 0;
}

/* What plans said of programs that have come since, or of all. */
static void forget_results(const struct scene *scene, const int *from) {
	for (unsigned i = 0; i < scene->n; i++) {
		if (!from || from[i] < 0) {
			scene->sessions[i]->terms.hopeless[scene->gpu] = false;
			scene->sessions[i]->terms.tail[scene->gpu] = 0;
		}
	}
}

/* What holds, to be taken up again. Return: owned; NULL: no plan does, or there is no memory. */
static struct planning_kept *put_aside(const struct planning *p) {
	struct planning_kept *kept = p->plans > 0 ? malloc(sizeof(*kept)) : NULL;

	if (kept) {
		kept->past = p->past;
		kept->tune = p->tune;
		kept->plans = p->plans;
		memcpy(kept->hopeless, p->hopeless, sizeof(kept->hopeless));
	}
	return kept;
}

/* What was put aside holds again, if it is for the programs of @scene. */
static void take_up(struct planning *p, const struct scene *scene, nsec_t window) {
	const struct planning_kept *kept = p->kept;
	int from[MODEL_TASKS_MAX];

	if (!kept || !scene_follows(scene, &kept->past, from)) {
		return;
	}
	p->tune = kept->tune;
	p->tune.window = window;
	p->plans = kept->plans - 1; /* it is not a new one */
	memcpy(p->hopeless, kept->hopeless, sizeof(kept->hopeless));
	renumber(p->hopeless, sizeof(*p->hopeless), from, scene->n);
	tune_move(&p->tune, &scene->cut, scene->tasks, from, scene->n);
	tune_resume(&p->tune);
	write_way(p, scene, "planned: as before its programs, or some of them, had ended");
}

/* Nothing of what holds is for the programs of @scene. */
static void begin_anew(struct planning *p, const struct scene *scene, bool can, nsec_t window) {
	struct planning_kept *kept = put_aside(p);

	forget(p, scene, window);
	if (can) {
		take_up(p, scene, window);
	}
	if (kept) {
		free(p->kept);
		p->kept = kept;
	}
}

bool planning_follow(struct planning *p, const struct scene *scene, enum scene_change change,
		     const int *from, nsec_t window) {
	bool can = can_plan(p, scene), goes_on = can && change != SCENE_TASKS && p->question.n > 0;

	forget_results(scene, goes_on ? from : NULL);
	writer_tell_deadlines(p->all, p->gpu);
	if (!goes_on) {
		begin_anew(p, scene, can, window);
	} else if (p->plans == 0) {
		tune_start(&p->tune, scene->n, window);
	} else {
		move_plan(p, scene, from);
		if (change == SCENE_KNOWN) {
			timer_stop(&p->judge);
			tune_again(&p->tune);
		}
	}
	if (!can || !ask_planner(p, scene)) {
		forget(p, scene, window);
		return false;
	}
	scene_remember(scene, &p->past);
	return true;
}

void planning_begin(struct planning *p, const struct scene *scene, const struct terms *terms) {
	tune_rule(&p->tune, terms);
	count_from_now(p, scene);
}

void planning_answer(struct planning *p, const struct scene *scene, struct plan *plan) {
	struct seen seen[MODEL_TASKS_MAX];
	int from[MODEL_TASKS_MAX];
	nsec_t time;

	p->awaits = false;
	if (p->question.n == 0 || !scene_follows(scene, &p->question, from)) {
		return;
	}
	plan_move(&scene->cut, scene->tasks, from, scene->n, plan);
	memcpy(p->hopeless, plan->hopeless, sizeof(plan->hopeless));
	log_plan(scene, plan, p->all->now() - p->asked);
	time = see_all(p, scene, seen);
	if (tune_plan(&p->tune, plan, seen, time)) {
		write_way(p, scene,
			  "planned: of what was tried the fewest jobs are expected to be late");
	} else if (!timer_is_set(&p->judge)) {
		judge_later(p);
	}
	if (p->outdated) {
		p->outdated = false;
		ask_planner(p, scene);
	}
}

/* What was found out about the ways that there are. */
static void log_ways(const struct ways *w, size_t gpu) {
	for (unsigned i = 0; i < w->n_ways; i++) {
		nsec_t time = w->way[i].time;

		if (time > 0) {
			log_debug("GPU %zu: way %u%s cost %.0f late jobs a second in %llu ms", gpu,
				  i, i == w->now ? ", which holds now," : "",
				  ways_rate(w, i) * NSEC_PER_SEC,
				  (unsigned long long)(time / NSEC_PER_MSEC));
		}
	}
}

/* What comes of the way that holds. */
static void act(struct planning *p, const struct scene *scene, enum tune_action action) {
	switch (action) {
	case TUNE_WAIT:
	case TUNE_PLAN:
	case TUNE_KEEP:
		judge_later(p);
		break;
	case TUNE_TRY:
		log_ways(&p->tune.ways, scene->gpu);
		log_debug("GPU %zu: jobs are late, something else is tried", scene->gpu);
		write_way(p, scene,
			  "planned: tried because jobs were late, and fewer are expected to be");
		break;
	case TUNE_BACK:
		log_ways(&p->tune.ways, scene->gpu);
		log_debug("GPU %zu: of what was tried, the terms with the fewest late jobs hold",
			  scene->gpu);
		write_way(p, scene,
			  "planned: of all that ran these terms had the fewest late jobs");
		break;
	}
}

void planning_judge(struct planning *p, const struct scene *scene) {
	struct seen seen[MODEL_TASKS_MAX];
	nsec_t time = see_all(p, scene, seen);
	enum tune_action action;
	bool ask;

	action = tune_judge(&p->tune, seen, time, &ask);
	for (unsigned i = 0; i < scene->n; i++) {
		/* A prediction alone does not take a task's turn from it. */
		scene->sessions[i]->terms.hopeless[scene->gpu] = p->hopeless[i] && p->tune.lost[i];
	}
	writer_tell_deadlines(p->all, scene->gpu);
	if (action != TUNE_WAIT || (!p->judged && time > p->tune.window)) {
		p->judged = true;
		p->action = action;
	}
	if (ask) {
		log_debug("GPU %zu: jobs take another time than predicted, a new plan is made",
			  scene->gpu);
		ask_planner(p, scene);
	}
	act(p, scene, action);
}
