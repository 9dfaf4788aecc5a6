/*
 * test-declare.c: what sbeetd is told that a kernel's launches can keep. What is known of kernel,
 * driver and daemon is replaced (the linker's --wrap).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "proto/enforcement.h"
#include "shim/declare.h"
#include "shim/enforce/green.h"
#include "shim/greet.h"

#define KERNEL ((const struct kernel *)&known)

static struct {
	const char *refusal, *needs_whole;
	bool possible, cuts, waits_first;
} known;

static struct {
	unsigned n;
	uint32_t mask;
	char refusal[64];
	bool dependent;
} told;

uint32_t __wrap_kernel_id(const struct kernel *k);
const char *__wrap_kernel_name(const struct kernel *k);
const char *__wrap_kernel_refusal(const struct kernel *k);
const char *__wrap_kernel_needs_whole(const struct kernel *k);
bool __wrap_kernel_waits_first(const struct kernel *k);
bool __wrap_green_possible(void);
bool __wrap_greet_daemon_cuts(void);

uint32_t __wrap_kernel_id(const struct kernel *k) {
	(void)k;
	return 7;
}

const char *__wrap_kernel_name(const struct kernel *k) {
	(void)k;
	return "k";
}

const char *__wrap_kernel_refusal(const struct kernel *k) {
	(void)k;
	return known.refusal;
}

const char *__wrap_kernel_needs_whole(const struct kernel *k) {
	(void)k;
	return known.needs_whole;
}

bool __wrap_kernel_waits_first(const struct kernel *k) {
	(void)k;
	return known.waits_first;
}

bool __wrap_green_possible(void) {
	return known.possible;
}

bool __wrap_greet_daemon_cuts(void) {
	return known.cuts;
}

static int take(const Sbeet__ToDaemon *m) {
	assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_KERNEL);
	told.n++;
	told.mask = m->kernel->enforcement_mask;
	snprintf(told.refusal, sizeof(told.refusal), "%s", m->kernel->refusal);
	told.dependent = m->kernel->dependent;
	return 0;
}

static int refuse(const Sbeet__ToDaemon *m) {
	(void)m;
	return -EAGAIN;
}

static void declare_says_what_can_really_be_kept(void **state) {
	const uint32_t twin = ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN);
	const uint32_t green = ENFORCEMENT_BIT(GREEN), whole = ENFORCEMENT_BIT(WHOLE);
	const struct {
		const char *refusal, *needs_whole;
		bool possible, cuts;
		uint32_t mask;
		const char *said;
	} cases[] = {
		{NULL, NULL, true, true, whole | twin | green, ""},
		{"no PTX", NULL, true, true, whole | green, "no PTX"},
		{"no PTX", NULL, false, true, whole, "no PTX"}, /* the driver makes none */
		{"no PTX", NULL, true, false, whole, "no PTX"}, /* the daemon grants none */
		{NULL, NULL, true, false, whole | twin, ""},
		{NULL, "too large", true, true, whole, "too large"},
		{"no PTX", "too large", true, true, whole, "too large"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		known.refusal = cases[i].refusal;
		known.needs_whole = cases[i].needs_whole;
		known.possible = cases[i].possible;
		known.cuts = cases[i].cuts;
		known.waits_first = i % 2;
		declare_forget();
		assert_int_equal(declare_kernel(KERNEL, take), 7);
		assert_int_equal(told.mask, cases[i].mask);
		assert_string_equal(told.refusal, cases[i].said);
		assert_int_equal(told.dependent, known.waits_first);
	}
}

static void declare_tells_once_in_each_connection(void **state) {
	(void)state;
	declare_forget();
	told.n = 0;
	assert_int_equal(declare_kernel(KERNEL, refuse), 0);
	assert_int_equal(declare_kernel(KERNEL, take), 7);
	assert_int_equal(declare_kernel(KERNEL, refuse), 7);
	assert_int_equal(told.n, 1);
	declare_forget();
	assert_int_equal(declare_kernel(KERNEL, take), 7);
	assert_int_equal(told.n, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare_says_what_can_really_be_kept),
		cmocka_unit_test(declare_tells_once_in_each_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
