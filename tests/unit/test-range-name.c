/*
 * test-range-name.c: which NVTX ranges of a program are its jobs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/range-name.h"

static void form_is_checked(void **state) {
	static const char *const wrong[] = {
		"", "nvtx", "nvtx:", "nvtx:@", "nvtx:@camera", "frame", "NVTX:frame", " nvtx:x"};
	char longest[5 + RANGE_NAME_MAX + 2] = "nvtx:";
	struct range_name r = {.name = "as it was"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(range_name_read(wrong[i], &r), -EINVAL);
	}
	memset(longest + 5, 'x', RANGE_NAME_MAX + 1);
	assert_int_equal(range_name_read(longest, &r), -EINVAL);
	longest[5] = '@';
	assert_int_equal(range_name_read(longest, &r), -EINVAL);
	longest[6] = '*';
	assert_int_equal(range_name_read(longest, &r), -EINVAL);
	assert_string_equal(r.name, "as it was");
	longest[5] = 'x';
	longest[5 + RANGE_NAME_MAX] = '\0';
	assert_int_equal(range_name_read(longest, &r), 0);
}

static struct range_name named(const char *text) {
	struct range_name r;

	assert_int_equal(range_name_read(text, &r), 0);
	return r;
}

static void name_is_compared_as_a_whole(void **state) {
	struct range_name r = named("nvtx:one frame");

	assert_true(range_name_is(&r, "one frame"));
	assert_false(range_name_is(&r, "one frame "));
	assert_false(range_name_is(&r, "one fram"));
	assert_false(range_name_is(&r, ""));
	assert_true(range_name_is_wide(&r, L"one frame"));
	assert_false(range_name_is_wide(&r, L"one frames"));
	assert_false(range_name_is_wide(&r, L"one fram"));
	assert_false(range_name_is_wide(&r, L""));
}

static void star_at_the_end_stands_for_any_rest(void **state) {
	struct range_name r = named("nvtx:a*b*"), all = named("nvtx:*");

	assert_true(range_name_is(&r, "a*b"));
	assert_true(range_name_is(&r, "a*bc"));
	assert_false(range_name_is(&r, "axb"));
	assert_true(range_name_is_wide(&r, L"a*bc"));
	assert_false(range_name_is_wide(&r, L"a*"));
	assert_true(range_name_is(&all, ""));
	assert_true(range_name_is_wide(&all, L"x"));
}

static void wide_names_are_unicode(void **state) {
	struct range_name
		r = named("nvtx:\xc3\xa9\xe2\x82\xac\xf0\x9f\x93\xb7"), /* e', euro, camera */
		broken = named("nvtx:\xff\xc3(\xe2\x82");

	assert_true(range_name_is_wide(&r, L"\xe9\u20ac\U0001f4f7"));
	assert_false(range_name_is_wide(&r, L"\xe9\u20ac\U0001f4f8"));
	assert_true(range_name_is_wide(&broken, L"\xff\xc3(\xe2\x82"));
	assert_true(range_name_is(&broken, "\xff\xc3(\xe2\x82"));
}

static void domain_is_behind_the_last_at(void **state) {
	struct range_name any = named("nvtx:frame"), camera = named("nvtx:a@b@camera"),
			  unnamed = named("nvtx:a@b@");

	assert_true(any.any_domain);
	assert_true(range_name_has_domain(&any, "whatever"));
	assert_true(range_name_has_domain_wide(&any, L"whatever"));
	assert_true(range_name_is(&camera, "a@b"));
	assert_false(camera.any_domain);
	assert_true(range_name_has_domain(&camera, "camera"));
	assert_false(range_name_has_domain(&camera, "cameras"));
	assert_true(range_name_has_domain_wide(&camera, L"camera"));
	assert_false(range_name_has_domain_wide(&camera, L"camer"));
	assert_true(range_name_is(&unnamed, "a@b"));
	assert_string_equal(unnamed.domain, "");
	assert_false(range_name_has_domain(&unnamed, "camera"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_is_checked),
		cmocka_unit_test(name_is_compared_as_a_whole),
		cmocka_unit_test(star_at_the_end_stands_for_any_rest),
		cmocka_unit_test(wide_names_are_unicode),
		cmocka_unit_test(domain_is_behind_the_last_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
