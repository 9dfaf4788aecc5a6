/*
 * test-daemon-share.c: policy `steer` with programs that nobody has profiled: what those without a
 * deadline get follows from what the jobs of the others are told to have taken.
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/enforcement.h"

#define MASK_GREEN (MASK_WHOLE | ENFORCEMENT_BIT(GREEN))
#define MS	   NSEC_PER_MSEC

/* Of 16 groups: 14 of 8 SMs and the last one, see terms_groups(). */
#define GROUPS 15

/* Of a job of a millisecond each. */
static const struct work short_work = {.launches = 20, .waves = 20};
static const struct work long_work = {.launches = 1, .waves = 1};

static struct harness harness;

static int setup(void **state) {
	char path[128];
	FILE *f;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(*state, f) >= 0);
	assert_int_equal(fclose(f), 0);
	setenv("SIMGPU", "h200:mps", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_start(&harness, (const char *[]){"--policy", "steer", NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

struct program {
	struct steered s;
	nsec_t next;
	uint64_t jobs;
	const struct work *work;
};

/* @deadline 0: none. */
static struct program open_program(const char *task, nsec_t deadline, const struct work *work) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct program p = {.work = work};

	spec.name = (char *)(uintptr_t)task;
	spec.task_class = deadline ? SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				   : SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	spec.period_ns = spec.deadline_ns = deadline;
	p.s = steered_open("app", &spec, MASK_GREEN);
	p.next = 1; /* when the machine was booted: that may be a minute ago */
	return p;
}

/* Tells of a job that took @response. */
static void report_job(struct program *p, nsec_t response, bool cold) {
	if (p->next + response > nsec_now()) {
		p->next = 1;
	}
	steered_began(&p->s, 0,
		      &(struct began){.job = ++p->jobs,
				      .terms = atomic_load(&p->s.page->gpu[0].word),
				      .release = p->next,
				      .finished = p->next + response,
				      .work = p->work,
				      .cold = cold});
	p->next += 10 * MS;
}

static void report(struct program *p, nsec_t response) {
	report_job(p, response, false);
}

static bool says(const struct program *p, unsigned first, unsigned n, unsigned level) {
	struct terms t = steered_terms(&p->s, 0);

	return t.steered && t.first == first && t.n == n && t.level == level;
}

/* Both go on with jobs that take as long, until the terms of both are these: first group, number of
 * groups (0: all SMs), level. */
static void run_until(struct program *a, nsec_t response_a, const unsigned terms_a[3],
		      struct program *b, nsec_t response_b, const unsigned terms_b[3]) {
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	while (!says(a, terms_a[0], terms_a[1], terms_a[2]) ||
	       !says(b, terms_b[0], terms_b[1], terms_b[2])) {
		assert_true(nsec_now() < until);
		report(a, response_a);
		report(b, response_b);
		usleep(2000);
	}
}

static const unsigned all[3] = {0, 0, 0}, all_first[3] = {0, 0, PROTO_TERMS_LEVEL_MAX};
static const unsigned upper_half[3] = {GROUPS / 2, GROUPS - GROUPS / 2, 0};
static const unsigned one_group[3] = {0, 1, 0}, all_but_one[3] = {1, GROUPS - 1, 0};

static void short_kernels_get_all_sms(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program train = open_program("train", 0, &short_work);

	(void)state;
	run_until(&camera, MS, all, &train, MS, upper_half);
	run_until(&camera, MS, all_first, &train, MS, all);
	/* A job is late: as it began. */
	run_until(&camera, 11 * MS, all, &train, MS, upper_half);
	steered_close(&camera.s);
	steered_close(&train.s);
}

static void long_kernels_get_what_is_to_spare(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program products = open_program("products", 0, &long_work);

	(void)state;
	run_until(&camera, MS, one_group, &products, MS, all_but_one);
	run_until(&camera, 11 * MS, all, &products, MS, upper_half);
	steered_close(&camera.s);
	steered_close(&products.s);
}

/* Without jobs, and with responses that leave nothing to spare, nothing is tried. */
static void deadlines_come_first(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program train = open_program("train", 0, &short_work);

	(void)state;
	run_until(&camera, 9 * MS, all, &train, MS, upper_half);
	for (unsigned i = 0; i < 200; i++) {
		report(&camera, 9 * MS);
		report(&train, MS);
		usleep(2000);
		assert_true(says(&camera, 0, 0, 0));
	}
	steered_close(&camera.s);
	steered_close(&train.s);
}

/* Where they may, others use all SMs and wait for jobs with a deadline, until one is late. */
static void others_yield(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program products = open_program("products", 0, &long_work);
	struct terms first, other;

	(void)state;
	run_until(&camera, MS / 10, all_first, &products, MS, all);
	first = steered_terms(&camera.s, 0);
	other = steered_terms(&products.s, 0);
	assert_true(first.awaited && !first.yields);
	assert_true(other.yields && !other.awaited);
	run_until(&camera, 11 * MS, all, &products, MS, upper_half);
	assert_false(steered_terms(&camera.s, 0).awaited);
	assert_false(steered_terms(&products.s, 0).yields);
	steered_close(&camera.s);
	steered_close(&products.s);
}

/* A job that loads code is late whatever others do, unless its program goes on loading some. */
static void cold_jobs_say_nothing(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program products = open_program("products", 0, &long_work);
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	(void)state;
	run_until(&camera, MS / 10, all_first, &products, MS, all);
	for (unsigned i = 0; i < 200; i++) {
		report_job(&camera, 11 * MS, true);
		report(&camera, MS / 10);
		report(&products, MS);
		usleep(2000);
		assert_true(says(&products, 0, 0, 0));
	}
	while (!says(&products, upper_half[0], upper_half[1], upper_half[2])) {
		assert_true(nsec_now() < until);
		report_job(&camera, 11 * MS, true);
		report(&products, MS);
		usleep(2000);
	}
	steered_close(&camera.s);
	steered_close(&products.s);
}

static bool yields(const struct program *p) {
	const struct terms t = steered_terms(&p->s, 0);

	return t.steered && t.yields && t.n == 0;
}

static bool is_awaited(const struct program *p) {
	const struct terms t = steered_terms(&p->s, 0);

	return t.steered && t.awaited && t.n == 0;
}

/* What was found out holds for others without a deadline as well, from their first job on. */
static void others_come_and_go(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program products = open_program("products", 0, &long_work), tool, door;
	struct terms first;

	(void)state;
	run_until(&camera, MS / 10, all_first, &products, MS, all);
	assert_true(is_awaited(&camera) && yields(&products));
	first = steered_terms(&camera.s, 0);
	tool = open_program("tool", 0, &long_work);
	assert_true(yields(&tool));
	steered_leave(&products.s);
	assert_true(is_awaited(&camera) && yields(&tool));
	assert_int_equal(steered_terms(&camera.s, 0).epoch, first.epoch);
	/* Nobody is left to wait for it, until somebody comes. */
	steered_leave(&tool.s);
	assert_false(is_awaited(&camera));
	tool = open_program("tool", 0, &long_work);
	assert_true(is_awaited(&camera) && yields(&tool));
	/* Of another deadline nothing is known. */
	door = open_program("door", 20 * MS, &short_work);
	assert_false(is_awaited(&camera) || is_awaited(&door));
	assert_true(says(&tool, upper_half[0], upper_half[1], 0));
	steered_close(&camera.s);
	steered_close(&tool.s);
	steered_close(&door.s);
}

static bool are_two(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 2;
}

/* With its deadline what was found out beside it is back, too. */
static void a_program_that_is_started_again_is_known(void **state) {
	struct program camera = open_program("camera", 10 * MS, &short_work);
	struct program door = open_program("door", 20 * MS, &short_work);
	struct program products = open_program("products", 0, &long_work);
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	(void)state;
	while (!yields(&products)) {
		assert_true(nsec_now() < until);
		report(&camera, MS / 10);
		report(&door, MS / 10);
		report(&products, MS);
		usleep(2000);
	}
	steered_close(&door.s); /* it crashes */
	status_until(are_two, NULL);
	assert_false(yields(&products));
	door = open_program("door", 20 * MS, &short_work);
	assert_true(is_awaited(&camera) && is_awaited(&door) && yields(&products));
	steered_close(&camera.s);
	steered_close(&door.s);
	steered_close(&products.s);
}

/* Each test has its configuration of sbeetd. */
static char nobody_yields[] = "[policy steer]\nyield = off\n", as_it_comes[] = "";

#define WITH(config, test) cmocka_unit_test_prestate_setup_teardown(test, setup, clean, config)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH(nobody_yields, short_kernels_get_all_sms),
		WITH(nobody_yields, long_kernels_get_what_is_to_spare),
		WITH(nobody_yields, deadlines_come_first),
		WITH(as_it_comes, others_yield),
		WITH(as_it_comes, cold_jobs_say_nothing),
		WITH(as_it_comes, others_come_and_go),
		WITH(as_it_comes, a_program_that_is_started_again_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
