/*
 * transform-harness.c: see transform-harness.h.
 */
#include "tests/unit/transform-harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct transform *transform(const char *text) {
	struct transform *t = NULL;
	char error[200] = "";

	if (transform_new(&t, text, strlen(text), error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
	return t;
}

struct transform *transform_body(const char *before, const char *body) {
	char text[8192];
	int n = snprintf(text, sizeof(text),
			 HEAD
			 "%s\n.visible .entry k(.param .u64 p)\n{\n"
			 ".reg .b32 %%r<9>; .reg .b64 %%rd<5>; .reg .pred %%p<5>; "
			 ".reg .f32 %%f<5>;\n%s\n}\n",
			 before, body);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	return transform(text);
}

void assert_twin(const char *before, const char *body, bool votes) {
	struct transform *t = transform_body(before, body);

	assert_int_equal(t->n_kernels, 1);
	if (!t->kernels[0].confinable) {
		fail_msg("refused: %s (%s)", t->kernels[0].reason, t->kernels[0].instruction);
	}
	assert_null(t->kernels[0].reason);
	assert_non_null(t->ptx);
	assert_int_equal(t->kernels[0].uses_barriers, votes);
	transform_free(t);
}

void assert_refused(const char *before, const char *body, const char *instruction,
		    const char *reason) {
	struct transform *t = transform_body(before, body);

	assert_int_equal(t->n_kernels, 1);
	assert_false(t->kernels[0].confinable);
	assert_non_null(t->kernels[0].reason);
	if (!strstr(t->kernels[0].reason, reason)) {
		fail_msg("refused because %s, not because %s", t->kernels[0].reason, reason);
	}
	if (instruction) {
		assert_non_null(t->kernels[0].instruction);
		assert_string_equal(t->kernels[0].instruction, instruction);
		assert_true(t->kernels[0].line > 3);
	}
	assert_null(t->ptx);
	transform_free(t);
}

void assert_occurs(const char *text, const char *what, unsigned n) {
	unsigned found = 0;

	for (const char *at = text; (at = strstr(at, what)); at++) {
		found++;
	}
	if (found != n) {
		fail_msg("'%s' stands %u times, not %u, in:\n%s", what, found, n, text);
	}
}
