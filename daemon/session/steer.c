/*
 * steer.c: see steer.h.
 */
#include "daemon/session/steer.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/planner.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"

static void on_planned(void *userdata, size_t gpu, struct plan *plan);

static void on_judge(int fd, short what, void *userdata);

static void on_sharing(int fd, short what, void *userdata);

static void on_preempter(void *userdata) {
	steer_changed(userdata);
}

void steer_init(struct steer *steer, struct sessions *sessions, struct event_base *base,
		nsec_t window, bool may_preempt, nsec_t turn, const char *state) {
	int r;

	*steer = (struct steer){.sessions = sessions, .changed = true, .window = window};
	preempting_init(&steer->preempting, sessions, base, may_preempt, turn, state);
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		steer->gpus[i].steer = steer;
		steer->gpus[i].gpu = i;
		event_assign(&steer->gpus[i].judge, base, -1, 0, on_judge, &steer->gpus[i]);
		sharing_init(&steer->gpus[i].sharing, base, on_sharing, &steer->gpus[i]);
	}
	r = planner_new(&steer->planner, base, planner_threads(), on_planned, steer);
	if (r < 0) {
		log_warning("no plans are made, programs are steered by the rule alone: %s",
			    strerror(-r));
	}
}

void steer_deinit(struct steer *steer) {
	preempting_deinit(&steer->preempting);
	steer->planner = planner_free(steer->planner);
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		event_del(&steer->gpus[i].judge);
		sharing_stop(&steer->gpus[i].sharing);
	}
}

void steer_changed(struct steer *steer) {
	steer->changed = true;
}

/* How many groups at least, and at most, by the bounds of the task; the most counts. */
static unsigned clamp_groups(const struct plan_gpu *cut, const struct task_spec *task, unsigned n) {
	unsigned n_groups = terms_groups(cut->sms, cut->group);
	unsigned least = (task->job.min_sms + cut->group - 1) / cut->group;
	unsigned most = task->job.max_sms > 0 ? task->job.max_sms / cut->group : n_groups;

	n = n < least ? least : n;
	n = n > most ? most : n;
	return n < 1 ? 1 : n > n_groups ? n_groups : n;
}

static const char reason_sliced[] =
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

static void write_terms(struct steer *steer, const struct scene *scene, struct session *s,
			const struct terms *terms, const char *reason) {
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
	if (session_terms_set(&s->terms, scene->gpu, &t, steer->sessions->now())) {
		log_terms(s, scene);
	}
}

/* Those who are not there yet, or don't run on this GPU, and those who are too many. */
static void steer_others(struct steer *steer, const struct scene *scene) {
	unsigned member = 0; /* the next; they are in the order of the list */
	struct session *s;

	TAILQ_FOREACH(s, &steer->sessions->list, link) {
		struct terms t = {.steered = scene->steered && scene_is_steered(s, scene->gpu)};
		const char *reason =
			scene->withdrawn ? scene->withdrawn
			: t.steered
				? scene_is_present(s, scene->gpu)
					  ? scene->sliced ? reason_sliced
							  : "too many programs are there to "
							    "plan for"
					  : "it does not run there yet"
				: "its task may not use this GPU, or its program is being ended";

		if (member < scene->n && scene->sessions[member] == s) {
			member++;
		} else if (s->terms.page) {
			write_terms(steer, scene, s, &t, reason);
		}
	}
}

/* Since the terms were last computed. */
enum change {
	CHANGE_NONE,
	CHANGE_KNOWN,  /* more is known of the programs' jobs */
	CHANGE_OTHERS, /* programs without a deadline have come or gone */
	CHANGE_TASKS,  /* others have, or other tasks are there */
};

/* @from: as scene_follows(), unless it is CHANGE_TASKS. */
static enum change compare(const struct steer_gpu *g, const struct scene *scene,
			   int from[static MODEL_TASKS_MAX]) {
	enum change change = g->past.n == scene->n ? CHANGE_NONE : CHANGE_OTHERS;

	if (!scene_follows(scene, &g->past, from)) {
		return CHANGE_TASKS;
	}
	for (unsigned i = 0; i < scene->n; i++) {
		const struct scene_member *a = &g->past.members[i], *b = &scene->members[i];

		if (from[i] != (int)i) {
			change = CHANGE_OTHERS;
		} else if (!scene->sessions[i]->terms.now[scene->gpu].steered) {
			return CHANGE_TASKS; /* a new page says nothing yet */
		} else if (change == CHANGE_NONE &&
			   (a->shapes != b->shapes || a->known != b->known ||
			    a->copies_nothing != b->copies_nothing)) {
			change = CHANGE_KNOWN;
		}
	}
	return change;
}

static bool is_same(const struct steer_gpu *g, const struct scene *scene) {
	int from[MODEL_TASKS_MAX];

	return compare(g, scene, from) == CHANGE_NONE;
}

static void log_question(const struct steer_gpu *g, const struct scene *scene) {
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
				g->tune.slow[i], (unsigned long long)t->block / NSEC_PER_USEC,
				(unsigned long long)t->copy_in / NSEC_PER_USEC,
				(unsigned long long)t->copy_out / NSEC_PER_USEC);
		}
	}
}

/* No answer will come. */
static void forget_question(struct steer *steer, struct steer_gpu *g) {
	planner_cancel(steer->planner, g->gpu);
	g->question.n = 0;
	g->awaits = g->outdated = false;
}

/* Asks for a plan with what is known of the tasks by now. If the last question has no answer yet,
 * that is awaited first: else programs that come and go kept all plans from being made. Return:
 * whether one will come. */
static bool ask_planner(struct steer *steer, struct scene *scene) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];
	nsec_t(*slower)[PROTO_SMS_MAX + 1];
	int r = -ENOMEM;

	if (g->awaits) {
		g->outdated = true;
		return true;
	}
	slower = calloc(MODEL_TASKS_MAX, sizeof(*slower));
	log_question(g, scene);
	scene_remember(scene, &g->question);
	g->asked = steer->sessions->now();
	if (slower) {
		tune_apply(&g->tune, scene->tasks, scene->cut.sms, slower);
		r = planner_ask(steer->planner, scene->gpu, &scene->cut, scene->tasks, scene->n);
	}
	free(slower);
	g->awaits = r == 0;
	return g->awaits;
}

/* Before the terms: copies go by what must be done first, and others look ahead to the next job. */
static void tell_deadlines(const struct sessions *all, size_t gpu) {
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->terms.page) {
			const struct plan_task t = scene_task(s, gpu);

			session_terms_set_next(&s->terms, gpu, t.model.period, t.model.copy_in);
			session_terms_set_due(&s->terms, gpu,
					      scene_is_urgent(s) && !s->terms.hopeless[gpu]
						      ? s->task.deadline
						      : 0,
					      s->terms.tail[gpu], t.model.period);
		}
	}
}

static bool can_plan(const struct steer *steer, const struct scene *scene) {
	return steer->planner && scene->n >= 2 && scene->cut.group > 0 &&
	       plan_can_predict(scene->tasks, scene->n) && !scene_is_better_measured(scene);
}

/* No plan will come. */
static void share(struct steer_gpu *g, const struct scene *scene) {
	if (scene_can_share(scene)) {
		sharing_start(&g->sharing, scene);
	} else {
		sharing_stop(&g->sharing);
	}
}

/* What its jobs have done since it is there: from their releases, as predictions count. */
static struct tune_seen seen_of(const struct session *s) {
	return (struct tune_seen){
		.jobs = s->counters.jobs,
		.missed = s->counters.misses - s->counters.cold_misses + s->counters.late_by_wake,
		.response = s->counters.responses + s->counters.woken * PLAN_WAKE,
		.unreported = s->counters.unreported,
		.behind = (int64_t)(s->releases.left_out + s->releases.waiting),
		.waiting = s->releases.waiting,
	};
}

/* What the terms do that hold from now on. */
static void count_from_now(struct steer_gpu *g, const struct scene *scene) {
	g->since = g->steer->sessions->now();
	for (unsigned i = 0; i < scene->n; i++) {
		g->before[i] = seen_of(scene->sessions[i]);
	}
}

/* A plan goes on for those whom it was made for. @from: as scene_follows(). */
static void move_plan(struct steer *steer, const struct scene *scene, const int *from) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];
	bool hopeless[MODEL_TASKS_MAX];

	memcpy(hopeless, g->hopeless, sizeof(hopeless));
	tune_move(&g->tune, &scene->cut, scene->tasks, from, scene->n);
	count_from_now(g, scene);
	for (unsigned i = 0; i < scene->n; i++) {
		struct session *s = scene->sessions[i];

		g->hopeless[i] = from[i] >= 0 && hopeless[from[i]];
		write_terms(steer, scene, s, &tune_way(&g->tune)->terms[i],
			    from[i] >= 0 ? s->terms.reason[scene->gpu]
					 : "planned for others: it has what they leave, until the "
					   "next plan");
	}
}

/* From now on the terms are computed for what is there now. A plan that holds stays until the next
 * one is made, if the programs with a deadline and their tasks are the same. @from: as
 * scene_follows(). Return: whether one will come. */
static bool take_change(struct steer *steer, struct scene *scene, enum change change,
			const int *from) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];

	event_del(&g->judge);
	scene_remember(scene, &g->past);
	if (change == CHANGE_TASKS) {
		forget_question(steer, g);
		g->judged = false;
		g->plans = 0;
	}
	for (unsigned i = 0; i < scene->n; i++) {
		if (change == CHANGE_TASKS || (change == CHANGE_OTHERS && from[i] < 0)) {
			scene->sessions[i]->terms.hopeless[scene->gpu] = false;
			scene->sessions[i]->terms.tail[scene->gpu] = 0;
		}
	}
	tell_deadlines(steer->sessions, scene->gpu);
	if (g->plans == 0) {
		tune_start(&g->tune, scene->n, steer->window);
	} else if (change == CHANGE_OTHERS) {
		move_plan(steer, scene, from);
	} else {
		tune_again(&g->tune);
	}
	if (!can_plan(steer, scene) || !ask_planner(steer, scene)) {
		tune_start(&g->tune, scene->n, steer->window);
		g->plans = 0;
		forget_question(steer, g);
		share(g, scene);
		return false;
	}
	sharing_stop(&g->sharing);
	return true;
}

/* Why the rule gives the program @i these terms. */
static const char *rule_reason(const struct scene *scene, const struct terms *terms, unsigned i) {
	bool apart = false;

	if (scene->sliced) {
		return reason_sliced;
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

/* @terms: room for them. */
static void write_rule(struct steer *steer, const struct scene *scene, struct terms *terms) {
	const struct sharing *sharing = &steer->gpus[scene->gpu].sharing;
	const struct share *share = sharing->on ? &sharing->share : NULL;
	nsec_t deadlines[MODEL_TASKS_MAX];

	for (unsigned i = 0; i < scene->n; i++) {
		terms[i] = (struct terms){.steered = true};
		deadlines[i] = scene->tasks[i].model.deadline;
	}
	if (scene->n > 0 && scene->cut.group > 0) {
		plan_rule(&scene->cut, scene->tasks, scene->n, terms);
	}
	if (share) {
		share_apply(share, deadlines, scene->cut.group, terms);
	}
	for (unsigned i = 0; i < scene->n; i++) {
		const char *reason = share ? share_reason(share, deadlines[i], i) : NULL;

		write_terms(steer, scene, scene->sessions[i], &terms[i],
			    reason ? reason : rule_reason(scene, terms, i));
	}
}

static void on_sharing(int fd, short what, void *userdata) {
	struct steer_gpu *g = userdata;
	struct terms terms[MODEL_TASKS_MAX];
	struct scene scene;

	(void)fd;
	(void)what;
	scene_look(g->steer->sessions, g->gpu, &scene);
	if (!is_same(g, &scene)) {
		steer_changed(g->steer);
	} else if (sharing_look(&g->sharing, scene.sessions, g->steer->sessions->now())) {
		log_debug("GPU %zu: programs %s a deadline get more of it", g->gpu,
			  g->sharing.share.trying ? "without" : "with");
		write_rule(g->steer, &scene, terms);
	}
}

static void look_at_gpu(struct steer *steer, size_t gpu) {
	struct steer_gpu *g = &steer->gpus[gpu];
	struct terms terms[MODEL_TASKS_MAX];
	int from[MODEL_TASKS_MAX];
	enum change change;
	struct scene scene;
	bool planned;

	scene_look(steer->sessions, gpu, &scene);
	steer_others(steer, &scene);
	change = compare(g, &scene, from);
	if (change == CHANGE_NONE) {
		return;
	}
	if (change == CHANGE_OTHERS && (g->question.n == 0 || !can_plan(steer, &scene))) {
		change = CHANGE_TASKS; /* no plan is there, or none can be */
	}
	planned = take_change(steer, &scene, change, from);
	if (g->plans == 0) {
		write_rule(steer, &scene, terms);
		if (planned) {
			tune_rule(&g->tune, terms);
			count_from_now(g, &scene);
		}
	}
}

static void judge_later(struct steer_gpu *g) {
	nsec_t step = tune_step(&g->tune);
	struct timeval tv = nsec_timeval(step);

	event_add(&g->judge, &tv);
}

/* Another way holds from now on, and is judged. */
static void write_way(struct steer *steer, const struct scene *scene, const char *reason) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];
	const struct plan_way *way = tune_way(&g->tune);

	g->plans++;
	count_from_now(g, scene);
	for (unsigned i = 0; i < scene->n; i++) {
		scene->sessions[i]->terms.tail[scene->gpu] = way->tail[i];
	}
	tell_deadlines(steer->sessions, scene->gpu);
	for (unsigned i = 0; i < scene->n; i++) {
		write_terms(steer, scene, scene->sessions[i], &way->terms[i], reason);
	}
	judge_later(g);
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

static void log_plan(const struct scene *scene, const struct plan *plan, nsec_t took) {
	const struct model_result all = model_result_sum(plan->predicted, scene->n);

	log_debug(
		"GPU %zu: a plan for %u programs after %llu ms, the best of %u%s: %u of %u jobs "
		"late",
		scene->gpu, scene->n, (unsigned long long)(took / NSEC_PER_MSEC), plan->n_tried,
		plan->is_whole ? "" : " so far", all.missed, all.released);
}

/* What the jobs of @s, the member @i, did since the terms hold. */
static struct tune_seen seen_since(const struct steer_gpu *g, const struct session *s, unsigned i) {
	const struct tune_seen seen = seen_of(s);

	return tune_seen_since(&seen, &g->before[i]);
}

/* The same of all. Return: for how long they have held. */
static nsec_t see_all(const struct steer_gpu *g, const struct scene *scene, struct tune_seen *ret) {
	for (unsigned i = 0; i < scene->n; i++) {
		ret[i] = seen_since(g, scene->sessions[i], i);
	}
	return g->steer->sessions->now() - g->since;
}

/* Takes what has changed since the question was asked. Return: whether the answer still counts: for
 * @ret, with the numbers @from. */
static bool is_answer(struct steer_gpu *g, struct scene *ret, int from[static MODEL_TASKS_MAX]) {
	enum change change;

	scene_look(g->steer->sessions, g->gpu, ret);
	change = compare(g, ret, from);
	if (change != CHANGE_NONE) {
		steer_changed(g->steer); /* a new one will be made, or none is needed */
		if (change == CHANGE_TASKS || !g->awaits) {
			return false;
		}
		look_at_gpu(g->steer, g->gpu);
	}
	g->awaits = false;
	return g->question.n > 0 && scene_follows(ret, &g->question, from);
}

static void on_planned(void *userdata, size_t gpu, struct plan *plan) {
	struct steer *steer = userdata;
	struct steer_gpu *g = &steer->gpus[gpu];
	struct tune_seen seen[MODEL_TASKS_MAX];
	int from[MODEL_TASKS_MAX];
	struct scene scene;
	nsec_t time;

	if (!is_answer(g, &scene, from)) {
		return;
	}
	plan_move(&scene.cut, scene.tasks, from, scene.n, plan);
	memcpy(g->hopeless, plan->hopeless, sizeof(plan->hopeless));
	log_plan(&scene, plan, steer->sessions->now() - g->asked);
	time = see_all(g, &scene, seen);
	if (tune_plan(&g->tune, plan, seen, time)) {
		write_way(steer, &scene,
			  "planned: of what was tried the fewest jobs are expected to be late");
	} else if (!event_pending(&g->judge, EV_TIMEOUT, NULL)) {
		judge_later(g);
	}
	if (g->outdated) {
		g->outdated = false;
		ask_planner(steer, &scene);
	}
	hand_out_boards(steer->sessions);
}

/* What was found out about the ways that there are. */
static void log_ways(const struct tune *t, size_t gpu) {
	for (unsigned i = 0; i < t->n_ways; i++) {
		const struct tune_way *way = &t->ways[i];

		if (way->time > 0) {
			log_debug("GPU %zu: way %u%s cost %.0f late jobs a second in %llu ms", gpu,
				  i, i == t->now ? ", which holds now," : "",
				  tune_cost(t, way) * NSEC_PER_SEC / (double)way->time,
				  (unsigned long long)(way->time / NSEC_PER_MSEC));
		}
	}
}

/* What comes of the way that holds. */
static void act(struct steer *steer, const struct scene *scene, enum tune_action action) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];

	switch (action) {
	case TUNE_WAIT:
	case TUNE_PLAN:
	case TUNE_KEEP:
		judge_later(g);
		break;
	case TUNE_TRY:
		log_ways(&g->tune, scene->gpu);
		log_debug("GPU %zu: jobs are late, something else is tried", scene->gpu);
		write_way(steer, scene,
			  "planned: tried because jobs were late, and fewer are expected to be");
		break;
	case TUNE_BACK:
		log_ways(&g->tune, scene->gpu);
		log_debug("GPU %zu: of what was tried, the terms with the fewest late jobs hold",
			  scene->gpu);
		write_way(steer, scene,
			  "planned: of all that ran these terms had the fewest late jobs");
		break;
	}
}

static void judge(struct steer *steer, struct scene *scene) {
	struct steer_gpu *g = &steer->gpus[scene->gpu];
	struct tune_seen seen[MODEL_TASKS_MAX];
	nsec_t time = see_all(g, scene, seen);
	enum tune_action action;
	bool ask;

	action = tune_judge(&g->tune, seen, time, &ask);
	for (unsigned i = 0; i < scene->n; i++) {
		/* A prediction alone does not take a task's turn from it. */
		scene->sessions[i]->terms.hopeless[scene->gpu] = g->hopeless[i] && g->tune.lost[i];
	}
	tell_deadlines(steer->sessions, scene->gpu);
	if (action != TUNE_WAIT || (!g->judged && time > g->tune.window)) {
		g->judged = true;
		g->action = action;
	}
	if (ask) {
		log_debug("GPU %zu: jobs take another time than predicted, a new plan is made",
			  scene->gpu);
		ask_planner(steer, scene);
	}
	act(steer, scene, action);
}

static void on_judge(int fd, short what, void *userdata) {
	struct steer_gpu *g = userdata;
	struct scene scene;

	(void)fd;
	(void)what;
	scene_look(g->steer->sessions, g->gpu, &scene);
	if (is_same(g, &scene)) {
		judge(g->steer, &scene);
		hand_out_boards(g->steer->sessions);
	} else {
		steer_changed(g->steer);
	}
}

/* What its job takes alone, on the GPU of these where it takes longest; 0: not known. */
static nsec_t needed_by(const struct steer *steer, const struct session *s) {
	nsec_t longest = 0;

	for (size_t i = 0; i < sched_n_gpus(engine_sched(steer->sessions->engine)); i++) {
		struct plan_task t = scene_task(s, i);
		nsec_t needed;

		if (s->terms.now[i].sliced && t.known) {
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

void steer_write_terms(struct steer *steer) {
	const struct sched *sched = engine_sched(steer->sessions->engine);

	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		tell_deadlines(steer->sessions, i);
		look_at_gpu(steer, i);
	}
}

void steer_look(struct steer *steer) {
	const struct sched *sched = engine_sched(steer->sessions->engine);
	const struct sched_policy *policy = sched_get_policy(sched);
	uint32_t closed = closed_gpus(steer);

	if (!steer->changed && policy == steer->policy && closed == steer->closed) {
		return;
	}
	steer->changed = false;
	steer->policy = policy;
	steer->closed = closed;
	preempting_start(&steer->preempting, policy, on_preempter, steer);
	engine_set_preempts(steer->sessions->engine, preempter_works(steer->sessions->preempter));
	steer_write_terms(steer);
	hand_out_boards(steer->sessions);
	tell_needed(steer);
	preempting_hand_over(&steer->preempting);
}

bool steer_explain(const struct steer *steer, const struct session *s, size_t gpu,
		   struct steer_told *ret) {
	const struct steer_gpu *g = &steer->gpus[gpu];

	for (unsigned i = 0; g->plans > 0 && i < g->past.n; i++) {
		if (g->past.members[i].id == s->id && s->terms.now[gpu].steered) {
			*ret = (struct steer_told){
				.plans = g->plans,
				.verdict = g->judged ? tune_action_name(g->action) : NULL,
				.slow = g->tune.slow[i],
				.since = g->since,
				.predicted = tune_way(&g->tune)->predicted[i],
				.seen = seen_since(g, s, i),
			};
			return true;
		}
	}
	return false;
}
