/*
 * test-ptx-undefined.c: registers that may be read before they are written, and that twins set them
 * to 0 and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/undefined.h"
#include "tests/unit/transform-harness.h"

#define FOUND_MAX 200

/* Puts the name of register @number of @var behind what is in @found. */
static void add_name(char found[static FOUND_MAX], const struct ptx_var *var, uint32_t number) {
	size_t n = strlen(found);

	snprintf(found + n, FOUND_MAX - n, "%s%.*s", n ? " " : "", (int)var->name.len, var->name.s);
	n = strlen(found);
	if (var->reg_range) {
		snprintf(found + n, FOUND_MAX - n, "%u", number);
	}
}

/* Those of kernel k with this @body, in the order of their numbers: "%r1 %p0". */
static void assert_undefined(const char *body, const char *names) {
	struct module_facts facts;
	struct registers registers;
	struct ptx_module *m;
	char *text, found[FOUND_MAX] = "";
	bool *undefined;

	assert_true(asprintf(&text, HEAD ".visible .entry k() {\n%s\n}", body) > 0);
	assert_int_equal(ptx_module_new(&m, text, strlen(text), NULL, 0), 0);
	assert_int_equal(module_facts_init(&facts, m), 0);
	assert_int_equal(registers_init(&registers, m, &m->funcs[0]), 0);
	undefined = undefined_find(&facts, &registers, &m->funcs[0]);
	assert_non_null(undefined);
	for (uint32_t v = registers.first_var; v < registers.first_var + registers.n_vars; v++) {
		const struct ptx_var *var = &m->vars[v];
		uint32_t n = var->space != PTX_SPACE_REG ? 0 : var->reg_range ? var->reg_range : 1;

		for (uint32_t k = 0; k < n; k++) {
			if (undefined[registers.bases[v - registers.first_var] + k]) {
				add_name(found, var, k);
			}
		}
	}
	assert_string_equal(found, names);
	free(undefined);
	registers_deinit(&registers);
	module_facts_deinit(&facts);
	ptx_module_free(m);
	free(text);
}

#define REGS ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"

static void what_is_written_first_is_defined(void **state) {
	assert_undefined(REGS
			 "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; setp.lt.u32 %p1, %r2, 5;\n"
			 "@%p1 mov.u32 %r1, 3; add.u32 %r1, %r1, %r2;",
			 "");
}

static void what_is_never_written_is_not(void **state) {
	assert_undefined(REGS "add.u32 %r2, %r1, 1; @%p3 add.u32 %r2, %r2, %r2;", "%p3 %r1");
}

static void unused_registers_do_not_count(void **state) {
	assert_undefined(REGS "ret;", "");
}

static void a_guard_may_not_hold(void **state) {
	assert_undefined(REGS
			 "setp.eq.u32 %p1, 0, 1; @%p1 mov.u32 %r1, 3;\n"
			 "@%p1 add.u32 %r2, %r1, 1;",
			 "%r1");
}

/* One place writes it, and not on every way. */
static void one_of_two_ways_is_not_enough(void **state) {
	assert_undefined(REGS
			 "setp.eq.u32 %p1, 0, 1; @%p1 bra L; mov.u32 %r1, 3; mov.u32 %r2, 1;\n"
			 "bra M; L: mov.u32 %r2, 2; M: add.u32 %r3, %r1, %r2;",
			 "%r1");
}

static void loops_begin_with_what_came_before(void **state) {
	assert_undefined(REGS
			 "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; @%p0 bra N; mov.u32 %r2, 1;\n"
			 "N: add.u32 %r3, %r2, %r4; mov.u32 %r4, 5; setp.lt.u32 %p1, %r1, 9;\n"
			 "@%p1 bra L;",
			 "%p0 %r2 %r4");
}

static void parts_of_vectors_and_pairs_are_written(void **state) {
	assert_undefined(REGS
			 "mov.u64 %rd1, 0; mov.b64 {%r1, %r2}, %rd1;\n"
			 "setp.eq.u32 %p1|%p2, %r1, %r2; @%p2 mov.u32 %r3, 1;\n"
			 "st.global.v2.u32 [%rd2], {%r1, %r5};",
			 "%r5 %rd2");
}

static void what_no_way_leads_to_says_nothing(void **state) {
	assert_undefined(REGS "ret; add.u32 %r1, %r2, %r3;", "");
}

static void twins_set_them_to_zero(void **state) {
	static const char body[] =
		".reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .b16 "
		"%h;\n"
		"add.u32 %r2, %r1, 1; @%p3 add.f32 %f1, %f2, %f2; add.u64 %rd1, %rd2, 1;\n"
		"add.u16 %h, %h, 1; mov.u32 %r3, 7; add.u32 %r3, %r3, 1;";
	struct transform *t = transform_body("", body);

	assert_occurs(t->ptx, "\tsetp.ne.u32 \t%p3, 0, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b32 \t%r1, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b32 \t%f2, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b64 \t%rd2, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b16 \t%h, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b32 \t%r", 1);
	assert_occurs(t->ptx, "\tmov.b32 \t%r1, 0;\n\tadd.u32 \t%r2", 1);
	assert_occurs(t->ptx, "\tmov.b64 \t%rd2, 0;\n\tadd.u64 \t%rd1", 1);
	transform_free(t);
}

/* @zero stands once, in front of @behind and behind @before. */
static void assert_between(const char *body, const char *before, const char *zero,
			   const char *behind) {
	struct transform *t = transform_body("", body);
	const char *at = strstr(t->ptx, zero);

	assert_occurs(t->ptx, zero, 1);
	if (!strstr(t->ptx, before) || strstr(t->ptx, before) > at || strstr(at, behind) == NULL) {
		fail_msg("'%s' is not between '%s' and '%s' in %s", zero, before, behind, t->ptx);
	}
	transform_free(t);
}

static void twins_set_them_as_late_as_they_can(void **state) {
	/* on the way that does not write it, in front of where both meet */
	assert_between(SAME
		       "@%p2 bra L; mov.u32 %r3, 3; bra M; L: mov.u32 %r4, 4; M: add.u32 "
		       "%r5, %r3, %r3;",
		       "mov.u32 \t%r4, 4;", "mov.b32 \t%r3, 0;", "M:");
	/* in front of the loop that writes it, behind where it reads it */
	assert_between(SAME
		       "mov.u32 %r4, %r2; L: add.u32 %r4, %r4, %r3; mov.u32 %r3, 7; setp.lt.u32 "
		       "%p1, %r4, 9; @%p1 bra L; ret;",
		       "mov.u32 \t%r4, %r2;", "mov.b32 \t%r3, 0;", "L:");
	/* in front of what may write it */
	assert_between(SAME "mov.u32 %r4, %r2; @%p2 mov.u32 %r3, 7; add.u32 %r4, %r3, %r3;",
		       "mov.u32 \t%r4, %r2;", "mov.b32 \t%r3, 0;", "@%p2 mov.u32 \t%r3, 7;");
	/* not at all where it is not read any more */
	struct transform *t = transform_body("", SAME
					     "@%p2 bra L; mov.u32 %r3, 3; add.u32 %r4, %r3, "
					     "%r3; L: mov.u32 %r3, 1; add.u32 %r4, %r3, 1;");

	assert_occurs(t->ptx, "%r3, 0;", 0);
	transform_free(t);
}

/* A declaration between instructions may stand in a loop of the kernel's own, where its registers
 * keep what they have. */
static void only_where_the_kernel_begins(void **state) {
	struct transform *t = transform_body("",
					     ".reg .pred %p; .reg .b32 %r1;\n"
					     "L: .reg .b32 %r2; add.u32 %r2, %r2, %r1;\n"
					     "{ .reg .b32 %r3; add.u32 %r3, %r3, %r2; }\n"
					     "setp.lt.u32 %p, %r2, 5; @%p bra L;");

	assert_occurs(t->ptx, "\tmov.b32 \t%r1, 0;\n", 1);
	assert_occurs(t->ptx, "\tmov.b32 \t%r", 1);
	transform_free(t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_first_is_defined),
		cmocka_unit_test(what_is_never_written_is_not),
		cmocka_unit_test(unused_registers_do_not_count),
		cmocka_unit_test(a_guard_may_not_hold),
		cmocka_unit_test(one_of_two_ways_is_not_enough),
		cmocka_unit_test(loops_begin_with_what_came_before),
		cmocka_unit_test(parts_of_vectors_and_pairs_are_written),
		cmocka_unit_test(what_no_way_leads_to_says_nothing),
		cmocka_unit_test(twins_set_them_to_zero),
		cmocka_unit_test(twins_set_them_as_late_as_they_can),
		cmocka_unit_test(only_where_the_kernel_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
