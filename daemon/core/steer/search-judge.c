/*
 * search-judge.c: what is predicted of a way to share the GPU; see search.h.
 */
#include "daemon/core/steer/search.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* What is looked at: some dozens of jobs of the task with the longest period, within these. */
#define JOBS_LOOKED_AT 24
#define TIME_MIN       (250 * NSEC_PER_MSEC)
#define TIME_MAX       (1 * NSEC_PER_SEC)

/* Tasks with tiny jobs are looked at for less than that: for about so many events, and at most
 * twice as many. The sets of tasks that were measured have some ten thousand. */
#define RUN_EVENTS 100000

/* How much later a copy begins that is held, and the time between two pieces, as measured on hosts
 * of an H200 and an H100. */
#define HOLD  (10 * NSEC_PER_USEC)
#define PAUSE (8 * NSEC_PER_USEC)

/* From the end of a job's last operation until its program goes on, measured likewise. */
#define BACK (20 * NSEC_PER_USEC)

/* How much later a kernel begins behind a gate, as measured on an H100. */
#define GATE (23 * NSEC_PER_USEC / 10)

/* Launches of a job that are shorter than this, on all SMs, are looked at together. */
#define LAUNCH_MIN (20 * NSEC_PER_USEC)

/* An unknown task's jobs: one kernel, in waves of blocks. */
#define UNKNOWN_BLOCK (1 * NSEC_PER_MSEC)
#define UNKNOWN_WAVES 10

/* How near the deadlines are counts less than any miss; so does what tasks that always have work
 * lose, all of them together. */
#define RESPONSE_WEIGHT 0.3
#define RATE_WEIGHT	0.6

bool search_given_up(const struct search *s) {
	return s->stop && atomic_load_explicit(s->stop, memory_order_relaxed);
}

bool search_stopped(const struct search *s) {
	return s->events * s->n >= s->events_max || search_given_up(s);
}

/* Short launches are taken together, with the gaps between them: deadlines are many times as long,
 * and more candidates are looked at in the same time. */
static void join_launches(struct model_task *t, nsec_t kernels) {
	nsec_t gaps = t->gap * (t->launches - 1), most = kernels / LAUNCH_MIN;

	if (most < t->launches) {
		t->launches = most > 1 ? (unsigned)most : 1;
		t->gap = most > 1 ? gaps / (most - 1) : 0;
	}
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
	if (s->n_drawings == SEARCH_DRAWINGS) {
		join_launches(&s->tasks[i], s->tasks[i].kernels[s->gpu->sms]);
	}
}

static void slow_down(struct search *s, unsigned i, double part) {
	const double factor = 1 + part;

	s->slowed[i] = s->tasks[i];
	s->slowed[i].block = (nsec_t)((double)s->tasks[i].block * factor);
	s->slowed[i].kernels = s->slow_kernels[i];
	for (unsigned m = 1; m <= s->gpu->sms; m++) {
		s->slow_kernels[i][m] = (nsec_t)((double)s->tasks[i].kernels[m] * factor);
	}
}

void search_slow(struct search *s, double part) {
	for (unsigned i = 0; i < s->n; i++) {
		slow_down(s, i, part);
	}
}

void search_init(struct search *s, const struct plan_gpu *gpu, const struct plan_task *tasks,
		 unsigned n) {
	assert(n > 0 && n <= MODEL_TASKS_MAX && gpu->group > 0);
	*s = (struct search){.gpu = gpu,
			     .given = tasks,
			     .n = n,
			     .n_drawings = SEARCH_DRAWINGS,
			     .events_max = UINT64_MAX,
			     .n_groups = terms_groups(gpu->sms, gpu->group),
			     .gateless = {.badness = INFINITY}};
	for (unsigned m = 1; m <= gpu->sms; m++) {
		s->unknown[m] = UNKNOWN_BLOCK * UNKNOWN_WAVES * gpu->sms / m;
	}
	for (unsigned i = 0; i < n; i++) {
		take_task(s, i, &tasks[i]);
		s->longest = s->tasks[i].period > s->longest ? s->tasks[i].period : s->longest;
	}
	search_slow(s, SEARCH_SLOW);
	s->time = s->longest * JOBS_LOOKED_AT;
	s->time = s->time < TIME_MIN ? TIME_MIN : s->time > TIME_MAX ? TIME_MAX : s->time;
}

void search_look(struct search *s, unsigned n_drawings) {
	s->n_drawings = n_drawings;
	for (unsigned i = 0; i < s->n; i++) {
		take_task(s, i, &s->given[i]);
	}
	search_slow(s, SEARCH_SLOW);
}

struct model_gpu search_gpu(const struct plan_gpu *gpu, unsigned lower) {
	unsigned sms = lower * gpu->group;

	return (struct model_gpu){
		.sms = {sms, gpu->sms - sms},
		.piece = SEARCH_PIECE,
		.pause = PAUSE,
		.hold = HOLD,
		.gate = GATE,
		.behind = PROTO_BEHIND_NS,
		.guard = PROTO_GUARD_NS,
		.overlap = PROTO_OVERLAP_NS,
		.wake = PLAN_WAKE_MIN,
		.back = BACK,
	};
}

/* Adds one drawing of the first releases to @sum, but ends it when @most jobs are late: which
 * releases meet is luck. In every second one kernels take longer, see search_slow(). */
static void draw(struct search *s, const struct candidate *c, unsigned seed, unsigned most,
		 struct model_result *sum) {
	static const struct model_wake wake = {PLAN_WAKE_MIN, PLAN_WAKE_MAX};
	struct model_gpu gpu = search_gpu(s->gpu, c->lower);
	bool first = s->events == 0;
	unsigned events = first ? RUN_EVENTS : 2 * RUN_EVENTS;
	struct model_limit limit = {.events = events, .missed = most};
	struct model_result one[MODEL_TASKS_MAX];
	nsec_t time;

	time = model_run(&gpu, &wake, seed % 2 ? s->slowed : s->tasks, c->places, s->n, s->time,
			 seed, &limit, one);
	s->events += events - limit.events;
	if (first) {
		s->time = time; /* for all, so that they can be compared */
	}
	for (unsigned i = 0; i < s->n; i++) {
		model_result_add(&sum[i], &one[i]);
	}
}

void search_predict(struct search *s, const struct candidate *c, struct model_result *ret) {
	memset(ret, 0, s->n * sizeof(*ret));
	for (unsigned k = 0; k < SEARCH_DRAWINGS; k++) {
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

/* Of tasks that are late more often than under MPS alone. */
static double worse(const struct search *s, const struct model_result *results) {
	double part[MODEL_TASKS_MAX], released = 0;

	for (unsigned i = 0; i < s->n; i++) {
		part[i] = model_result_late(&results[i]);
		released += results[i].released;
	}
	return model_worse(part, s->alone, s->n, released);
}

/* Of the rate that tasks which always have work have alone on the GPU: what is missing, on average
 * over them. */
static double lost_rate(const struct search *s, const struct model_result *results) {
	double lost = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct model_task *t = &s->tasks[i];
		double takes = (double)(t->copy_in + t->kernels[s->gpu->sms] + t->copy_out);

		if (!t->period && !t->deadline) {
			lost += fmax(
				1 - results[i].done * takes / (double)(s->n_drawings * s->time), 0);
			n++;
		}
	}
	return n ? lost / n : 0;
}

double search_badness(struct search *s, const struct candidate *c, double best) {
	unsigned most = best < UINT_MAX ? (unsigned)ceil(best) : UINT_MAX, missed = 0;
	struct model_result results[MODEL_TASKS_MAX] = {0};
	double sum;

	s->n_tried++;
	for (unsigned k = 0; k < s->n_drawings; k++) {
		draw(s, c, k, most - missed, results);
		missed = misses(s, results);
		if (missed >= most) {
			return best;
		}
	}
	sum = missed + worse(s, results) + RATE_WEIGHT * lost_rate(s, results);
	for (unsigned i = 0; i < s->n; i++) {
		const struct model_result *r = &results[i];
		nsec_t whole = s->tasks[i].deadline ? s->tasks[i].deadline : s->time;
		double mean = r->done ? (double)r->response / r->done : (double)whole;

		sum += RESPONSE_WEIGHT * mean / (double)whole;
	}
	return sum;
}

struct candidate search_free_for_all(const struct search *s, const struct candidate *c) {
	struct candidate other = *c;

	for (unsigned i = 0; i < s->n; i++) {
		other.places[i].regions[0] = other.places[i].regions[1] = true;
		other.places[i].copies = TERMS_COPIES_WHOLE;
		other.places[i].level = 0;
		other.places[i].awaited = other.places[i].guarded = other.places[i].yields = false;
		other.places[i].back_by_kernel = false;
	}
	return other;
}

void search_alone(struct search *s, const struct candidate *c, double *ret) {
	const struct candidate everywhere = search_free_for_all(s, c);
	struct model_result results[MODEL_TASKS_MAX];

	search_predict(s, &everywhere, results);
	for (unsigned i = 0; i < s->n; i++) {
		ret[i] = model_result_late(&results[i]);
	}
}

bool search_hopeless(const struct search *s, unsigned task) {
	static const struct model_wake wake = {PLAN_WAKE_MIN, PLAN_WAKE_MAX};
	const struct model_place everywhere = {.regions = {true, true}};
	const struct model_task *t = &s->tasks[task];
	struct model_gpu gpu = search_gpu(s->gpu, s->n_groups / 2);
	struct model_limit limit = {.events = RUN_EVENTS, .missed = UINT_MAX};
	struct model_result alone;

	if (!t->deadline || !t->period) {
		return false;
	}
	model_run(&gpu, &wake, t, &everywhere, 1, JOBS_LOOKED_AT * t->period, 0, &limit, &alone);
	return alone.missed * 2 > alone.released;
}
