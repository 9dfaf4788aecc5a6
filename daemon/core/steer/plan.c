/*
 * plan.c: see plan.h.
 */
#include "daemon/core/steer/plan.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Blocks longer than this part of somebody else's deadline are long. */
#define LONG_PART 10

/* What is looked at: some dozens of jobs of the task with the longest period, within these. */
#define JOBS_LOOKED_AT 24
#define TIME_MIN       (250 * NSEC_PER_MSEC)
#define TIME_MAX       (1 * NSEC_PER_SEC)

/* A plan should be there before long, so a search looks at so many launches at a time, but not at
 * less than this. */
#define SEARCH_LAUNCHES 20000.0
#define SEARCH_TIME_MIN (100 * NSEC_PER_MSEC)

/* Tasks with tiny jobs are looked at for less than that: for about so many events, and at most
 * twice as many. The sets of tasks that were measured have some ten thousand. */
#define RUN_EVENTS 100000

/* Of all predictions for a plan, times the tasks, for an event takes as much longer. */
static const uint64_t plan_events[] = {[PLAN_QUICK] = 40000000, [PLAN_WHOLE] = 600000000};

/* Different first releases of the same tasks: which ones meet is luck. */
#define SEEDS 2

/* How much later a copy begins that is held, a piece of 6 MiB, and the time between two, as
 * measured on hosts of an H200 and an H100. */
#define HOLD  (10 * NSEC_PER_USEC)
#define PIECE (115 * NSEC_PER_USEC)
#define PAUSE (8 * NSEC_PER_USEC)

/* From the end of a job's last operation until its program goes on, measured likewise. */
#define BACK (20 * NSEC_PER_USEC)

/* How much later a kernel begins behind a gate. */
#define GATE (5 * NSEC_PER_USEC)

/* Kernels behind one gate: as the shim does it. */
#define BEHIND (100 * NSEC_PER_USEC)

/* An unknown task's jobs: one kernel, in waves of blocks. */
#define UNKNOWN_BLOCK (1 * NSEC_PER_MSEC)
#define UNKNOWN_WAVES 10

/* Rounds in which every task may move once. */
#define ROUNDS_MAX 3

/* The cuts that are tried, in eighths of the groups. */
static const unsigned cuts[] = {4, 2, 3, 5, 6};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))

/* What the search starts from: the rule at each cut, and levels by deadline. */
#define N_STARTS (N_CUTS + 1)

/* Of the best at other cuts so many are kept, with late jobs in the time looked at of at most so
 * many times those of the very best, and some. */
#define OPTIMA_KEPT  2
#define OPTIMA_WORSE 2
#define OPTIMA_MORE  10

/* How near the deadlines are counts less than any miss. */
#define RESPONSE_WEIGHT 0.3

struct candidate {
	unsigned lower; /* groups of the lower part */
	struct model_place places[MODEL_TASKS_MAX];
};

/* The best from one start. */
struct optimum {
	struct candidate candidate;
	double badness;
};

struct search {
	const struct plan_gpu *gpu;
	struct model_task tasks[MODEL_TASKS_MAX];
	bool known[MODEL_TASKS_MAX];
	nsec_t unknown[PROTO_SMS_MAX + 1]; /* times of an unknown task's kernels */
	unsigned n, n_groups, n_tried;
	uint64_t events, events_max; /* of what was tried; see plan_events */
	const _Atomic bool *stop;
	nsec_t time;
	struct optimum optima[N_STARTS]; /* the best first */
	unsigned n_optima;
	struct optimum gateless;       /* the best where nobody yields: no start has gates */
	nsec_t longest;		       /* period */
	double alone[MODEL_TASKS_MAX]; /* how much of its jobs is late under MPS alone */
};

static bool is_given_up(const struct search *s) {
	return s->stop && atomic_load_explicit(s->stop, memory_order_relaxed);
}

static bool stopped(const struct search *s) {
	return s->events * s->n >= s->events_max || is_given_up(s);
}

static struct model_gpu model_gpu(const struct plan_gpu *gpu, unsigned lower) {
	unsigned sms = lower * gpu->group;

	return (struct model_gpu){
		.sms = {sms, gpu->sms - sms},
		.piece = PIECE,
		.pause = PAUSE,
		.hold = HOLD,
		.gate = GATE,
		.behind = BEHIND,
		.guard = PROTO_GUARD_NS,
		.overlap = PROTO_OVERLAP_NS,
		.wake = PLAN_WAKE_MIN,
		.back = BACK,
	};
}

/* Adds one drawing of the first releases to @sum, but ends it when @most jobs are late. */
static void draw(struct search *s, const struct candidate *c, unsigned seed, unsigned most,
		 struct model_result *sum) {
	static const struct model_wake wake = {PLAN_WAKE_MIN, PLAN_WAKE_MAX};
	struct model_gpu gpu = model_gpu(s->gpu, c->lower);
	bool first = s->events == 0;
	unsigned events = first ? RUN_EVENTS : 2 * RUN_EVENTS;
	struct model_limit limit = {.events = events, .missed = most};
	struct model_result one[MODEL_TASKS_MAX];
	nsec_t time;

	time = model_run(&gpu, &wake, s->tasks, c->places, s->n, s->time, seed, &limit, one);
	s->events += events - limit.events;
	if (first) {
		s->time = time; /* for all, so that they can be compared */
	}
	for (unsigned i = 0; i < s->n; i++) {
		model_result_add(&sum[i], &one[i]);
	}
}

static void predict(struct search *s, const struct candidate *c, struct model_result *ret) {
	memset(ret, 0, s->n * sizeof(*ret));
	for (unsigned k = 0; k < SEEDS; k++) {
		draw(s, c, k, UINT_MAX, ret);
	}
	s->n_tried++;
}

static unsigned misses(const struct search *s, const struct model_result *results) {
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		n += results[i].missed;
	}
	return n;
}

static double late_part(const struct model_result *r) {
	return r->released ? (double)r->missed / r->released : 0;
}

double plan_worse(const double *part, const double *alone, unsigned n, double jobs) {
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += part[i] > alone[i] ? part[i] - alone[i] : 0;
	}
	return sum * jobs / n;
}

/* Of tasks that are late more often than under MPS alone. */
static double worse(const struct search *s, const struct model_result *results) {
	double part[MODEL_TASKS_MAX], released = 0;

	for (unsigned i = 0; i < s->n; i++) {
		part[i] = late_part(&results[i]);
		released += results[i].released;
	}
	return plan_worse(part, s->alone, s->n, released);
}

/* Less is better. What is not below @best may be said to be @best. */
static double badness(struct search *s, const struct candidate *c, double best) {
	unsigned most = best < UINT_MAX ? (unsigned)ceil(best) : UINT_MAX, missed = 0;
	struct model_result results[MODEL_TASKS_MAX] = {0};
	double sum;

	s->n_tried++;
	for (unsigned k = 0; k < SEEDS; k++) {
		draw(s, c, k, most - missed, results);
		missed = misses(s, results);
		if (missed >= most) {
			return best;
		}
	}
	sum = missed + worse(s, results);
	for (unsigned i = 0; i < s->n; i++) {
		const struct model_result *r = &results[i];
		nsec_t whole = s->tasks[i].deadline ? s->tasks[i].deadline : s->time;
		double mean = r->done ? (double)r->response / r->done : (double)whole;

		sum += RESPONSE_WEIGHT * mean / (double)whole;
	}
	return sum;
}

/* ---- the rule ---- */

/* Whether a job of another task can't afford to wait for the task's blocks. */
static bool is_long(const struct plan_task *tasks, unsigned n, unsigned task) {
	for (unsigned i = 0; i < n; i++) {
		nsec_t deadline = tasks[i].model.deadline;

		if (i != task && deadline && tasks[task].known &&
		    tasks[task].model.block > deadline / LONG_PART) {
			return true;
		}
	}
	return false;
}

static bool any_deadline(const struct plan_task *tasks, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		if (tasks[i].model.deadline) {
			return true;
		}
	}
	return false;
}

/* Several tasks copy, or may. */
static bool copies_meet(const struct plan_task *tasks, unsigned n) {
	unsigned n_copy = 0;

	for (unsigned i = 0; i < n; i++) {
		n_copy += tasks[i].known ? tasks[i].model.copy_in > 0 : !tasks[i].copies_nothing;
	}
	return n_copy > 1;
}

static void follow_rule(const struct plan_task *tasks, unsigned n, struct candidate *ret) {
	bool urgent = any_deadline(tasks, n);
	enum terms_copies copies =
		urgent && copies_meet(tasks, n) ? TERMS_COPIES_HELD : TERMS_COPIES_WHOLE;

	for (unsigned i = 0; i < n; i++) {
		bool upper = urgent && (!tasks[i].model.deadline || is_long(tasks, n, i));

		ret->places[i] = (struct model_place){.regions = {!upper, true}, .copies = copies};
	}
}

/* ---- the search ---- */

static bool same_place(const struct model_place *a, const struct model_place *b) {
	return a->regions[0] == b->regions[0] && a->regions[1] == b->regions[1] &&
	       a->level == b->level && a->copies == b->copies && a->awaited == b->awaited &&
	       a->guarded == b->guarded && a->yields == b->yields;
}

/* Takes @place for @task if that is better, by more than @gain. Return: whether. */
static bool try_place(struct search *s, struct candidate *c, unsigned task,
		      const struct model_place *place, double gain, double *best) {
	struct candidate other = *c;
	double b;

	if (same_place(place, &c->places[task]) || stopped(s)) {
		return false;
	}
	other.places[task] = *place;
	b = badness(s, &other, *best);
	if (b >= *best - gain) {
		return false;
	}
	*best = b;
	*c = other;
	return true;
}

/* What @task must gain to have its copies first, and whole: a task with a shorter deadline that
 * copies as well would have to wait for all of such a copy, so no mean response is worth it, but
 * late jobs are. */
static double gain_for_first(const struct search *s, unsigned task) {
	for (unsigned i = 0; i < s->n; i++) {
		const struct model_task *t = &s->tasks[i];

		if (i != task && t->deadline && t->copy_in > 0 &&
		    (!s->tasks[task].deadline || t->deadline < s->tasks[task].deadline)) {
			return 1;
		}
	}
	return 0;
}

unsigned plan_level(const struct model_task *tasks, unsigned n, unsigned task) {
	nsec_t deadline = tasks[task].deadline;
	unsigned rank = 0;

	for (unsigned i = 0; i < n; i++) {
		nsec_t other = tasks[i].deadline;

		rank += other && (other < deadline || (other == deadline && i < task));
	}
	return deadline && rank < PROTO_TERMS_LEVEL_MAX ? PROTO_TERMS_LEVEL_MAX - rank : 0;
}

/* Moves one task where that is better. Return: whether. */
static bool move(struct search *s, struct candidate *c, unsigned task, double *best) {
	bool moved = false;

	for (unsigned k = 0; k < 6; k++) {
		struct model_place place = c->places[task];

		place.regions[0] = k % 3 != 2;
		place.regions[1] = k % 3 != 1;
		place.level = k < 3 ? plan_level(s->tasks, s->n, task) : 0;
		moved |= try_place(s, c, task, &place, 0, best);
	}
	/* Where copies of several tasks meet, and this one has some that are worth it. */
	if (c->places[task].copies != TERMS_COPIES_WHOLE && s->tasks[task].copy_in > PIECE) {
		struct model_place place = c->places[task];
		bool first = place.copies == TERMS_COPIES_HELD;

		place.copies = first ? TERMS_COPIES_FIRST : TERMS_COPIES_HELD;
		moved |= try_place(s, c, task, &place, first ? gain_for_first(s, task) : 0, best);
	}
	return moved;
}

/* Those of a deadline of at most @longest yield to nobody, the others to all whose jobs are due
 * earlier, for 0 nobody. A task that has no deadline, or is hopeless, yields if it is known: what
 * is not may have any number of launches. @guarded: with guard bands before jobs. */
static struct candidate with_gates(const struct search *s, const struct candidate *c,
				   nsec_t longest, bool guarded) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		struct model_place *place = &other.places[i];
		nsec_t deadline = s->tasks[i].deadline;
		bool urgent = deadline && deadline <= longest && !place->last;

		place->yields = longest && !urgent && s->known[i];
		place->awaited = longest && deadline && !place->last;
		place->guarded = guarded && place->awaited && s->tasks[i].period;
	}
	return other;
}

static struct candidate without_bands(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].guarded = false;
	}
	return other;
}

static bool has_gates(const struct search *s, const struct candidate *c) {
	bool awaited = false, yields = false;

	for (unsigned i = 0; i < s->n; i++) {
		awaited |= c->places[i].awaited;
		yields |= c->places[i].yields;
	}
	return awaited && yields;
}

static bool same_places(const struct search *s, const struct candidate *a,
			const struct candidate *b) {
	for (unsigned i = 0; i < s->n; i++) {
		if (!same_place(&a->places[i], &b->places[i])) {
			return false;
		}
	}
	return true;
}

/* Where tasks may yield: takes the gates, or none, with which fewest jobs are late. What they cost
 * is not worth a mean response. Return: whether they are others. */
static bool move_gates(struct search *s, struct candidate *c, double *best) {
	const struct candidate from = *c;
	unsigned bands = s->gpu->guards ? 2 : 1;
	bool moved = false;

	for (unsigned i = 0; s->gpu->gates && i <= bands * s->n && !stopped(s); i++) {
		nsec_t longest = i < bands * s->n ? s->tasks[i / bands].deadline : 0;
		struct candidate other = with_gates(s, &from, longest, i % bands);
		double gain = longest ? 1 : 0, b;

		if (same_places(s, &other, c) ||
		    (i < bands * s->n && (!longest || !has_gates(s, &other)))) {
			continue;
		}
		b = badness(s, &other, *best);
		if (b < *best - gain) {
			*best = b;
			*c = other;
			moved = true;
		}
	}
	return moved;
}

static void note_gateless(struct search *s, const struct candidate *c, double badness) {
	if (badness < s->gateless.badness && !has_gates(s, c)) {
		s->gateless = (struct optimum){*c, badness};
	}
}

/* The gates are moved like one task more: before the others, or after them. */
static double improve(struct search *s, struct candidate *c, bool gates_last) {
	double best = badness(s, c, INFINITY);
	unsigned n = s->n + 1, gates = gates_last ? s->n : 0;
	unsigned still = 0; /* in a row that did not move: all others are where they were */

	for (unsigned i = 0; i < ROUNDS_MAX * n && still < n; i++) {
		unsigned task = gates_last ? i % n : i % n - 1;
		bool moved;

		if (i % n == gates) {
			note_gateless(s, c, best);
			moved = move_gates(s, c, &best);
		} else {
			moved = s->known[task] && move(s, c, task, &best);
		}
		still = moved ? 0 : still + 1;
	}
	note_gateless(s, c, best);
	return best;
}

/* Among the optima, in their order. */
static void insert(struct search *s, const struct candidate *c, double badness) {
	unsigned at = s->n_optima++;

	while (at > 0 && badness < s->optima[at - 1].badness) {
		s->optima[at] = s->optima[at - 1];
		at--;
	}
	s->optima[at] = (struct optimum){*c, badness};
}

/* Everybody everywhere, the shortest deadline at the highest level. */
static struct candidate by_deadline(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].regions[0] = other.places[i].regions[1] = true;
		other.places[i].level = plan_level(s->tasks, s->n, i);
	}
	return other;
}

static void try_from(struct search *s, struct candidate *c, unsigned lower, bool gates_last) {
	c->lower = lower;
	if (lower > 0) {
		insert(s, c, improve(s, c, gates_last));
	}
}

/* Where gates come first, parts of the GPU are found that fit them, and the other way round:
 * neither is always better, so the starts take turns. */
static void try_cuts(struct search *s, struct candidate *c) {
	const struct candidate rule = *c;
	struct candidate levels = by_deadline(s, c);

	for (size_t k = 0; k < N_CUTS && !(k > 0 && stopped(s)); k++) {
		struct candidate other = rule;

		try_from(s, &other, s->n_groups * cuts[k] / 8, k % 2);
		if (k == 0 && !stopped(s)) {
			try_from(s, &levels, s->n_groups * cuts[k] / 8, true);
		}
	}
	*c = s->optima[0].candidate;
}

/* How long a prediction of the search should look. */
static nsec_t search_time(const struct search *s) {
	double launches = 0; /* a second */
	nsec_t time;

	for (unsigned i = 0; i < s->n; i++) {
		const struct model_task *t = &s->tasks[i];
		nsec_t period = t->period ? t->period : t->kernels[s->gpu->sms];

		launches += (double)t->launches * NSEC_PER_SEC / (double)(period ? period : 1);
	}
	time = (nsec_t)(SEARCH_LAUNCHES / launches * NSEC_PER_SEC);
	time = time < SEARCH_TIME_MIN ? SEARCH_TIME_MIN : time;
	time = time < s->longest * 2 ? s->longest * 2 : time;
	return time < s->time ? time : s->time;
}

/* As MPS alone does it. */
static struct candidate free_for_all(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].regions[0] = other.places[i].regions[1] = true;
		other.places[i].copies = TERMS_COPIES_WHOLE;
		other.places[i].level = 0;
		other.places[i].awaited = other.places[i].guarded = other.places[i].yields = false;
	}
	return other;
}

/* @c: whichever. */
static void predict_alone(struct search *s, const struct candidate *c, double *ret) {
	const struct candidate everywhere = free_for_all(s, c);
	struct model_result results[MODEL_TASKS_MAX];

	predict(s, &everywhere, results);
	for (unsigned i = 0; i < s->n; i++) {
		ret[i] = late_part(&results[i]);
	}
}

static void search(struct search *s, struct candidate *c) {
	nsec_t whole = s->time;

	s->time = search_time(s);
	predict_alone(s, c, s->alone);
	for (unsigned i = 0; i < s->n; i++) {
		c->places[i].level = plan_level(s->tasks, s->n, i);
	}
	try_cuts(s, c);
	s->time = whole;
}

/* ---- in and out ---- */

static struct terms terms_of(const struct search *s, const struct candidate *c, unsigned task) {
	const struct model_place *p = &c->places[task];
	struct terms t = {
		.steered = true,
		.level = p->level,
		.copies = p->copies,
		.awaited = p->awaited,
		.guarded = p->guarded,
		.yields = p->yields,
	};

	if (!p->regions[0] || !p->regions[1]) {
		t.first = p->regions[0] ? 0 : c->lower;
		t.n = p->regions[0] ? c->lower : s->n_groups - c->lower;
		t.group = s->gpu->group;
	}
	return t;
}

bool plan_can_predict(const struct plan_task *tasks, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		if (tasks[i].model.deadline && !tasks[i].known) {
			return false;
		}
	}
	return true;
}

static void take_task(struct search *s, unsigned i, const struct plan_task *task) {
	s->tasks[i] = task->model;
	s->known[i] = task->known;
	if (!task->known) {
		s->tasks[i] = (struct model_task){.deadline = task->model.deadline,
						  .launches = 1,
						  .block = UNKNOWN_BLOCK,
						  .kernels = s->unknown};
	}
}

static void search_init(struct search *s, const struct plan_gpu *gpu, const struct plan_task *tasks,
			unsigned n) {
	assert(n > 0 && n <= MODEL_TASKS_MAX && gpu->group > 0);
	*s = (struct search){.gpu = gpu,
			     .n = n,
			     .n_groups = terms_groups(gpu->sms, gpu->group),
			     .gateless = {.badness = INFINITY}};
	for (unsigned m = 1; m <= gpu->sms; m++) {
		s->unknown[m] = UNKNOWN_BLOCK * UNKNOWN_WAVES * gpu->sms / m;
	}
	for (unsigned i = 0; i < n; i++) {
		take_task(s, i, &tasks[i]);
		s->longest = s->tasks[i].period > s->longest ? s->tasks[i].period : s->longest;
	}
	s->time = s->longest * JOBS_LOOKED_AT;
	s->time = s->time < TIME_MIN ? TIME_MIN : s->time > TIME_MAX ? TIME_MAX : s->time;
}

/* More than half of its jobs would be late if nobody else were there. */
static bool is_hopeless(const struct search *s, unsigned task) {
	static const struct model_wake wake = {PLAN_WAKE_MIN, PLAN_WAKE_MAX};
	const struct model_place everywhere = {.regions = {true, true}};
	const struct model_task *t = &s->tasks[task];
	struct model_gpu gpu = model_gpu(s->gpu, s->n_groups / 2);
	struct model_limit limit = {.events = RUN_EVENTS, .missed = UINT_MAX};
	struct model_result alone;

	if (!t->deadline || !t->period) {
		return false;
	}
	model_run(&gpu, &wake, t, &everywhere, 1, JOBS_LOOKED_AT * t->period, 0, &limit, &alone);
	return alone.missed * 2 > alone.released;
}

static struct candidate start_of(const struct search *s, const struct plan_task *tasks) {
	struct candidate c = {.lower = s->n_groups / 2};

	follow_rule(tasks, s->n, &c);
	for (unsigned i = 0; c.lower == 0 && i < s->n; i++) { /* it can't be cut */
		c.places[i].regions[0] = c.places[i].regions[1] = true;
	}
	return c;
}

static struct candidate rule_of(const struct search *s, const struct plan_task *tasks) {
	const struct candidate start = start_of(s, tasks), everywhere = free_for_all(s, &start);
	bool all = s->n > 1;

	for (unsigned i = 0; i < s->n; i++) {
		all &= tasks[i].model.deadline > 0;
	}
	return all ? by_deadline(s, &everywhere) : start;
}

void plan_rule(const struct plan_gpu *gpu, const struct plan_task *tasks, unsigned n,
	       struct terms *ret) {
	struct candidate c;
	struct search s;

	search_init(&s, gpu, tasks, n);
	c = rule_of(&s, tasks);
	for (unsigned i = 0; i < n; i++) {
		ret[i] = terms_of(&s, &c, i);
	}
}

static void write_way(const struct search *s, const struct candidate *c, struct terms *ret_terms,
		      nsec_t *ret_tail) {
	struct model_gpu gpu = model_gpu(s->gpu, c->lower);

	for (unsigned i = 0; i < s->n; i++) {
		ret_terms[i] = terms_of(s, c, i);
		ret_tail[i] = s->known[i] ? model_tail(&gpu, &s->tasks[i], &c->places[i]) : 0;
	}
}

static bool same_terms(const struct terms *a, const struct terms *b, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		if (!terms_equal(&a[i], &b[i])) {
			return false;
		}
	}
	return true;
}

/* Unless the plan has it already. */
static void add_other(struct search *s, const struct candidate *c, struct plan *plan) {
	struct plan_way *way = &plan->others[plan->n_others];

	write_way(s, c, way->terms, way->tail);
	for (unsigned i = 0; i < plan->n_others; i++) {
		if (same_terms(way->terms, plan->others[i].terms, s->n)) {
			return;
		}
	}
	if (!same_terms(way->terms, plan->terms, s->n)) {
		predict(s, c, way->predicted);
		plan->n_others++;
	}
}

static void add_others(struct search *s, const struct candidate *rule, struct plan *plan) {
	const struct candidate everywhere = free_for_all(s, rule), *best = &s->optima[0].candidate;
	unsigned kept = OPTIMA_KEPT;

	if (has_gates(s, best)) {
		const struct candidate bandless = without_bands(s, best);

		add_other(s, &bandless, plan);
		add_other(s, &s->gateless.candidate, plan);
		kept += plan->n_others;
	}
	for (unsigned i = 1; i < s->n_optima && plan->n_others < kept; i++) {
		if (s->optima[i].badness <= OPTIMA_WORSE * s->optima[0].badness + OPTIMA_MORE) {
			add_other(s, &s->optima[i].candidate, plan);
		}
	}
	add_other(s, rule, plan);
	add_other(s, &everywhere, plan);
}

void plan_make(const struct plan_gpu *gpu, const struct plan_task *tasks, unsigned n,
	       enum plan_effort effort, const _Atomic bool *stop, struct plan *ret) {
	struct candidate c, rule;
	struct search s;

	search_init(&s, gpu, tasks, n);
	s.stop = stop;
	s.events_max = plan_events[effort];
	rule = rule_of(&s, tasks);
	c = start_of(&s, tasks);
	*ret = (struct plan){.is_predicted = plan_can_predict(tasks, n) && rule.lower > 0};
	for (unsigned i = 0; ret->is_predicted && i < n; i++) {
		ret->hopeless[i] = rule.places[i].last = c.places[i].last = is_hopeless(&s, i);
	}
	if (ret->is_predicted && any_deadline(tasks, n) && n > 1) {
		search(&s, &c);
	} else {
		c = rule;
	}
	ret->is_whole = !stopped(&s);
	write_way(&s, &c, ret->terms, ret->tail);
	if (ret->is_predicted) {
		predict(&s, &c, ret->predicted);
	}
	if (s.n_optima > 0 && !is_given_up(&s)) {
		predict_alone(&s, &rule, ret->alone);
		add_others(&s, &rule, ret);
	}
	ret->n_tried = s.n_tried;
}

/* Return: false if @terms are of another form. */
static bool read_terms(const struct plan_gpu *gpu, const struct terms *terms, unsigned n,
		       struct candidate *ret) {
	struct candidate c = {.lower = terms_groups(gpu->sms, gpu->group) / 2};

	for (unsigned i = 0; i < n; i++) {
		if (terms[i].n > 0) {
			c.lower = terms[i].first == 0 ? terms[i].n : terms[i].first;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		const struct terms *t = &terms[i];

		if (t->n > 0 && t->first != 0 && t->first != c.lower) {
			return false;
		}
		c.places[i] = (struct model_place){
			.regions = {t->n == 0 || t->first == 0, t->n == 0 || t->first > 0},
			.level = t->level,
			.copies = t->copies,
			.awaited = t->awaited,
			.guarded = t->guarded,
			.yields = t->yields,
		};
	}
	*ret = c;
	return true;
}

bool plan_places(const struct plan_gpu *gpu, const struct terms *terms, unsigned n,
		 struct model_gpu *ret_gpu, struct model_place *ret_places) {
	struct candidate c;

	if (!read_terms(gpu, terms, n, &c)) {
		return false;
	}
	*ret_gpu = model_gpu(gpu, c.lower);
	memcpy(ret_places, c.places, n * sizeof(*ret_places));
	return true;
}

bool plan_predict(const struct plan_gpu *gpu, const struct plan_task *tasks,
		  const struct terms *terms, unsigned n, struct model_result *ret) {
	struct candidate c;
	struct search s;

	if (!plan_can_predict(tasks, n) || !read_terms(gpu, terms, n, &c)) {
		return false;
	}
	search_init(&s, gpu, tasks, n);
	predict(&s, &c, ret);
	return true;
}
