/*
 * test-text.c: which characters are shown as they are, and how the others are escaped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/text.h"

static void text_printable_tells_the_length(void **state) {
	assert_int_equal(text_printable(""), 0);
	assert_int_equal(text_printable("a"), 1);
	assert_int_equal(text_printable("\xc3\xa9"), 2);
	assert_int_equal(text_printable("\xe2\x82\xac"), 3);
	assert_int_equal(text_printable("\xf0\x9f\x98\x80"), 4);
	assert_int_equal(text_printable("\x1b"), 0);
	assert_int_equal(text_printable("\xe2\x82"), 0); /* cut */
}

static size_t encode(uint32_t c, char *p) {
	if (c < 0x80) {
		p[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		p[0] = (char)(0xc0 | c >> 6);
		p[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	p[0] = (char)(0xe0 | c >> 12);
	p[1] = (char)(0x80 | (c >> 6 & 0x3f));
	p[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

/* All that Unicode names Bidi_Control, separators of lines and paragraphs, and C0, DEL, C1. */
static void text_escape_leaves_no_control(void **state) {
	static const struct {
		uint32_t first, last;
	} controls[] = {
		{0x01, 0x1f},	  {0x7f, 0x9f},	    {0x61c, 0x61c},
		{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
	};

	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		for (uint32_t c = controls[i].first; c <= controls[i].last; c++) {
			char in[8] = "a", out[32], expected[32] = "a";
			size_t n = encode(c, in + 1);

			for (size_t k = 1; k <= n; k++) {
				size_t at = strlen(expected);

				snprintf(expected + at, sizeof(expected) - at, "\\x%02x",
					 (unsigned char)in[k]);
			}
			in[1 + n] = 'z';
			strcat(expected, "z");
			assert_string_equal(text_escape(in, out, sizeof(out)), expected);
		}
		if (controls[i].last > 0x9f) { /* their neighbours are shown */
			char in[8] = {0}, out[32];

			encode(controls[i].last + 1, in);
			assert_string_equal(text_escape(in, out, sizeof(out)), in);
			memset(in, 0, sizeof(in));
			encode(controls[i].first - 1, in);
			assert_string_equal(text_escape(in, out, sizeof(out)), in);
		}
	}
}

static void text_escape_keeps_to_its_room(void **state) {
	static const char text[] = "ab\xe2\x82\xac\x1b!";
	char out[16], whole[16];

	text_escape(text, whole, sizeof(whole));
	assert_string_equal(whole, "ab\xe2\x82\xac\\x1b!");
	for (size_t size = 1; size < sizeof(whole); size++) {
		size_t n;

		memset(out, '#', sizeof(out));
		text_escape(text, out, size);
		n = strlen(out);
		assert_true(n < size);
		assert_memory_equal(out, whole, n);
		/* Never half of a character or of an escape. */
		assert_true(n <= 2 || n == 5 || n >= 9);
		for (size_t i = size; i < sizeof(out); i++) {
			assert_int_equal(out[i], '#');
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_printable_tells_the_length),
		cmocka_unit_test(text_escape_leaves_no_control),
		cmocka_unit_test(text_escape_keeps_to_its_room),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
