/*
 * plan.c: see plan.h.
 */
#include "daemon/core/steer/plan.h"

#include <string.h>

#include "daemon/core/steer/renumber.h"
#include "daemon/core/steer/search.h"

/* Blocks longer than this part of somebody else's deadline are long. */
#define LONG_PART 10

/* Of the best at other cuts so many are kept, with late jobs in the time looked at of at most so
 * many times those of the very best, and some. */
#define OPTIMA_KEPT  2
#define OPTIMA_WORSE 2
#define OPTIMA_MORE  10

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

static unsigned n_deadlines(const struct plan_task *tasks, unsigned n) {
	unsigned with = 0;

	for (unsigned i = 0; i < n; i++) {
		with += tasks[i].model.deadline > 0;
	}
	return with;
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
	bool urgent = n_deadlines(tasks, n) > 0;
	enum terms_copies copies =
		urgent && copies_meet(tasks, n) ? TERMS_COPIES_HELD : TERMS_COPIES_WHOLE;

	for (unsigned i = 0; i < n; i++) {
		bool upper = urgent && (!tasks[i].model.deadline || is_long(tasks, n, i));

		ret->places[i] = (struct model_place){.regions = {!upper, true}, .copies = copies};
	}
}

static struct terms terms_of(const struct search *s, const struct candidate *c, unsigned task) {
	const struct model_place *p = &c->places[task];
	struct terms t = {
		.steered = true,
		.level = p->level,
		.copies = p->copies,
		.awaited = p->awaited,
		.guarded = p->guarded,
		.yields = p->yields,
		.back_by_kernel = p->back_by_kernel,
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

static struct candidate start_of(const struct search *s, const struct plan_task *tasks) {
	struct candidate c = {.lower = s->n_groups / 2};

	follow_rule(tasks, s->n, &c);
	for (unsigned i = 0; c.lower == 0 && i < s->n; i++) { /* it can't be cut */
		c.places[i].regions[0] = c.places[i].regions[1] = true;
	}
	return c;
}

static struct candidate rule_of(const struct search *s, const struct plan_task *tasks) {
	const struct candidate start = start_of(s, tasks),
			       everywhere = search_free_for_all(s, &start);

	return s->n > 1 && n_deadlines(tasks, s->n) == s->n ? search_by_deadline(s, &everywhere)
							    : start;
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
	struct model_gpu gpu = search_gpu(s->gpu, c->lower);

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
		search_predict(s, c, way->predicted);
		plan->n_others++;
	}
}

static struct candidate without_bands(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].guarded = false;
	}
	return other;
}

static void add_others(struct search *s, const struct candidate *rule, struct plan *plan) {
	const struct candidate everywhere = search_free_for_all(s, rule),
			       *best = &s->optima[0].candidate;
	unsigned kept = OPTIMA_KEPT;

	if (search_has_gates(s, best)) {
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
	       enum plan_effort effort, unsigned seed, const _Atomic bool *stop, struct plan *ret) {
	struct candidate c, rule;
	struct search s;

	search_init(&s, gpu, tasks, n);
	s.random = seed;
	s.stop = stop;
	rule = rule_of(&s, tasks);
	c = start_of(&s, tasks);
	*ret = (struct plan){.is_predicted = plan_can_predict(tasks, n) && rule.lower > 0};
	for (unsigned i = 0; ret->is_predicted && i < n; i++) {
		ret->hopeless[i] = rule.places[i].last = c.places[i].last = search_hopeless(&s, i);
	}
	if (ret->is_predicted && n_deadlines(tasks, n) > 0 && n > 1) {
		search_run(&s, &c, effort);
	} else {
		c = rule;
	}
	ret->is_whole = !search_given_up(&s) && (effort == PLAN_WHOLE || !s.cut_short);
	write_way(&s, &c, ret->terms, ret->tail);
	if (ret->is_predicted) {
		search_predict(&s, &c, ret->predicted);
	}
	ret->badness = s.n_optima > 0 ? s.optima[0].badness : 0;
	if (s.n_optima > 0 && !search_given_up(&s)) {
		search_alone(&s, &rule, ret->alone);
		add_others(&s, &rule, ret);
	}
	ret->n_tried = s.n_tried;
}

/* ---- tasks that come and go ---- */

/* For a task that @terms were not planned for: above the cut, or below it if tasks with a deadline
 * are kept above it and nowhere else. */
static struct terms join(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
			 unsigned n, const struct terms *terms) {
	unsigned n_groups = terms_groups(gpu->sms, gpu->group), lower = n_groups / 2;
	struct terms t = {.steered = true};
	bool below = false, above = false;

	for (unsigned i = 0; i < n; i++) {
		if (from[i] >= 0 && terms[i].n > 0) {
			lower = terms[i].first == 0 ? terms[i].n : terms[i].first;
			below |= tasks[i].model.deadline && terms[i].first == 0;
			above |= tasks[i].model.deadline && terms[i].first > 0;
		}
		if (from[i] >= 0) {
			t.yields |= terms[i].awaited;
			t.copies = terms[i].copies != TERMS_COPIES_WHOLE ? TERMS_COPIES_HELD
									 : t.copies;
		}
	}
	if (lower > 0) {
		t.first = above && !below ? 0 : lower;
		t.n = t.first == 0 ? lower : n_groups - lower;
		t.group = gpu->group;
	}
	return t;
}

static void move(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
		 unsigned n, struct terms *terms, struct model_result *predicted, nsec_t *tail) {
	struct terms joined;

	renumber(terms, sizeof(*terms), from, n);
	renumber(predicted, sizeof(*predicted), from, n);
	renumber(tail, sizeof(*tail), from, n);
	joined = join(gpu, tasks, from, n, terms);
	for (unsigned i = 0; i < n; i++) {
		terms[i] = from[i] < 0 ? joined : terms[i];
	}
}

void plan_way_move(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
		   unsigned n, struct plan_way *way) {
	move(gpu, tasks, from, n, way->terms, way->predicted, way->tail);
}

void plan_move(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
	       unsigned n, struct plan *plan) {
	renumber(plan->alone, sizeof(*plan->alone), from, n);
	renumber(plan->hopeless, sizeof(*plan->hopeless), from, n);
	move(gpu, tasks, from, n, plan->terms, plan->predicted, plan->tail);
	for (unsigned i = 0; i < plan->n_others; i++) {
		plan_way_move(gpu, tasks, from, n, &plan->others[i]);
	}
}

bool plan_is_better(enum plan_effort effort, double badness, enum plan_effort other_effort,
		    double other_badness) {
	bool quick = effort == PLAN_QUICK, other_quick = other_effort == PLAN_QUICK;

	if (quick != other_quick || (badness < 1 && other_badness < 1)) {
		return effort > other_effort;
	}
	return badness < other_badness;
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
			.back_by_kernel = t->back_by_kernel,
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
	*ret_gpu = search_gpu(gpu, c.lower);
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
	search_predict(&s, &c, ret);
	return true;
}
