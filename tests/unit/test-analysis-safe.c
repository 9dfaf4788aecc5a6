/*
 * test-analysis-safe.c: the corrected bounds against schedules of random sets of tasks.
 *
 * The schedules are made here tick by tick from what safe.h assumes of the system alone, with none
 * of the analysis: nothing in them may take longer than the corrected bound. They do find responses
 * above the printed bounds, which shows that they are hard enough. A tick is a nanosecond of the
 * analysis.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/analysis/method.h"

#define SETS	    10000
#define TICKS	    1200
#define TASKS_MAX   7
#define CPUS	    3
#define SEGMENTS    4
#define BACKLOG_MAX 32

static uint64_t seed = 88172645463325252ull;

static unsigned below(unsigned n) {
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 11) % n);
}

enum phase {
	ON_CPU, /* a CPU segment */
	BEGIN,	/* the call */
	LAUNCH, /* first part of G^m */
	EXEC,	/* G^e */
	FINISH, /* last part of G^m */
	END,
	IDLE,
};

struct running {
	enum phase phase;
	size_t segment;
	nsec_t left;		      /* of the phase */
	nsec_t next;		      /* release */
	nsec_t releases[BACKLOG_MAX]; /* of jobs that are not done, oldest first */
	size_t n_releases;
	nsec_t longest; /* response */
};

struct world {
	const struct rta_set *set;
	struct running tasks[TASKS_MAX];
	bool exact;	/* all times are worst cases, all jobs come as soon as they may */
	int lock_owner; /* -1: nobody */
	nsec_t now;
};

static nsec_t actual(const struct world *w, nsec_t worst) {
	return w->exact || worst == 0 || below(2) ? worst : below((unsigned)worst + 1);
}

static void enter(struct world *w, size_t i, enum phase phase) {
	const struct rta_task *t = &w->set->tasks[i];
	struct running *r = &w->tasks[i];
	const struct rta_segment *s = &t->segments[r->segment];

	r->phase = phase;
	r->left = phase == ON_CPU   ? actual(w, s->cpu)
		  : phase == LAUNCH ? actual(w, s->misc / 2)
		  : phase == EXEC   ? actual(w, s->exec)
		  : phase == FINISH ? actual(w, s->misc - s->misc / 2)
				    : w->set->epsilon;
}

static void start_segment(struct world *w, size_t i) {
	enter(w, i, w->set->tasks[i].segments[w->tasks[i].segment].gpu ? BEGIN : ON_CPU);
}

static void complete(struct world *w, size_t i) {
	struct running *r = &w->tasks[i];
	nsec_t response = w->now - r->releases[0];

	r->longest = response > r->longest ? response : r->longest;
	memmove(r->releases, r->releases + 1, --r->n_releases * sizeof(r->releases[0]));
	r->phase = IDLE;
}

/* Goes on to the next phase that takes time, the next job included. */
static void advance(struct world *w, size_t i) {
	struct running *r = &w->tasks[i];

	for (;;) {
		if (r->phase == IDLE) {
			if (r->n_releases == 0) {
				return;
			}
			r->segment = 0;
			start_segment(w, i);
		}
		if (r->left > 0) {
			return;
		}
		if ((r->phase == BEGIN || r->phase == END) && w->lock_owner == (int)i) {
			w->lock_owner = -1;
		}
		if (r->phase != ON_CPU && r->phase != END) {
			enter(w, i, r->phase + 1);
		} else if (++r->segment < w->set->tasks[i].n_segments) {
			start_segment(w, i);
		} else {
			complete(w, i);
		}
	}
}

static void release(struct world *w) {
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		struct running *r = &w->tasks[i];

		if (r->next == w->now) {
			if (r->n_releases < BACKLOG_MAX) {
				r->releases[r->n_releases++] = w->now;
			}
			r->next += w->set->tasks[i].period;
			r->next += w->exact || below(3) ? 0 : below(30);
		}
		advance(w, i);
	}
}

static bool in_call(const struct running *r) {
	return r->phase == BEGIN || r->phase == END;
}

/* The task that has the CPU: one within its call, else the one of highest priority that wants it.
 */
static int on_cpu(const struct world *w, unsigned cpu) {
	int owner = w->lock_owner;

	if (owner >= 0 && w->set->tasks[owner].cpu == cpu) {
		return owner;
	}
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		const struct rta_task *t = &w->set->tasks[i];
		enum phase phase = w->tasks[i].phase;

		if (t->cpu == cpu && phase != IDLE && (phase != EXEC || t->busy)) {
			return (int)i;
		}
	}
	return -1;
}

/* The task of highest priority that has a CPU and asks for the lock there; -1: none does. */
static int highest_asking(const struct world *w, const int on[CPUS]) {
	int highest = -1;

	for (unsigned c = 0; c < CPUS; c++) {
		if (on[c] >= 0 && in_call(&w->tasks[on[c]]) && (highest < 0 || on[c] < highest)) {
			highest = on[c];
		}
	}
	return highest;
}

static void tick(struct world *w) {
	int on[CPUS], gpu = -1;

	for (unsigned c = 0; c < CPUS; c++) {
		on[c] = on_cpu(w, c);
	}
	if (w->lock_owner < 0) {
		w->lock_owner = highest_asking(w, on);
	}
	for (size_t i = 0; gpu < 0 && i < w->set->n_tasks; i++) {
		enum phase phase = w->tasks[i].phase;

		gpu = phase >= LAUNCH && phase <= END ? (int)i : -1;
	}
	if (gpu >= 0 && w->tasks[gpu].phase == EXEC) {
		w->tasks[gpu].left--;
	}
	for (unsigned c = 0; c < CPUS; c++) {
		struct running *r = on[c] >= 0 ? &w->tasks[on[c]] : NULL;

		if (r && r->phase != EXEC && (!in_call(r) || w->lock_owner == on[c])) {
			r->left--;
		}
	}
	w->now++;
}

static void simulate(struct world *w, bool together) {
	w->lock_owner = -1;
	for (size_t i = 0; i < w->set->n_tasks; i++) {
		w->tasks[i] = (struct running){.phase = IDLE, .next = together ? 0 : below(40)};
	}
	for (w->now = 0; w->now < TICKS;) {
		release(w);
		tick(w);
	}
}

struct drawn {
	struct rta_segment segments[TASKS_MAX][SEGMENTS];
	struct rta_task tasks[TASKS_MAX];
	struct rta_set set;
};

static void draw_segments(struct rta_segment *segments, struct rta_task *t, unsigned size) {
	const size_t n = 1 + below(SEGMENTS);
	bool gpu = below(2), ever = below(3) > 0;

	for (size_t j = 0; j < n; j++, gpu = ever && !gpu) {
		if (gpu) {
			nsec_t misc = below(size), exec = 1 + below(size);

			segments[j] = (struct rta_segment){
				.gpu = true, .misc = misc, .exec = exec, .total = misc + exec};
		} else {
			segments[j] = (struct rta_segment){.cpu = 1 + below(size)};
		}
	}
	t->segments = segments;
	t->n_segments = n;
}

/* @mode: 0: all suspend, 1: all are busy, 2: mixed. The last task may be of best effort. */
static void draw(struct drawn *d, unsigned mode) {
	const size_t n = 2 + below(TASKS_MAX - 1);
	const unsigned n_cpus = 1 + below(CPUS);
	const bool best_effort = below(2);

	for (size_t i = 0; i < n; i++) {
		struct rta_task *t = &d->tasks[i];

		*t = (struct rta_task){.cpu = below(n_cpus), .priority = (int)(n - i)};
		t->period = t->deadline = 30 + below(30) + 30 * i;
		t->busy = mode == 2 ? below(2) : mode;
		draw_segments(d->segments[i], t, 2 + below(5));
	}
	d->tasks[n - 1].priority = best_effort ? 0 : 1;
	d->set = (struct rta_set){.tasks = d->tasks, .n_tasks = n, .epsilon = below(3)};
	rta_sum(&d->set);
}

static void fail_with(const struct drawn *d, size_t i, nsec_t bound, nsec_t response) {
	for (size_t k = 0; k < d->set.n_tasks; k++) {
		const struct rta_task *t = &d->tasks[k];

		printf("task %zu: cpu %u priority %d period %u %s:", k, t->cpu, t->priority,
		       (unsigned)t->period, t->busy ? "busy" : "suspend");
		for (size_t j = 0; j < t->n_segments; j++) {
			printf(" %u %u+%u", (unsigned)t->segments[j].cpu,
			       (unsigned)t->segments[j].misc, (unsigned)t->segments[j].exec);
		}
		printf("\n");
	}
	fail_msg("epsilon %u: task %zu took %u, its bound is %u", (unsigned)d->set.epsilon, i,
		 (unsigned)response, (unsigned)bound);
}

static void nothing_takes_longer_than_its_safe_bound(void **state) {
	static const struct rta_readings readings;
	unsigned n_bounds = 0, n_met = 0, n_above_printed = 0;

	for (unsigned s = 0; s < SETS; s++) {
		struct rta_bound safe[TASKS_MAX], printed[TASKS_MAX];
		const unsigned mode = s % 3;
		struct world w = {0};
		struct drawn d;

		draw(&d, mode);
		rta_safe_all(&d.set, RTA_MODE_OWN, safe);
		rta_method_run(rta_method_find(mode == 1 ? "ioctl-busy" : "ioctl-suspend"), &d.set,
			       &readings, printed);
		w.set = &d.set;
		for (unsigned run = 0; run < 3; run++) {
			w.exact = run < 2;
			simulate(&w, run == 0);
			for (size_t i = 0; i < d.set.n_real_time; i++) {
				const nsec_t longest = w.tasks[i].longest;

				if (longest > safe[i].response) {
					fail_with(&d, i, safe[i].response, longest);
				}
				n_bounds += run == 0 && safe[i].response != RTA_FOREVER;
				n_met += longest > 0 && longest == safe[i].response;
				n_above_printed += mode != 2 && longest > printed[i].response;
			}
		}
	}
	print_message("%u bounds, %u times reached; printed bounds exceeded %u times\n", n_bounds,
		      n_met, n_above_printed);
	assert_true(n_bounds > SETS);
	assert_true(n_met > 0);
	assert_true(n_above_printed > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_takes_longer_than_its_safe_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
