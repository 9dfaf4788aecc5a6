/*
 * test-share.c: what programs without a deadline get beside those with one, in a small world whose
 * responses follow from the place that holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/steer/share.h"

#define GROUPS 15
#define MS     NSEC_PER_MSEC
#define LOOK   (50 * MS)

/* Programs of the world: the one with a deadline, one of short kernels, one of long ones. */
enum who { URGENT, SHORT, LONG, _WHO_N };

/* What the urgent one's response consists of. */
struct world {
	struct share share;
	nsec_t period, deadline;
	nsec_t host;	    /* whatever its SMs */
	nsec_t work;	    /* on one group */
	nsec_t short_delay; /* by short kernels everywhere */
	nsec_t launch;	    /* of the short program, as it seems */
	nsec_t rest_delay;  /* by what others have begun when they come to yield */
	unsigned late_each; /* in one of so many looks a job is late whatever holds; 0: in none */
	bool busy[_WHO_N];
	unsigned n_looks, n_changes;
	unsigned n_yields; /* looks at which others yielded */
};

static struct world begin(nsec_t period, nsec_t deadline, bool gates) {
	struct world w = {
		.period = period,
		.deadline = deadline,
		.work = 12 * MS,
		.launch = MS / 10,
		.short_delay = MS,
	};

	const struct plan_gpu gpu = {.sms = GROUPS, .group = 1, .gates = gates, .guards = gates};

	w.busy[URGENT] = w.busy[SHORT] = w.busy[LONG] = true;
	share_start(&w.share, _WHO_N, &gpu);
	return w;
}

/* Nobody can yield. */
static struct world world(nsec_t period, nsec_t deadline) {
	return begin(period, deadline, false);
}

static nsec_t response(const struct world *w) {
	const struct share_place *p = &w->share.place;
	nsec_t r = w->host + w->work / (p->confined ? p->lower : GROUPS);

	if (p->yield) {
		return r + w->rest_delay;
	}
	if (w->busy[SHORT] && p->free[SHORT]) {
		r += w->short_delay;
	}
	if (w->busy[LONG] && p->free[LONG]) {
		r += 100 * MS;
	}
	return r;
}

static bool look(struct world *w) {
	nsec_t r = response(w);
	struct share_seen seen[_WHO_N] = {
		[URGENT] = {.deadline = w->deadline, .busy = w->busy[URGENT]},
		[SHORT] = {.busy = w->busy[SHORT]},
		[LONG] = {.busy = w->busy[LONG]},
	};
	bool changed;

	if (w->busy[URGENT]) {
		seen[URGENT].jobs = LOOK / w->period;
		seen[URGENT].missed = r > w->deadline ? seen[URGENT].jobs : 0;
		seen[URGENT].response = r * seen[URGENT].jobs;
		seen[URGENT].longest = r;
		if (w->late_each && w->n_looks % w->late_each == 0) {
			seen[URGENT].missed += seen[URGENT].missed == 0;
			seen[URGENT].longest = r > w->deadline ? r : 2 * w->deadline;
		}
	}
	if (w->busy[SHORT]) {
		seen[SHORT].jobs = 1;
		seen[SHORT].launches = 100;
		seen[SHORT].response = 100 * w->launch;
	}
	if (w->busy[LONG]) {
		seen[LONG].jobs = 1;
		seen[LONG].launches = 8;
		seen[LONG].response = 13 * MS;
	}
	changed = share_look(&w->share, seen, LOOK);
	w->n_looks++;
	w->n_changes += changed;
	w->n_yields += w->share.place.yield;
	return changed;
}

static void run(struct world *w, unsigned looks) {
	while (looks-- > 0) {
		look(w);
	}
}

static void short_kernels_run_everywhere(void **state) {
	struct terms terms[_WHO_N] = {{.steered = true}, {.steered = true}, {.steered = true}};
	const nsec_t deadlines[_WHO_N] = {6 * MS};
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.busy[LONG] = false;
	run(&w, 40);
	assert_true(w.share.place.free[SHORT]);
	assert_false(w.share.place.free[LONG]);
	assert_false(w.share.place.confined);
	share_apply(&w.share, deadlines, 8, terms);
	assert_int_equal(terms[URGENT].n, 0);
	assert_int_equal(terms[URGENT].level, PROTO_TERMS_LEVEL_MAX);
	assert_int_equal(terms[SHORT].n, 0);
	assert_int_equal(terms[SHORT].level, 0);
	assert_int_equal(terms[LONG].first, 7);
	assert_int_equal(terms[LONG].n, 8);
	assert_int_equal(terms[LONG].group, 8);
}

static void long_kernels_get_what_the_deadline_leaves(void **state) {
	struct terms terms[_WHO_N] = {{.steered = true}, {.steered = true}, {.steered = true}};
	const nsec_t deadlines[_WHO_N] = {6 * MS};
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.busy[SHORT] = false;
	run(&w, 200);
	/* 12 ms / 3 = 4 of 6 ms; on 2 groups it would be 6. */
	assert_true(w.share.place.confined);
	assert_int_equal(w.share.place.lower, 3);
	assert_false(w.share.place.free[LONG]);
	share_apply(&w.share, deadlines, 8, terms);
	assert_int_equal(terms[URGENT].first, 0);
	assert_int_equal(terms[URGENT].n, 3);
	assert_int_equal(terms[LONG].first, 3);
	assert_int_equal(terms[LONG].n, 12);
	assert_non_null(share_reason(&w.share, deadlines[URGENT], URGENT));
	/* And it stays so. */
	w.n_changes = 0;
	run(&w, 2000);
	assert_int_equal(w.n_changes, 0);
}

/* Time that more SMs don't shorten keeps nobody from giving them away. */
static void a_slow_host_needs_no_sms(void **state) {
	struct world w = world(10 * MS, 10 * MS);

	(void)state;
	w.busy[SHORT] = false;
	w.host = 5 * MS;
	w.work = 2 * MS;
	run(&w, 200);
	assert_int_equal(w.share.place.lower, 1);
}

static void nothing_is_tried_while_jobs_are_late(void **state) {
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.host = 6 * MS;
	run(&w, 200);
	assert_int_equal(w.n_changes, 0);
}

/* A trial that makes jobs late ends at once, and comes again ever less often. */
static void what_makes_jobs_late_is_taken_back(void **state) {
	struct world w = world(10 * MS, 6 * MS);
	unsigned late = 0;

	(void)state;
	w.busy[LONG] = false;
	w.short_delay = 7 * MS;
	for (unsigned i = 0; i < 20000; i++) {
		late += response(&w) > w.deadline;
		look(&w);
	}
	assert_false(w.share.place.free[SHORT]);
	/* 16 + 32 + ... + 4096 windows of 4 looks; in each trial two looks' jobs may be late. */
	assert_in_range(late, 1, 2 * 11);
}

/* The load grows after all is settled. */
static void late_jobs_bring_the_rule_back(void **state) {
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.busy[SHORT] = false;
	run(&w, 200);
	assert_int_equal(w.share.place.lower, 3);
	w.work = 30 * MS;
	run(&w, 2);
	assert_false(w.share.place.confined);
	assert_int_equal(w.share.place.lower, GROUPS / 2);
}

static void nobody_is_confined_beside_idle_programs(void **state) {
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	run(&w, 200);
	assert_true(w.share.place.confined);
	assert_true(w.share.place.free[SHORT]);
	w.busy[LONG] = false;
	run(&w, 20);
	assert_false(w.share.place.confined);
	assert_true(w.share.place.free[SHORT]);
	w.busy[LONG] = true;
	run(&w, 200);
	assert_true(w.share.place.confined);
}

static void a_program_whose_kernels_grow_long_leaves(void **state) {
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.busy[LONG] = false;
	run(&w, 40);
	assert_true(w.share.place.free[SHORT]);
	w.launch = MS;
	run(&w, 10);
	assert_false(w.share.place.free[SHORT]);
}

/* Whoever has nothing to do says nothing about what would be enough for it. */
static void without_jobs_nothing_changes(void **state) {
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.busy[URGENT] = false;
	run(&w, 200);
	assert_int_equal(w.n_changes, 0);
}

/* Whatever their kernels, others lose the least where they yield. */
static void others_yield_where_deadlines_allow_it(void **state) {
	struct terms terms[_WHO_N] = {{.steered = true}, {.steered = true}, {.steered = true}};
	const nsec_t deadlines[_WHO_N] = {6 * MS};
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.rest_delay = MS;
	w.launch = MS;
	run(&w, 200);
	assert_int_equal(w.n_changes, 1);
	share_apply(&w.share, deadlines, 8, terms);
	for (unsigned i = 0; i < _WHO_N; i++) {
		assert_int_equal(terms[i].n, 0);
		assert_int_equal(terms[i].level, i == URGENT ? PROTO_TERMS_LEVEL_MAX : 0);
		assert_int_equal(terms[i].awaited, i == URGENT);
		assert_int_equal(terms[i].guarded, i == URGENT);
		assert_int_equal(terms[i].yields, i != URGENT);
	}
	w.share.guards = false;
	share_apply(&w.share, deadlines, 8, terms);
	assert_true(terms[URGENT].awaited && !terms[URGENT].guarded);
	assert_non_null(share_reason(&w.share, 0, LONG));
}

/* What they have begun when a job comes is too long for it: then its SMs are kept free. */
static void where_yielding_is_too_slow_sets_are_tried(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);
	unsigned yields = 0;

	(void)state;
	w.busy[SHORT] = false;
	w.rest_delay = 5 * MS;
	for (unsigned i = 0; i < 200; i++) {
		look(&w);
		yields += w.share.place.yield;
	}
	assert_in_range(yields, 1, 2);
	assert_false(w.share.place.yield);
	assert_true(w.share.place.confined);
	assert_int_equal(w.share.place.lower, 3);
}

/* They don't starve beside jobs that are open most of the time. */
static void nobody_yields_to_jobs_that_are_always_there(void **state) {
	struct world w = begin(10 * MS, 10 * MS, true);

	(void)state;
	w.busy[SHORT] = false;
	w.host = 3 * MS;
	run(&w, 40);
	assert_true(w.share.place.yield);
	w.host = 5 * MS;
	run(&w, 40);
	assert_false(w.share.place.yield);
	assert_true(w.share.place.confined);
	w.n_changes = 0;
	run(&w, 2000);
	assert_int_equal(w.n_changes, 0);
}

static void late_jobs_end_the_yielding(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	run(&w, 200);
	assert_true(w.share.place.yield);
	w.host = 6 * MS;
	run(&w, 2);
	assert_false(w.share.place.yield);
	assert_false(w.share.place.free[LONG]);
}

static void late_jobs_end_a_trial_at_once(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.rest_delay = 6 * MS;
	for (unsigned i = 0; i < 200 && !w.share.place.yield; i++) {
		run(&w, 1);
	}
	assert_true(w.share.place.yield);
	run(&w, 1);
	assert_false(w.share.place.yield);
}

/* One job in 20 is late whatever others do, so they need not be kept away. */
static void jobs_late_by_the_rule_are_nobodys_fault(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.late_each = 4;
	run(&w, 200);
	assert_true(w.share.place.yield);
	w.n_changes = 0;
	run(&w, 20000);
	assert_in_range(w.n_changes, 0, 40); /* chance */
	assert_in_range(w.n_yields, 18000, 20200);
}

/* Many more of them are, and the host is as it was. */
static void more_late_jobs_than_by_the_rule_are(void **state) {
	struct world w = begin(20 * MS, 6 * MS, true);

	(void)state;
	w.late_each = 4;
	w.rest_delay = MS;
	run(&w, 20000);
	assert_true(w.share.place.yield && w.share.rule.missed > 0);
	w.rest_delay = 6 * MS;
	run(&w, 40);
	assert_false(w.share.place.yield);
}

/* A late job once a minute is no reason to take ever more from the others. */
static void seldom_late_jobs_cost_the_others_little(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.late_each = 1000;
	run(&w, 40000);
	assert_in_range(w.n_yields, 34000, 40000);
}

/* Where jobs with a deadline are always there others have half of the GPU, and all while none
 * comes. */
static void others_have_all_beside_idle_programs(void **state) {
	struct world w = begin(10 * MS, 10 * MS, true);

	(void)state;
	w.host = 6 * MS;
	run(&w, 200);
	assert_false(w.share.place.yield);
	w.busy[URGENT] = false;
	run(&w, 19);
	assert_false(w.share.place.yield);
	run(&w, 2);
	assert_true(w.share.place.yield);
	assert_true(w.share.place.free[SHORT] && w.share.place.free[LONG]);
	w.n_changes = 0;
	run(&w, 1000);
	assert_int_equal(w.n_changes, 0);
	w.busy[URGENT] = true;
	run(&w, 10);
	assert_false(w.share.place.yield);
}

/* But not where the first job that comes would be late. */
static void nobody_yields_to_idle_programs_if_that_is_too_slow(void **state) {
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.rest_delay = 6 * MS;
	run(&w, 40);
	assert_true(w.n_yields > 0);
	assert_false(w.share.place.yield);
	w.busy[URGENT] = false;
	w.n_changes = 0;
	run(&w, 200);
	assert_int_equal(w.n_changes, 0);
}

/* Without waiting for others jobs are open for less than half of the time, and for more with it. */
static void nobody_yields_now_and_then(void **state) {
	struct world w = begin(10 * MS, 10 * MS, true);

	(void)state;
	w.busy[SHORT] = false;
	w.host = 4 * MS;
	w.rest_delay = MS;
	run(&w, 400);
	w.n_yields = 0;
	run(&w, 2000);
	assert_int_equal(w.n_yields, 0);
}

/* A time of many jobs is over. */
static void others_yield_again_after_a_crowd(void **state) {
	struct world w = begin(10 * MS, 10 * MS, true);

	(void)state;
	w.late_each = 4;
	w.host = 6 * MS;
	run(&w, 400);
	assert_false(w.share.place.yield);
	w.host = MS;
	run(&w, 400);
	assert_true(w.share.place.yield);
}

/* Who comes while others yield yields too, and what was found out stays. */
static void who_comes_yields_as_others_do(void **state) {
	static const int without_short[] = {URGENT, LONG}, with_another[] = {-1, 0, 1};
	struct terms terms[_WHO_N] = {{.steered = true}, {.steered = true}, {.steered = true}};
	const nsec_t deadlines[_WHO_N] = {0, 6 * MS};
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	run(&w, 40);
	assert_true(w.share.place.yield);
	share_move(&w.share, without_short, 2);
	assert_true(w.share.place.free[1]);
	assert_false(w.share.place.free[2]);
	share_move(&w.share, with_another, 3);
	share_apply(&w.share, deadlines, 8, terms);
	for (unsigned i = 0; i < _WHO_N; i++) {
		assert_int_equal(terms[i].n, 0);
		assert_int_equal(terms[i].awaited, deadlines[i] > 0);
		assert_int_equal(terms[i].yields, deadlines[i] == 0);
	}
}

/* Beside a part that deadlines need, who comes has what others have; nobody knows of its kernels
 * whether they are short. */
static void who_comes_gets_what_deadlines_leave(void **state) {
	static const int with_first[] = {-1, URGENT, SHORT, LONG};
	struct terms terms[_WHO_N + 1] = {{.steered = true}};
	const nsec_t deadlines[_WHO_N + 1] = {0, 6 * MS};
	struct world w = world(10 * MS, 6 * MS);

	(void)state;
	w.short_delay = MS / 10;
	run(&w, 200);
	assert_true(w.share.place.confined && w.share.place.free[SHORT]);
	assert_int_equal(w.share.place.lower, 3);
	share_move(&w.share, with_first, _WHO_N + 1);
	share_apply(&w.share, deadlines, 8, terms);
	assert_int_equal(terms[0].first, 3);
	assert_int_equal(terms[0].n, 12);
	assert_int_equal(terms[1 + URGENT].n, 3);
	assert_int_equal(terms[1 + SHORT].n, 0);
	assert_int_equal(terms[1 + LONG].first, 3);
}

/* However often others come and go, jobs are counted: a window is longer than that takes. */
static void coming_and_going_stops_nothing(void **state) {
	static const int without_long[] = {URGENT, SHORT}, with_long[] = {0, 1, -1};
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		look(&w);
		share_move(&w.share, without_long, 2);
		share_move(&w.share, with_long, 3);
	}
	assert_true(w.share.place.yield);
	/* Nor does a late job go unseen. */
	w.host = 6 * MS;
	run(&w, 1);
	assert_false(w.share.place.yield);
}

/* A program that is gone may have been why something failed. */
static void failures_beside_others_are_forgotten(void **state) {
	static const int same[] = {URGENT, SHORT, LONG};
	struct world w = begin(10 * MS, 6 * MS, true);

	(void)state;
	w.rest_delay = 6 * MS;
	run(&w, 2000);
	w.rest_delay = 0;
	w.n_yields = 0;
	run(&w, 2000);
	assert_int_equal(w.n_yields, 0);
	share_move(&w.share, same, _WHO_N);
	run(&w, 199);
	assert_int_equal(w.n_yields, 0);
	run(&w, 40);
	assert_true(w.share.place.yield);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_kernels_run_everywhere),
		cmocka_unit_test(long_kernels_get_what_the_deadline_leaves),
		cmocka_unit_test(a_slow_host_needs_no_sms),
		cmocka_unit_test(nothing_is_tried_while_jobs_are_late),
		cmocka_unit_test(what_makes_jobs_late_is_taken_back),
		cmocka_unit_test(late_jobs_bring_the_rule_back),
		cmocka_unit_test(nobody_is_confined_beside_idle_programs),
		cmocka_unit_test(a_program_whose_kernels_grow_long_leaves),
		cmocka_unit_test(without_jobs_nothing_changes),
		cmocka_unit_test(others_yield_where_deadlines_allow_it),
		cmocka_unit_test(where_yielding_is_too_slow_sets_are_tried),
		cmocka_unit_test(nobody_yields_to_jobs_that_are_always_there),
		cmocka_unit_test(late_jobs_end_the_yielding),
		cmocka_unit_test(late_jobs_end_a_trial_at_once),
		cmocka_unit_test(jobs_late_by_the_rule_are_nobodys_fault),
		cmocka_unit_test(more_late_jobs_than_by_the_rule_are),
		cmocka_unit_test(seldom_late_jobs_cost_the_others_little),
		cmocka_unit_test(others_have_all_beside_idle_programs),
		cmocka_unit_test(nobody_yields_to_idle_programs_if_that_is_too_slow),
		cmocka_unit_test(nobody_yields_now_and_then),
		cmocka_unit_test(others_yield_again_after_a_crowd),
		cmocka_unit_test(who_comes_yields_as_others_do),
		cmocka_unit_test(who_comes_gets_what_deadlines_leave),
		cmocka_unit_test(coming_and_going_stops_nothing),
		cmocka_unit_test(failures_beside_others_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
