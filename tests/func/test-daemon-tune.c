/*
 * test-daemon-tune.c: plans of policy `steer` whose jobs do as predicted, or something else.
 */
#include "planned.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Whatever is tried has many late jobs of @p all the time, until the best, @best, is back and
 * stays: a plan that was asked for before may still come, and is tried then. */
static struct told fail_all_tries(struct program *p, const struct terms *best) {
	struct told t = {.session = p->s.session, .verdict = "back"};
	unsigned back = 0;

	for (unsigned i = 0; i < 10000 && back < 100; i++) {
		Sbeet__Control__Status *status = status_get();
		bool is_best = reads(status, &t);
		struct terms now = steered_terms(&p->s, 0);

		back = is_best && terms_equal(&now, best) ? back + 1 : 0;
		status_free(status);
		if (!back) {
			report(p, 40, 1000 * MS);
		}
		usleep(5000); /* what is tried now is counted */
	}
	assert_true(back > 0);
	return t;
}

/* Which of @plan's other ways holds for both. */
static const struct plan_way *way_that_holds(const struct program *a, const struct program *b,
					     const struct plan *plan) {
	struct terms terms_a = steered_terms(&a->s, 0), terms_b = steered_terms(&b->s, 0);

	for (unsigned i = 0; i < plan->n_others; i++) {
		const struct plan_way *way = &plan->others[i];

		if (terms_equal(&terms_a, &way->terms[0]) &&
		    terms_equal(&terms_b, &way->terms[1])) {
			return way;
		}
	}
	fail_msg("none of the plan's ways");
	return NULL;
}

/* Its jobs take longer than its profile says. */
static void a_plan_that_does_worse_than_predicted_is_changed(void **state) {
	const struct plan_way *way;
	struct program a, b;
	struct terms rule[3];
	struct plan plan;
	struct told t;

	open_planned_after(64, &a, &b, &plan, rule);
	/* Fewer jobs say nothing, however long it takes. */
	t = wait_for(&b, 1, "wait");
	assert_true(t.plan.slow == 1);
	assert_terms(&b, &plan.terms[1]);
	report(&b, 15, MS);
	usleep(A_WHILE); /* jobs of several windows count together */
	assert_due(&a, 5 * MS, 2 * MS, plan.tail[0]);
	assert_due(&b, 60 * MS, 60 * MS, plan.tail[1]);
	report(&b, 1, 10000 * MS);
	t = wait_for(&b, 2, "try");
	assert_int_equal(t.plan.plans, 2);
	assert_true(t.plan.slow == 1.3); /* at most, after one window */
	assert_true(look(&a).plan.slow == 1);
	way = way_that_holds(&a, &b, &plan);
	assert_int_equal(t.plan.predicted_misses, way->predicted[1].missed);
	assert_non_null(strstr(t.reason, "tried because"));
	assert_int_not_equal(way->tail[1], plan.tail[1]);
	assert_due(&a, 5 * MS, 2 * MS, way->tail[0]);
	assert_due(&b, 60 * MS, 60 * MS, way->tail[1]);
	/* Whatever is tried does worse, the plan for the slower jobs as well. */
	t = fail_all_tries(&b, &plan.terms[1]);
	assert_true(t.plan.plans > 2);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	assert_int_equal(t.plan.predicted_misses, plan.predicted[1].missed);
	assert_non_null(strstr(t.reason, "of all that ran"));
	assert_int_equal(explained("long", "assumed to take 1.30 times as long"), 1);
	assert_int_equal(explained("short", "times as long"), 0);
	/* Another task is not as slow. */
	set_deadline("long", 55 * MS);
	report_shape(&b);
	t = wait_for(&b, 1, NULL);
	assert_true(t.plan.slow == 1);
	assert_int_equal(t.plan.plans, 1);
	close_program(&a);
	close_program(&b);
}

/* No job was late under it, and all are under whatever else is tried. */
static void the_rule_comes_back(void **state) {
	struct terms rule[3];
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned_after(0, &a, &b, &plan, rule);
	t = fail_all_tries(&b, &rule[1]);
	assert_true(t.plan.plans >= 2);
	assert_non_null(strstr(t.reason, "of all that ran"));
	assert_terms(&a, &rule[0]);
	assert_terms(&b, &rule[1]);
	close_program(&a);
	close_program(&b);
}

static void a_plan_that_does_as_predicted_is_kept(void **state) {
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned(&a, &b, &plan);
	do { /* what is counted begins a little after the terms changed */
		report(&a, 16, MS);
		report(&b, 16, 40 * MS);
		usleep(5000);
	} while (!has_verdict(&b, "keep"));
	t = look(&b);
	assert_int_equal(t.plan.plans, 1);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* Alone its jobs would take 36 ms: so says the profile. Who is late anyway lets the copies of
 * others go first, but only once it was seen to be. */
static void a_task_gives_way_when_it_was_late(void **state) {
	struct program a = open_short(), b = open_program("long", 60 * MS, 20 * MS, &long_work);
	const _Atomic uint64_t *due = &b.s.page->gpu[0].copy_due_ns;

	report_shape(&a);
	report_shape(&b); /* in time */
	wait_for(&b, 1, NULL);
	usleep(A_WHILE);
	assert_int_not_equal(atomic_load(due), 0);
	while (atomic_load(due) != 0) {
		report(&b, 40, 30 * MS);
		usleep(10000);
	}
	assert_int_not_equal(atomic_load(&a.s.page->gpu[0].copy_due_ns), 0);
	/* It still does while something else is tried, in which it has few jobs. */
	while (!has_verdict(&a, "try")) {
		report(&a, 40, 3 * MS);
		usleep(1000);
	}
	usleep(A_WHILE / 5);
	assert_int_equal(atomic_load(due), 0);
	close_program(&a);
	close_program(&b);
}

static bool is_alone(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 1;
}

/* However fast programs without a deadline do, what a plan does is judged: here, that jobs take
 * longer than their profile says. */
static void coming_and_going_stops_no_judgement(void **state) {
	struct program a, b, other;
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;
	struct terms rule[3];
	struct plan plan;

	open_planned_after(64, &a, &b, &plan, rule);
	while (look(&b).plan.slow == 1) {
		assert_true(nsec_now() < until);
		other = open_program("other", 0, 0, &short_work);
		report(&b, 4, 1000 * MS);
		steered_leave(&other.s);
	}
	assert_true(look(&a).planned && look(&b).planned);
	close_program(&a);
	close_program(&b);
}

/* What was found out of its jobs, and of the plan beside the others, is still known: there is no
 * need for another job of it, nor for a new plan. */
static void a_program_that_is_started_again_has_its_plan(void **state) {
	struct program a, b;
	struct terms rule[3];
	struct plan plan;
	struct told t;

	open_planned_after(64, &a, &b, &plan, rule);
	while (look(&b).plan.slow == 1) {
		report(&b, 40, 1000 * MS);
		usleep(5000);
	}
	close_program(&b); /* it crashes */
	status_until(is_alone, NULL);
	assert_false(look(&a).planned);
	b = open_long();
	t = look(&b);
	assert_true(t.planned);
	assert_true(t.plan.slow > 1);
	assert_int_equal(t.plan.jobs, 0);
	assert_true(look(&a).planned);
	/* Another task, or that of another program, is not the same. */
	close_program(&b);
	status_until(is_alone, NULL);
	b = open_program("long", 60 * MS, 50 * MS, &long_work);
	assert_false(look(&b).planned);
	assert_false(look(&a).planned);
	close_program(&a);
	close_program(&b);
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, planned_setup, planned_clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		STARTED(a_plan_that_does_worse_than_predicted_is_changed),
		STARTED(the_rule_comes_back),
		STARTED(a_plan_that_does_as_predicted_is_kept),
		STARTED(a_task_gives_way_when_it_was_late),
		STARTED(coming_and_going_stops_no_judgement),
		STARTED(a_program_that_is_started_again_has_its_plan),
	};

	return cmocka_run_group_tests_name("daemon-tune", tests, NULL, NULL);
}
