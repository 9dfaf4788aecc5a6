/*
 * test-shim-dependent.c: which launches are dependent ones (shim/enforce/dependent.h), as the
 * driver is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "mini.h"

/* Up to CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED and its like. */
#define ATTRIBUTES 16

/* In jobs under terms: the first launch of one goes the long way, the others go the short one. */
static void begin(struct mini *m) {
	mini_make_page(m, true);
	mini_steer(m, 0);
	mini_begin(m, mini_plain);
}

static void launch_in_job(struct mini *m, const char *how) {
	mini_do(m, "@0 hold 1", 0);
	mini_do(m, how, 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
}

/* The first one of each job has nothing in front of it that is known. */
static void kernels_of_ptx_are_launched_as_dependent_ones(void **state) {
	struct mini *m = *state;

	begin(m);
	launch_in_job(m, "@0 launch 3"); /* of no module that was seen */
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 module", 0);
	launch_in_job(m, "@0 launch 5");
	mini_do(m, "@0 dependent-launches", 4);
	launch_in_job(m, "@0 launch-ex 4");
	mini_do(m, "@0 dependent-launches", 7);
	launch_in_job(m, "@0 launch-ex 3"); /* with an attribute of their own */
	mini_do(m, "@0 dependent-launches", 7);
	mini_do(m, "@0 launches", 15);
	mini_do(m, "@0 careless-launches", 0);
}

static void kernels_of_libraries_are_too(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 library", 0);
	launch_in_job(m, "@0 launch 5");
	mini_do(m, "@0 dependent-launches", 4);
	mini_do(m, "@0 careless-launches", 0);
}

static void kernels_of_machine_code_are_too(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 code", 0);
	launch_in_job(m, "@0 launch 5");
	mini_do(m, "@0 dependent-launches", 4);
	mini_do(m, "@0 code-library", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 dependent-launches", 6);
	mini_do(m, "@0 refuse 1", 0); /* the driver: the program's own is loaded */
	mini_do(m, "@0 code", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 code-library", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 dependent-launches", 6);
	mini_do(m, "@0 launches", 14);
	mini_do(m, "@0 careless-launches", 0);
}

/* What may let the next kernel begin early. After it the first launch is plain again, and the
 * second one behind that. */
static void no_dependent_launch_is_behind_anything_else(void **state) {
	static const char *const others[] = {
		"@0 other-launch 1", "@1 other-launch 1", /* also in another thread */
		"@0 other-launch 2", "@0 launch-ex 1",	  /* with an attribute of its own */
		"@0 graph",	     "@0 cooperative-launch", "@0 event-wait",
	};
	const unsigned n = sizeof(others) / sizeof(others[0]);
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 module", 0);
	mini_do(m, "@0 event", 0);
	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch 1", 0);
	for (unsigned i = 0; i < n; i++) {
		mini_do(m, "@0 launch 1", 0);
		mini_do(m, "@0 dependent-launches", 2 * (int)i + 1);
		mini_do(m, others[i], 0);
		mini_do(m, "@0 launch 1", 0);
		mini_do(m, "@0 dependent-launches", 2 * (int)i + 1);
		mini_do(m, "@0 launch 1", 0);
		mini_do(m, "@0 dependent-launches", 2 * (int)i + 2);
	}
	/* Nor behind another stream's. */
	mini_do(m, "@0 stream", 0);
	mini_do(m, "@0 stream-launch 1", 0);
	mini_do(m, "@0 dependent-launches", 2 * (int)n);
	mini_do(m, "@0 stream-launch 1", 0);
	mini_do(m, "@0 dependent-launches", 2 * (int)n + 1);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 careless-launches", 0);
}

/* What the driver tells of a kernel is what it tells of the program's own: else that is loaded.
 * Machine code is not compiled. */
static void kernels_of_which_something_else_is_told_are_not(void **state) {
	struct mini *m = *state;
	char vary[32];

	begin(m);
	for (int attribute = 0; attribute < ATTRIBUTES; attribute++) {
		snprintf(vary, sizeof(vary), "@0 vary %d", attribute);
		mini_do(m, vary, 0);
		mini_do(m, "@0 module", 0);
		launch_in_job(m, "@0 launch 2");
		mini_do(m, "@0 library", 0);
		launch_in_job(m, "@0 launch 2");
	}
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 module-log 800", 400); /* not a quarter */
	mini_do(m, "@0 code", 0);
	launch_in_job(m, "@0 launch 2");
	mini_do(m, "@0 dependent-launches", 1);
	mini_do(m, "@0 vary -1", 0);
	mini_do(m, "@0 module", 0);
	launch_in_job(m, "@0 launch 2");
	mini_do(m, "@0 dependent-launches", 2);
	mini_do(m, "@0 careless-launches", 0);
}

static void other_kernels_are_not(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 module-of-its-own-way", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 old-module", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 launches", 6);
}

static void nobody_asked_so_launches_are_the_program_s_own(void **state) {
	struct mini *m = *state;

	m->dependent = false;
	begin(m);
	mini_do(m, "@0 module", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 library", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 code", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 careless-launches", 0);
	mini_do(m, "@0 launches", 9);
}

static void captured_launches_are_as_the_program_has_them(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 module", 0);
	mini_do(m, "@0 stream", 0);
	launch_in_job(m, "@0 stream-launch 3");
	mini_do(m, "@0 dependent-launches", 2);
	mini_do(m, "@0 capture", 0);
	mini_do(m, "@0 stream-launch 3", 0);
	mini_do(m, "@0 capture-end", 0);
	mini_do(m, "@0 dependent-launches", 2);
	mini_do(m, "@0 launches", 6);
}

static void a_driver_that_does_not_take_what_waits_gets_the_program_s_own(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 refuse 1", 0);
	mini_do(m, "@0 module", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 library", 0);
	launch_in_job(m, "@0 launch 3");
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 launches", 6);
	mini_do(m, "@0 module-log 800", 400); /* not a quarter */
}

static void a_driver_without_dependent_launches_makes_plain_ones(void **state) {
	struct mini *m = *state;

	begin(m);
	mini_do(m, "@0 refuse 2", 0);
	mini_do(m, "@0 module", 0);
	launch_in_job(m, "@0 launch 3");
	launch_in_job(m, "@0 launch-ex 4");
	mini_do(m, "@0 dependent-launches", 0);
	mini_do(m, "@0 launches", 7);
}

static int setup(void **state) {
	int r = mini_setup(state);

	((struct mini *)*state)->dependent = true;
	return r;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, mini_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(kernels_of_ptx_are_launched_as_dependent_ones),
		CASE(kernels_of_libraries_are_too),
		CASE(kernels_of_machine_code_are_too),
		CASE(no_dependent_launch_is_behind_anything_else),
		CASE(kernels_of_which_something_else_is_told_are_not),
		CASE(other_kernels_are_not),
		CASE(nobody_asked_so_launches_are_the_program_s_own),
		CASE(captured_launches_are_as_the_program_has_them),
		CASE(a_driver_that_does_not_take_what_waits_gets_the_program_s_own),
		CASE(a_driver_without_dependent_launches_makes_plain_ones),
	};

	return cmocka_run_group_tests_name("shim-dependent", tests, NULL, NULL);
}
