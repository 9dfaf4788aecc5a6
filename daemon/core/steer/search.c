/*
 * search.c: see search.h.
 */
#include "daemon/core/steer/search.h"

#include <math.h>
#include <string.h>

/* A plan should be there before long, so a search looks at so many launches at a time, but not at
 * less than this. */
#define SEARCH_LAUNCHES 10000.0
#define SEARCH_TIME_MIN (100 * NSEC_PER_MSEC)

/* Of the starts, and of all predictions for a plan, times the tasks, for an event takes as much
 * longer. Without gates places are all that there is, and single changes hardly get from one
 * start's to another's, so the starts have more. */
struct limits {
	uint64_t starts, all; /* events */
};

static const struct limits with_gates_max[] = {
	[PLAN_QUICK] = {26000000, 40000000},
	[PLAN_MEDIUM] = {60000000, 150000000},
	[PLAN_WHOLE] = {60000000, 300000000},
};
static const struct limits gateless_max[] = {
	[PLAN_QUICK] = {26000000, 40000000},
	[PLAN_MEDIUM] = {100000000, 150000000},
	[PLAN_WHOLE] = {200000000, 300000000},
};

/* Who looks quickly looks at such a part of the time. */
static const unsigned time_part[] = {[PLAN_QUICK] = 2, [PLAN_MEDIUM] = 1, [PLAN_WHOLE] = 1};

/* So many changes for each task in a row that are no better, and there is hardly one that is; after
 * a kick, few are worth more. */
#define STILL_MAX  20
#define STILL_KICK 8

/* A kick is so many changes, and so many kicks in a row that led nowhere are enough. */
#define KICK_CHANGES 3
#define KICKS_MAX    100

/* What is compared with the optima at last: the rule, everybody everywhere, and so by deadline; the
 * best before the margin was widened, and the best where nobody yields. */
#define SEARCH_MORE 5

/* Rounds in which every task may move once. */
#define ROUNDS_MAX 3

/* The cuts that are tried, in eighths of the groups. */
static const unsigned cuts[] = {4, 2, 3, 5, 6};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))
_Static_assert(N_CUTS + 1 == SEARCH_STARTS, "the rule at each cut, and levels by deadline");

static unsigned pick(struct search *s, unsigned below) {
	return (unsigned)model_random(&s->random, below);
}

static bool same_place(const struct model_place *a, const struct model_place *b) {
	return a->regions[0] == b->regions[0] && a->regions[1] == b->regions[1] &&
	       a->level == b->level && a->copies == b->copies && a->awaited == b->awaited &&
	       a->guarded == b->guarded && a->yields == b->yields &&
	       a->back_by_kernel == b->back_by_kernel;
}

/* In the last step: whether no job is late with @c if kernels take only a little longer. */
static bool keeps_deadlines(struct search *s, const struct candidate *c) {
	double badness;

	search_slow(s, SEARCH_SLOW);
	badness = search_badness(s, c, 1);
	search_slow(s, SEARCH_MARGIN);
	return badness < 1;
}

/* Takes @c if that is better than @o, by more than @gain. Return: whether. */
static bool take_better(struct search *s, struct optimum *o, const struct candidate *c,
			double gain) {
	double bound = o->badness - gain, badness;

	if (search_stopped(s)) {
		return false;
	}
	badness = search_badness(s, c, bound);
	if (badness >= bound || (s->margin && !keeps_deadlines(s, c))) {
		return false;
	}
	*o = (struct optimum){*c, badness};
	return true;
}

/* Takes @place for @task if that is better, by more than @gain. Return: whether. */
static bool try_place(struct search *s, struct optimum *o, unsigned task,
		      const struct model_place *place, double gain) {
	struct candidate other = o->candidate;

	if (same_place(place, &other.places[task])) {
		return false;
	}
	other.places[task] = *place;
	return take_better(s, o, &other, gain);
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

static void set_regions(struct model_place *place, unsigned which) {
	place->regions[0] = which != 2;
	place->regions[1] = which != 1;
}

/* Held, or first and whole, where copies of several tasks meet, and this one has some that are
 * worth it. Return: by how much that must be better. */
static double change_copies(const struct search *s, struct model_place *place, unsigned task) {
	bool first = place->copies == TERMS_COPIES_HELD;

	if (place->copies == TERMS_COPIES_WHOLE || s->tasks[task].copy_in <= SEARCH_PIECE) {
		return 0;
	}
	place->copies = first ? TERMS_COPIES_FIRST : TERMS_COPIES_HELD;
	return first ? gain_for_first(s, task) : 0;
}

/* Another task has the engine for long at a time. */
static bool others_copy_back(const struct search *s, unsigned task) {
	for (unsigned i = 0; i < s->n; i++) {
		if (i != task && s->tasks[i].copy_out > SEARCH_BACK_MAX) {
			return true;
		}
	}
	return false;
}

/* By a kernel, which has SMs for a short time then, or by the engine. Where that is free before
 * long, a kernel saves nothing, but takes SMs from others. */
static void change_back(const struct search *s, struct model_place *place, unsigned task) {
	nsec_t takes = s->tasks[task].copy_out;

	place->back_by_kernel = !place->back_by_kernel && takes > 0 && takes <= SEARCH_BACK_MAX &&
				others_copy_back(s, task);
}

/* Moves one task where that is better. Return: whether. */
static bool move(struct search *s, struct optimum *o, unsigned task) {
	struct model_place place;
	bool moved = false;
	double gain;

	for (unsigned k = 0; k < 6; k++) {
		place = o->candidate.places[task];
		set_regions(&place, k % 3);
		place.level = k < 3 ? model_level(s->tasks, s->n, task) : 0;
		moved |= try_place(s, o, task, &place, 0);
	}
	place = o->candidate.places[task];
	gain = change_copies(s, &place, task);
	moved |= try_place(s, o, task, &place, gain);
	place = o->candidate.places[task];
	change_back(s, &place, task);
	moved |= try_place(s, o, task, &place, 0);
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

bool search_has_gates(const struct search *s, const struct candidate *c) {
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
static bool move_gates(struct search *s, struct optimum *o) {
	const struct candidate from = o->candidate;
	unsigned bands = s->gpu->guards ? 2 : 1;
	bool moved = false;

	for (unsigned i = 0; s->gpu->gates && i <= bands * s->n && !search_stopped(s); i++) {
		nsec_t longest = i < bands * s->n ? s->tasks[i / bands].deadline : 0;
		struct candidate other = with_gates(s, &from, longest, i % bands);

		if (same_places(s, &other, &o->candidate) ||
		    (i < bands * s->n && (!longest || !search_has_gates(s, &other)))) {
			continue;
		}
		moved |= take_better(s, o, &other, longest ? 1 : 0);
	}
	return moved;
}

static void note_gateless(struct search *s, const struct optimum *o) {
	if (o->badness < s->gateless.badness && !search_has_gates(s, &o->candidate)) {
		s->gateless = *o;
	}
}

/* The gates are moved like one task more: before the others, or after them. */
static struct optimum improve(struct search *s, const struct candidate *c, bool gates_last) {
	unsigned n = s->n + 1, gates = gates_last ? s->n : 0;
	unsigned still = 0; /* in a row that did not move: all others are where they were */
	struct optimum o = {*c, search_badness(s, c, INFINITY)};

	for (unsigned i = 0; i < ROUNDS_MAX * n && still < n; i++) {
		unsigned task = gates_last ? i % n : i % n - 1;
		bool moved;

		if (i % n == gates) {
			note_gateless(s, &o);
			moved = move_gates(s, &o);
		} else {
			moved = s->known[task] && move(s, &o, task);
		}
		still = moved ? 0 : still + 1;
	}
	note_gateless(s, &o);
	return o;
}

/* Among the optima, in their order. */
static void insert(struct search *s, const struct optimum *o) {
	unsigned at = s->n_optima++;

	while (at > 0 && o->badness < s->optima[at - 1].badness) {
		s->optima[at] = s->optima[at - 1];
		at--;
	}
	s->optima[at] = *o;
}

struct candidate search_by_deadline(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].regions[0] = other.places[i].regions[1] = true;
		other.places[i].level = model_level(s->tasks, s->n, i);
	}
	return other;
}

static void try_from(struct search *s, const struct candidate *c, unsigned lower, bool gates_last) {
	struct candidate start = *c;
	struct optimum o;

	start.lower = lower;
	if (lower > 0) {
		o = improve(s, &start, gates_last);
		insert(s, &o);
	}
}

/* Where gates come first, parts of the GPU are found that fit them, and the other way round:
 * neither is always better, so the starts take turns. */
static void try_cuts(struct search *s, const struct candidate *rule) {
	const struct candidate levels = search_by_deadline(s, rule);

	for (size_t k = 0; k < N_CUTS && !(k > 0 && search_stopped(s)); k++) {
		unsigned lower = s->n_groups * cuts[k] / 8;

		try_from(s, rule, lower, k % 2);
		if (k == 0 && !search_stopped(s)) {
			try_from(s, &levels, lower, true);
		}
	}
}

enum change {
	CHANGE_REGIONS,
	CHANGE_SWAP, /* regions, with another task */
	CHANGE_CUT,  /* of all */
	CHANGE_LEVEL,
	CHANGE_COPIES,
	CHANGE_BACK,
	CHANGE_AWAITED,
	CHANGE_GUARDED,
	CHANGE_YIELDS,
	_CHANGE_N,
};

static void swap_regions(struct model_place *a, struct model_place *b) {
	const struct model_place was = *a;

	memcpy(a->regions, b->regions, sizeof(a->regions));
	memcpy(b->regions, was.regions, sizeof(b->regions));
}

/* By one group or two, where there are so many. */
static void move_cut(const struct search *s, struct candidate *c, unsigned which) {
	static const int by[] = {-2, -1, 1, 2};
	int lower = (int)c->lower + by[which];

	if (lower > 0 && lower < (int)s->n_groups) {
		c->lower = (unsigned)lower;
	}
}

static void change_gates(const struct search *s, struct model_place *place, unsigned task,
			 enum change change) {
	const struct model_task *t = &s->tasks[task];
	bool may_await = s->gpu->gates && t->deadline && !place->last;

	if (change == CHANGE_YIELDS) {
		place->yields = !place->yields && s->gpu->gates;
	} else if (change == CHANGE_AWAITED) {
		place->awaited = !place->awaited && may_await;
		place->guarded &= place->awaited;
	} else {
		place->guarded = !place->guarded && may_await && s->gpu->guards && t->period;
		place->awaited |= place->guarded;
	}
}

/* Changes one thing about @task. Return: by how much that must be better. What holds others up is
 * not worth a mean response. */
static double change_one(struct search *s, struct candidate *c, unsigned task, enum change change) {
	struct model_place *place = &c->places[task], was = *place;

	switch (change) {
	case CHANGE_REGIONS:
		set_regions(place, pick(s, 3));
		break;
	case CHANGE_SWAP:
		swap_regions(place, &c->places[pick(s, s->n)]);
		break;
	case CHANGE_CUT:
		move_cut(s, c, pick(s, 4));
		break;
	case CHANGE_LEVEL:
		place->level = place->level ? 0 : model_level(s->tasks, s->n, task);
		break;
	case CHANGE_COPIES:
		return change_copies(s, place, task);
	case CHANGE_BACK:
		change_back(s, place, task);
		break;
	default:
		change_gates(s, place, task, change);
	}
	return (place->awaited && !was.awaited) || (place->guarded && !was.guarded) ||
			       (place->yields && !was.yields)
		       ? 1
		       : 0;
}

/* One change at random. Return: by how much that must be better. */
static double change_any(struct search *s, struct candidate *c) {
	unsigned task = pick(s, s->n);

	return s->known[task] ? change_one(s, c, task, (enum change)pick(s, _CHANGE_N)) : 0;
}

/* One change after the other, as long as there are some that are better; until there was none in
 * @still_max for each task. */
static void climb(struct search *s, struct optimum *o, unsigned still_max) {
	for (unsigned still = 0; still < still_max * s->n && !search_stopped(s); still++) {
		struct candidate other = o->candidate;
		double gain = change_any(s, &other);

		if (other.lower == o->candidate.lower && same_places(s, &other, &o->candidate)) {
			continue;
		}
		if (take_better(s, o, &other, gain)) {
			still = 0;
		}
	}
}

/* Where no single change is better several together may be: so many, and a climb from there, again
 * and again, as long as a job is late (iterated local search). */
static void kick(struct search *s, struct optimum *best) {
	for (unsigned n = 0; n < KICKS_MAX && best->badness >= 1 && !search_stopped(s); n++) {
		struct optimum other = *best;

		for (unsigned i = 0; i < KICK_CHANGES; i++) {
			change_any(s, &other.candidate);
		}
		other.badness = search_badness(s, &other.candidate, INFINITY);
		climb(s, &other, STILL_KICK);
		if (other.badness < best->badness &&
		    (!s->margin || keeps_deadlines(s, &other.candidate))) {
			*best = other;
			n = 0;
		}
	}
}

/* @best keeps all deadlines: looks for what keeps them if kernels take much longer, too. But
 * nothing is worth jobs that are late when one looks for @longer. */
static void widen_margin(struct search *s, struct optimum *best, nsec_t longer) {
	struct optimum wider = *best;
	nsec_t time = s->time;

	s->margin = true;
	search_slow(s, SEARCH_MARGIN);
	wider.badness = search_badness(s, &wider.candidate, INFINITY);
	climb(s, &wider, STILL_MAX);
	kick(s, &wider);
	search_slow(s, SEARCH_SLOW);
	s->margin = false;
	s->time = longer;
	wider.badness = search_badness(s, &wider.candidate, INFINITY);
	if (wider.badness < 1 ||
	    wider.badness <= search_badness(s, &best->candidate, wider.badness + 1)) {
		best->candidate = wider.candidate;
	}
	s->time = time;
}

/* Compares the best with the other optima and the candidates in @more, of those that are no worse
 * in what the search looks at. One that makes fewer jobs late with more drawings comes first. */
static void compare_all(struct search *s, const struct candidate more[static SEARCH_MORE]) {
	double most = floor(s->optima[0].badness) + 1, least;
	struct optimum all[SEARCH_STARTS + SEARCH_MORE], *best = &all[0];
	unsigned n = s->n_optima;

	memcpy(all, s->optima, n * sizeof(all[0]));
	for (unsigned i = 0; i < SEARCH_MORE; i++) {
		all[n++] = (struct optimum){more[i], search_badness(s, &more[i], most)};
	}
	search_look(s, SEARCH_DRAWINGS_LAST);
	least = floor(search_badness(s, &best->candidate, INFINITY));
	for (unsigned i = 1; i < n && least > 0; i++) {
		if (all[i].badness < most) {
			double badness = floor(search_badness(s, &all[i].candidate, least));

			best = badness < least ? &all[i] : best;
			least = badness < least ? badness : least;
		}
	}
	search_look(s, SEARCH_DRAWINGS);
	if (best != &all[0]) {
		n = s->n_optima < SEARCH_STARTS ? s->n_optima++ : SEARCH_STARTS - 1;
		memmove(&s->optima[1], &s->optima[0], n * sizeof(s->optima[0]));
		s->optima[0] = *best;
	}
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

void search_run(struct search *s, struct candidate *c, enum plan_effort effort) {
	const struct limits *max = s->gpu->gates ? &with_gates_max[effort] : &gateless_max[effort];
	struct candidate more[SEARCH_MORE] = {*c, search_free_for_all(s, c)};
	nsec_t whole = s->time;

	more[2] = search_by_deadline(s, &more[1]);
	s->time = search_time(s) / time_part[effort];
	search_alone(s, c, s->alone);
	for (unsigned i = 0; i < s->n; i++) {
		c->places[i].level = model_level(s->tasks, s->n, i);
	}
	s->events_max = max->starts;
	try_cuts(s, c);
	s->cut_short = search_stopped(s);
	s->events_max = max->all;
	climb(s, &s->optima[0], STILL_MAX);
	kick(s, &s->optima[0]);
	more[3] = s->optima[0].candidate;
	if (s->optima[0].badness < 1) {
		widen_margin(s, &s->optima[0], whole);
	}
	s->cut_short |= search_stopped(s);
	note_gateless(s, &s->optima[0]);
	more[4] = s->gateless.candidate;
	if (!search_given_up(s)) {
		compare_all(s, more);
	}
	*c = s->optima[0].candidate;
	s->time = whole;
}
