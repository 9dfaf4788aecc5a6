/*
 * test-ptx-wait-first.c: what is written into PTX for dependent launches, and which stays as it is.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/wait-first.h"

#define WAIT "griddepcontrol.wait;\n\t"

static void assert_becomes(const char *text, const char *expected) {
	char *ret = NULL, error[200] = "";

	assert_int_equal(wait_first_text(&ret, text, strlen(text), error, sizeof(error)), 0);
	assert_string_equal(ret, expected);
	free(ret);
}

static void assert_stays(const char *text, int code, const char *why) {
	char *ret = NULL, error[200] = "";

	assert_int_equal(wait_first_text(&ret, text, strlen(text), error, sizeof(error)), code);
	assert_null(ret);
	if (!strstr(error, why)) {
		fail_msg("%s: '%s'", text, error);
	}
	assert_int_equal(wait_first_text(&ret, text, strlen(text), NULL, 0), code);
}

static void each_kernel_waits_first(void **state) {
	assert_becomes(
		".version 7.8\n.target sm_90\n.address_size 64\n"
		"// first\n.visible .entry a() { ret; }\n"
		".func f() { ret; }\n"
		".entry b(.param .u32 x)\n.maxntid 128\n{\n.reg .b32 %r1;\nmov.u32 %r1, "
		"1;\nret;\n}\n",
		".version 7.8\n.target sm_90\n.address_size 64\n"
		"// first\n.visible .entry a() { " WAIT
		"ret; }\n"
		".func f() { ret; }\n"
		".entry b(.param .u32 x)\n.maxntid 128\n{\n" WAIT
		".reg .b32 %r1;\nmov.u32 %r1, 1;\nret;\n}\n");
}

/* What the driver says of a kernel (CU_FUNC_ATTRIBUTE_PTX_VERSION) follows from its target. */
static void version_and_target_stay(void **state) {
	static const char *const heads[] = {
		".version /* 1.0 */ 7.8 .target sm_90",
		".version 8.0 .target sm_90a",
		".version 9.0 .target sm_100",
		".version 7.10 .target sm_90",
	};
	char text[200], expected[200];

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		snprintf(text, sizeof(text), "%s .address_size 64 .entry k(){ret;} // end",
			 heads[i]);
		snprintf(expected, sizeof(expected),
			 "%s .address_size 64 .entry k(){" WAIT "ret;} // end", heads[i]);
		assert_becomes(text, expected);
	}
}

/* Of such texts there is a copy with names in one piece. */
static void names_apart_from_their_dots_stay(void **state) {
	assert_becomes(
		".version 7.8 .target sm_90 .address_size 64 .global .u32 g;\n"
		".entry k() { .reg.u32 r; ld .global .u32 r, [g]; ret; }",
		".version 7.8 .target sm_90 .address_size 64 .global .u32 g;\n"
		".entry k() { " WAIT ".reg.u32 r; ld.global.u32   r, [g]; ret; }");
}

static void other_texts_stay(void **state) {
	static const char kernel[] = ".address_size 64 .entry k() { ret; }";
	static const struct {
		const char *head, *rest;
		int code;
		const char *why;
	} cases[] = {
		{".version 7.7 .target sm_90 ", kernel, -ENOTSUP, "before 7.8"},
		{".version 8.0 .target sm_75 ", kernel, -ENOTSUP, "before sm_90"},
		{".version 8.0 .target sm_89 ", kernel, -ENOTSUP, "before sm_90"},
		{".version 7.8 .target sm_90, debug ", kernel, -ENOTSUP, "options"},
		{".version 7.8 .target sm_90 .target sm_90 ", kernel, -ENOTSUP, "options"},
		{".version 7.8 .target sm_90 ", ".entry k() { ret; }", -ENOTSUP, "64 bits"},
		{".version 7.8 .target sm_90 ", ".address_size 64 .func f() { ret; }", -ENOTSUP,
		 "no kernels"},
		{".version 7.8 .target sm_90 ", ".address_size 64 .entry k();", -ENOTSUP,
		 "no kernels"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .entry k() { griddepcontrol.launch_dependents; ret; }", -ENOTSUP,
		 "griddepcontrol"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .entry k() { ret; } .func f() { griddepcontrol.wait; ret; }",
		 -ENOTSUP, "griddepcontrol"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .func f() { tex.1d.v4.f32.s32 {a, b, c, d}, [t, {x}]; ret; } "
		 ".entry k() { ret; }",
		 -ENOTSUP, "textures"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .entry k() { tld4.r.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}]; "
		 "ret; }",
		 -ENOTSUP, "textures"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .const .u32 c; .entry k() { ret; }", -ENOTSUP, "constants"},
		{".version 7.8 .target sm_90 ",
		 ".address_size 64 .entry k() { .reg .b64 p; .reg .b32 r; ld.const.u32 r, [p]; "
		 "ret; }",
		 -ENOTSUP, "constants"},
		{".version 7.8 .target sm_90 ", ".address_size 64 .entry k() {", -EINVAL, "line 1"},
		{"", "garbage", -EINVAL, "line 1"},
		{"", "", -EINVAL, ".version"},
	};
	char text[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", cases[i].head, cases[i].rest);
		assert_stays(text, cases[i].code, cases[i].why);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_waits_first),
		cmocka_unit_test(version_and_target_stay),
		cmocka_unit_test(names_apart_from_their_dots_stay),
		cmocka_unit_test(other_texts_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
