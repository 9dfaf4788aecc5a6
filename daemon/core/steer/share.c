/*
 * share.c: see share.h.
 */
#include "daemon/core/steer/share.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "daemon/core/steer/renumber.h"

/* Between two looks; the longer the less there is to see. */
#define PAUSE_MIN (50 * NSEC_PER_MSEC)
#define PAUSE_MAX (1 * NSEC_PER_SEC)

/* Fewer jobs say nothing. */
#define JOBS_MIN 16

/* Kernels are short if the mean of a program's launches takes no longer than this. A program that
 * waits for its CPU seems to have longer ones than it has. */
#define SHORT_LAUNCH (200 * NSEC_PER_USEC)
/* Below others it takes longer: it is not short any more from here on. */
#define LONG_LAUNCH (2 * SHORT_LAUNCH)

/* Parts of a deadline: up to which responses may come for a place to stay; up to which they are
 * expected to come on a smaller part; and up to which others may run everywhere beside them. */
#define STAY_PART   0.85
#define EXPECT_PART 0.8
#define FREE_PART   0.6

/* Others had better not wait for jobs that are open for more than this part of the time. They begin
 * to again from the other part on, for where they don't wait responses are others. */
#define CROWDED_PART   0.5
#define UNCROWDED_PART 0.35

/* As many late jobs as by the rule: up to so many standard deviations more. About so many of the
 * last jobs count: by the rule, and where another place holds. */
#define CHANCE	      3.0
#define RULE_JOBS_MAX 8192
#define HERE_JOBS_MAX 1024

/* Then programs with a deadline are idle. */
#define IDLE_MIN (1 * NSEC_PER_SEC)

/* Windows after a failure, doubled at each. */
#define BACKOFF_MIN 16
#define BACKOFF_MAX 4096

/* If nobody has come or gone for so long, failures of before don't count any more. */
#define SAME_MIN (10 * NSEC_PER_SEC)

void share_start(struct share *s, unsigned n, const struct plan_gpu *gpu) {
	unsigned n_groups = terms_groups(gpu->sms, gpu->group);

	assert(n <= MODEL_TASKS_MAX && n_groups >= 2);
	*s = (struct share){
		.n = n,
		.n_groups = n_groups,
		.gates = gpu->gates,
		.guards = gpu->guards,
		.place = {.lower = n_groups / 2},
		.backoff = BACKOFF_MIN,
	};
}

void share_move(struct share *s, const int *from, unsigned n) {
	s->n = n;
	s->moved = true;
	s->same = 0;
	renumber(s->place.free, sizeof(*s->place.free), from, n);
	renumber(s->before.free, sizeof(*s->before.free), from, n);
	renumber(s->sum, sizeof(*s->sum), from, n);
	renumber(s->other_mean, sizeof(*s->other_mean), from, n);
	for (unsigned i = 0; i < n; i++) {
		if (from[i] < 0) {
			s->place.free[i] = s->place.yield;
			s->before.free[i] = s->before.yield;
		}
	}
}

/* ---- what was seen ---- */

static bool is_rule(const struct share *s) {
	static const struct share_place none;

	return !s->place.confined && memcmp(s->place.free, none.free, sizeof(none.free)) == 0;
}

static void count(const struct share *s, const struct share_seen *seen, struct share_count *ret) {
	for (unsigned i = 0; i < s->n; i++) {
		if (seen[i].deadline) {
			ret->jobs += (double)seen[i].jobs;
			ret->missed += (double)seen[i].missed;
			ret->part =
				fmax(ret->part, (double)seen[i].longest / (double)seen[i].deadline);
		}
	}
}

/* What was long ago counts for less. */
static void count_on(const struct share *s, const struct share_seen *seen, double jobs_max,
		     struct share_count *ret) {
	if (ret->jobs > jobs_max) {
		*ret = (struct share_count){.jobs = ret->jobs / 2, .missed = ret->missed / 2};
	}
	count(s, seen, ret);
}

/* Whether more of these jobs were late than there would be by the rule. */
static bool is_worse(const struct share *s, const struct share_count *c) {
	double by_rule = s->rule.jobs > 0 ? s->rule.missed / s->rule.jobs * c->jobs : 0;

	return c->missed > by_rule + CHANCE * sqrt(by_rule);
}

/* Whether a place in which these jobs ran does not stay. */
static bool is_harm(const struct share *s, const struct share_count *c) {
	return is_worse(s, c) || c->part > fmax(STAY_PART, s->rule.part);
}

static void see_idle(struct share *s, const struct share_seen *seen, nsec_t elapsed) {
	s->idle += elapsed;
	for (unsigned i = 0; i < s->n; i++) {
		if (seen[i].deadline && (seen[i].busy || seen[i].jobs || seen[i].unreported)) {
			s->idle = 0;
		}
	}
}

static void see_same(struct share *s, nsec_t elapsed) {
	s->same += elapsed;
	if (s->moved && s->same >= SAME_MIN) {
		s->moved = false;
		s->rest = 0;
		s->backoff = BACKOFF_MIN;
		s->yield_failed = (struct share_count){0};
	}
}

static void add(struct share *s, const struct share_seen *seen, nsec_t elapsed) {
	s->elapsed += elapsed;
	for (unsigned i = 0; i < s->n; i++) {
		struct share_seen *sum = &s->sum[i];

		sum->deadline = seen[i].deadline;
		sum->busy |= seen[i].busy || seen[i].jobs > 0;
		sum->jobs += seen[i].jobs;
		sum->missed += seen[i].missed;
		sum->launches += seen[i].launches;
		sum->response += seen[i].response;
		sum->longest = seen[i].longest > sum->longest ? seen[i].longest : sum->longest;
		sum->unreported += seen[i].unreported;
	}
}

static void count_anew(struct share *s) {
	s->elapsed = 0;
	memset(s->sum, 0, sizeof(s->sum));
}

static bool any_missed(const struct share *s) {
	struct share_count all = {0};

	count(s, s->sum, &all);
	return all.missed > 0;
}

/* Whether a job was late, or its response longer than this part of its deadline. */
static bool exceeds(const struct share *s, double part) {
	struct share_count all = {0};

	count(s, s->sum, &all);
	return all.missed > 0 || all.part > part;
}

/* Jobs with a deadline that nobody heard of may have been late. */
static bool has_hole(const struct share *s) {
	for (unsigned i = 0; i < s->n; i++) {
		if (s->sum[i].deadline && s->sum[i].unreported) {
			return true;
		}
	}
	return false;
}

/* Whether enough was seen of all programs with a deadline that do anything. */
static bool is_window(const struct share *s) {
	bool any = false;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->sum[i].deadline && s->sum[i].busy) {
			any = true;
			if (s->sum[i].jobs < JOBS_MIN) {
				return false;
			}
		}
	}
	return any;
}

/* The part of the time in which jobs with a deadline are open, each counted on its own. */
static double open_part(const struct share *s) {
	nsec_t open = 0;

	for (unsigned i = 0; i < s->n; i++) {
		open += s->sum[i].deadline ? s->sum[i].response : 0;
	}
	return s->elapsed ? (double)open / (double)s->elapsed : 0;
}

/* Of its launches, on average, from one's end to the next one's; copies alone hold no SMs. */
static nsec_t launch_time(const struct share_seen *sum) {
	return sum->launches ? sum->response / sum->launches : 0;
}

static nsec_t mean(const struct share_seen *sum) {
	return sum->jobs ? sum->response / sum->jobs : 0;
}

/* ---- places ---- */

static void take(struct share *s, const struct share_place *place, bool trying) {
	if (trying) {
		s->before = s->place;
	}
	s->place = *place;
	s->here = (struct share_count){0};
	s->trying = trying;
	s->counts = false;
	count_anew(s);
}

/* For some time nothing is tried. */
static void rest(struct share *s) {
	s->rest = s->backoff;
	s->backoff = s->backoff < BACKOFF_MAX ? s->backoff * 2 : BACKOFF_MAX;
	s->other_lower = 0;
}

/* What is tried now, or what has held for long, is too little: as it was before, or as it began. */
static bool give_back(struct share *s) {
	struct share_place place = {.lower = s->n_groups / 2};

	rest(s);
	if (s->trying) {
		s->yield_failed = s->place.yield ? s->here : (struct share_count){0};
		place = s->before;
	}
	take(s, &place, false);
	return true;
}

/* Programs of long kernels don't stay everywhere. */
static bool keep_long(struct share *s) {
	struct share_place place = s->place;
	bool any = false;

	for (unsigned i = 0; i < s->n; i++) {
		const struct share_seen *sum = &s->sum[i];

		if (place.free[i] && !place.yield && launch_time(sum) > LONG_LAUNCH) {
			place.free[i] = false;
			any = true;
		}
	}
	if (any) {
		rest(s);
		take(s, &place, false);
	}
	return any;
}

/* Programs without a deadline use all SMs whenever no job with a deadline is there. */
static bool let_yield(struct share *s) {
	struct share_place place = {.lower = s->n_groups / 2, .yield = true};

	if (!s->gates || is_harm(s, &s->yield_failed)) {
		return false;
	}
	s->other_lower = 0; /* responses will be others */
	for (unsigned i = 0; i < s->n; i++) {
		place.free[i] = !s->sum[i].deadline;
	}
	take(s, &place, true);
	return true;
}

/* By the rule jobs are late as well: what else there is may do no worse. */
static bool may_yield(const struct share *s) {
	return !s->crowded && (s->rule.missed > 0 || !exceeds(s, EXPECT_PART));
}

/* Nobody yields any more: something else is tried next. */
static bool end_yield(struct share *s) {
	struct share_place place = {.lower = s->n_groups / 2};

	if (!s->place.yield || !s->crowded) {
		return false;
	}
	take(s, &place, false);
	return true;
}

/* Programs of short kernels could use all SMs. */
static bool free_short(struct share *s) {
	struct share_place place = s->place;
	bool any = false;

	for (unsigned i = 0; i < s->n; i++) {
		const struct share_seen *sum = &s->sum[i];

		if (!sum->deadline && !place.free[i] && sum->jobs > 0 &&
		    launch_time(sum) <= SHORT_LAUNCH) {
			place.free[i] = true;
			any = true;
		}
	}
	if (any && !exceeds(s, FREE_PART)) {
		s->other_lower = 0; /* responses will be others */
		take(s, &place, true);
		return true;
	}
	return false;
}

/* Whether somebody is kept to the upper part, and has work. */
static bool any_kept(const struct share *s) {
	for (unsigned i = 0; i < s->n; i++) {
		if (!s->sum[i].deadline && s->sum[i].busy && !s->place.free[i]) {
			return true;
		}
	}
	return false;
}

/* The longest response of a program that is to be expected on @lower groups: its longest so far,
 * and what its mean is expected to grow by: as it did from the part before, else in proportion. */
static double expected(const struct share *s, unsigned i, unsigned lower) {
	double now = 1.0 / s->place.lower, then = 1.0 / lower;
	double here = (double)mean(&s->sum[i]), slope = here / now;

	if (s->other_lower && s->other_lower != s->place.lower) {
		slope = (here - (double)s->other_mean[i]) / (now - 1.0 / s->other_lower);
		slope = slope > 0 ? slope : 0;
	}
	return (double)s->sum[i].longest + slope * (then - now);
}

static bool is_enough(const struct share *s, unsigned lower) {
	for (unsigned i = 0; i < s->n; i++) {
		nsec_t deadline = s->sum[i].deadline;

		if (deadline && s->sum[i].busy &&
		    expected(s, i, lower) > EXPECT_PART * (double)deadline) {
			return false;
		}
	}
	return true;
}

/* Programs with a deadline on the lower part, and on a smaller one. */
static bool shrink(struct share *s) {
	struct share_place place = s->place;
	unsigned least = (s->place.lower + 1) / 2;

	if (exceeds(s, EXPECT_PART)) {
		return false;
	}
	while (place.confined && place.lower > least && is_enough(s, place.lower - 1)) {
		place.lower--;
	}
	if (place.confined && place.lower == s->place.lower) {
		return false;
	}
	s->other_lower = place.confined ? s->place.lower : 0;
	for (unsigned i = 0; i < s->n; i++) {
		s->other_mean[i] = mean(&s->sum[i]);
	}
	place.confined = true;
	take(s, &place, true);
	return true;
}

/* Nobody needs the others' part: those with a deadline use all SMs again. */
static bool relax(struct share *s) {
	struct share_place place = s->place;

	if (!place.confined) {
		return false;
	}
	place.lower = s->n_groups / 2;
	place.confined = false;
	s->other_lower = 0;
	take(s, &place, false);
	return true;
}

/* Return: whether another place holds. */
static bool try_more(struct share *s) {
	if (s->place.yield) {
		return false;
	}
	if (may_yield(s) && let_yield(s)) {
		return true;
	}
	return !any_missed(s) && (free_short(s) || (any_kept(s) && shrink(s)));
}

/* Whether the place gives those with a deadline too little. */
static bool is_too_little(const struct share *s) {
	return !is_rule(s) && (s->trying ? is_harm(s, &s->here) : is_worse(s, &s->here));
}

/* The first look after another place came to hold: the jobs may be of before. */
static bool first_look(struct share *s, const struct share_seen *seen) {
	struct share_count jobs = {0};

	s->counts = true;
	count(s, seen, &jobs);
	if (!s->trying || !is_worse(s, &jobs)) {
		return false;
	}
	s->here = jobs;
	return give_back(s);
}

bool share_look(struct share *s, const struct share_seen *seen, nsec_t elapsed) {
	if (s->n == 0) {
		return false;
	}
	see_idle(s, seen, elapsed);
	see_same(s, elapsed);
	if (!s->counts) {
		return first_look(s, seen);
	}
	add(s, seen, elapsed);
	count_on(s, seen, HERE_JOBS_MAX, &s->here);
	if (is_rule(s)) {
		count_on(s, seen, RULE_JOBS_MAX, &s->rule);
	}
	if (is_too_little(s)) {
		return give_back(s);
	}
	if (has_hole(s)) {
		count_anew(s);
		return false;
	}
	if (s->idle >= IDLE_MIN) {
		if (any_kept(s) && let_yield(s)) {
			return true;
		}
		count_anew(s);
		return false;
	}
	if (!is_window(s)) {
		return false;
	}
	s->trying = false;
	s->crowded = open_part(s) > (s->crowded ? UNCROWDED_PART : CROWDED_PART);
	if (end_yield(s) || keep_long(s) || (!any_kept(s) && relax(s))) {
		return true;
	}
	if (s->rest > 0) {
		s->rest--;
	} else if (try_more(s)) {
		return true;
	}
	count_anew(s);
	return false;
}

void share_apply(const struct share *s, const nsec_t *deadlines, unsigned group,
		 struct terms *terms) {
	bool any_free = false;

	for (unsigned i = 0; i < s->n; i++) {
		any_free |= s->place.free[i];
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct terms *t = &terms[i];

		t->first = t->n = t->group = 0;
		t->awaited = s->place.yield && deadlines[i];
		t->guarded = t->awaited && s->guards;
		t->yields = s->place.yield && !deadlines[i];
		t->level = deadlines[i] && any_free ? PROTO_TERMS_LEVEL_MAX : 0;
		if (deadlines[i] ? s->place.confined : !s->place.free[i]) {
			t->first = deadlines[i] ? 0 : s->place.lower;
			t->n = deadlines[i] ? s->place.lower : s->n_groups - s->place.lower;
			t->group = group;
		}
	}
}

nsec_t share_pause(nsec_t before, bool busy) {
	if (busy || before < PAUSE_MIN) {
		return PAUSE_MIN;
	}
	return before < PAUSE_MAX / 2 ? before * 2 : PAUSE_MAX;
}

const char *share_reason(const struct share *s, nsec_t deadline, unsigned i) {
	if (deadline) {
		return s->place.confined ? "as measured, its deadline is kept on so few SMs: "
					   "programs without "
					   "a deadline have the others"
					 : NULL;
	}
	if (s->place.yield) {
		return "as measured, deadlines are kept as well if its kernels wait while jobs "
		       "that have one are open";
	}
	return s->place.free[i] ? "as measured, its kernels are too short to make jobs with a "
				  "deadline late"
				: NULL;
}
