/*
 * test-link.c: which PTX stands for a cubin that the program linked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/link.h"

#define A ((CUlinkState)0x10)
#define B ((CUlinkState)0x20)

static const char cubins[2][4];
static const struct jit none;
static struct jit jit;

static void link_knows_the_single_source(void **state) {
	char *ptx;

	link_created(A, &none);
	link_added(A, ".version 7.0 ...", 12, NULL); /* without a final NUL of its own */
	assert_null(link_source_of(cubins[0], &jit));
	link_completed(A, cubins[0]);
	ptx = link_source_of(cubins[0], &jit);
	assert_string_equal(ptx, ".version 7.0");
	link_source_free(ptx);
	assert_null(link_source_of(cubins[1], &jit));
	assert_null(link_source_of(NULL, &jit));
	link_destroyed(A);
	assert_null(link_source_of(cubins[0], &jit));
}

static void link_has_no_source_when_more_goes_in(void **state) {
	const char *const second[] = {NULL, ".version 8.0"};

	for (int order = 0; order < 3; order++) {
		link_created(A, &none);
		link_added(A, order == 2 ? NULL : ".version 7.0", 12, NULL);
		link_added(A, order == 2 ? ".version 7.0" : second[order], 12, NULL);
		link_completed(A, cubins[0]);
		assert_null(link_source_of(cubins[0], &jit));
		link_destroyed(A);
	}
}

static void link_tells_states_apart(void **state) {
	char *ptx;

	link_created(A, &none);
	link_created(B, &none);
	link_added(B, "b", 1, NULL);
	link_added(A, "a", 1, NULL);
	link_completed(A, cubins[0]);
	link_completed(B, cubins[1]);
	link_destroyed(A);
	assert_null(link_source_of(cubins[0], &jit));
	ptx = link_source_of(cubins[1], &jit);
	assert_string_equal(ptx, "b");
	link_source_free(ptx);
	link_destroyed(B);
}

static void link_knows_what_its_source_was_compiled_with(void **state) {
	const struct jit all = {.n = 2,
				.options = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL},
				.values = {(void *)32, (void *)1}};
	const struct jit one = {
		.n = 1, .options = {CU_JIT_OPTIMIZATION_LEVEL}, .values = {(void *)3}};

	link_created(A, &all);
	link_added(A, ".version 7.0", 12, &one);
	link_completed(A, cubins[0]);
	jit = none;
	link_source_free(link_source_of(cubins[0], &jit));
	assert_int_equal(jit.n, 2);
	assert_int_equal(jit.options[0], CU_JIT_MAX_REGISTERS);
	assert_int_equal((uintptr_t)jit.values[0], 32);
	assert_int_equal(jit.options[1], CU_JIT_OPTIMIZATION_LEVEL);
	assert_int_equal((uintptr_t)jit.values[1], 3);
	jit = one;
	assert_null(link_source_of(cubins[1], &jit));
	assert_int_equal(jit.n, 1); /* an image's own options stay */
	link_destroyed(A);
}

/* States from before the shim looked, or that it had no memory for. */
static void link_lets_unknown_states_be(void **state) {
	link_added(A, "a", 1, NULL);
	link_completed(A, cubins[0]);
	link_destroyed(A);
	assert_null(link_source_of(cubins[0], &jit));
	link_source_free(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_knows_the_single_source),
		cmocka_unit_test(link_has_no_source_when_more_goes_in),
		cmocka_unit_test(link_tells_states_apart),
		cmocka_unit_test(link_knows_what_its_source_was_compiled_with),
		cmocka_unit_test(link_lets_unknown_states_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
