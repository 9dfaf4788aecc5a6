/*
 * test-ptx-lexer.c: the lexer on the forms of PTX, and on text that is none.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/lexer.h"

struct expected {
	enum ptx_token_kind kind;
	const char *text;
};

static void assert_tokens(const char *text, const struct expected *expected) {
	struct ptx_tokens t;
	unsigned line = 0;
	size_t n = 0;

	assert_int_equal(ptx_tokens_init(&t, text, strlen(text), &line), 0);
	for (; expected[n].text; n++) {
		assert_true(n < t.n);
		assert_int_equal(t.list[n].kind, expected[n].kind);
		assert_int_equal(t.list[n].len, strlen(expected[n].text));
		assert_memory_equal(ptx_token_text(&t, &t.list[n]), expected[n].text,
				    t.list[n].len);
	}
	assert_int_equal(t.n, n + 1);
	assert_int_equal(t.list[n].kind, PTX_TOKEN_END);
	ptx_tokens_deinit(&t);
}

static void lexer_keeps_dotted_words_whole(void **state) {
	assert_tokens("@!%p1 ld.global.nc.L1::no_allocate.u32 %r1, [$str$1+-0x4];",
		      (struct expected[]){{PTX_TOKEN_PUNCT, "@"},
					  {PTX_TOKEN_PUNCT, "!"},
					  {PTX_TOKEN_WORD, "%p1"},
					  {PTX_TOKEN_WORD, "ld.global.nc.L1::no_allocate.u32"},
					  {PTX_TOKEN_WORD, "%r1"},
					  {PTX_TOKEN_PUNCT, ","},
					  {PTX_TOKEN_PUNCT, "["},
					  {PTX_TOKEN_WORD, "$str$1"},
					  {PTX_TOKEN_PUNCT, "+"},
					  {PTX_TOKEN_PUNCT, "-"},
					  {PTX_TOKEN_INT, "0x4"},
					  {PTX_TOKEN_PUNCT, "]"},
					  {PTX_TOKEN_PUNCT, ";"},
					  {0}});
}

static void lexer_tells_labels_from_scopes(void **state) {
	assert_tokens("$L1: a::b %r<5> 7 % 3", (struct expected[]){{PTX_TOKEN_WORD, "$L1"},
								   {PTX_TOKEN_PUNCT, ":"},
								   {PTX_TOKEN_WORD, "a::b"},
								   {PTX_TOKEN_WORD, "%r"},
								   {PTX_TOKEN_PUNCT, "<"},
								   {PTX_TOKEN_INT, "5"},
								   {PTX_TOKEN_PUNCT, ">"},
								   {PTX_TOKEN_INT, "7"},
								   {PTX_TOKEN_PUNCT, "%"},
								   {PTX_TOKEN_INT, "3"},
								   {0}});
}

static void lexer_skips_comments_and_keeps_strings(void **state) {
	assert_tokens("a /* x\n ** y */ b // c\n\"d \\\" // e\" /**/",
		      (struct expected[]){{PTX_TOKEN_WORD, "a"},
					  {PTX_TOKEN_WORD, "b"},
					  {PTX_TOKEN_STRING, "d \\\" // e"},
					  {0}});
}

static void lexer_cuts_directives_at_their_dots(void **state) {
	assert_tokens(".global.align 0x8.b8 x.y", (struct expected[]){{PTX_TOKEN_WORD, ".global"},
								      {PTX_TOKEN_WORD, ".align"},
								      {PTX_TOKEN_INT, "0x8"},
								      {PTX_TOKEN_WORD, ".b8"},
								      {PTX_TOKEN_WORD, "x.y"},
								      {0}});
}

/* Joined, every token keeps its line; directives and what follows .loc stay as they are. */
static void lexer_joins_split_names(void **state) {
	static const struct {
		const char *text;
		unsigned line;
	} expected[] = {
		{".entry", 1},	{"k", 1},	   {".maxntid", 1},
		{"{", 1},	{".loc", 2},	   {"1", 2},
		{"2", 2},	{",", 2},	   {"function_name", 2},
		{"f", 2},	{"+", 2},	   {"4", 2},
		{",", 2},	{"inlined_at", 2}, {"3", 2},
		{".reg", 3},	{".u32", 3},	   {"r", 3},
		{";", 3},	{"@", 3},	   {"p", 3},
		{"mov.u32", 3}, {"%r", 5},	   {",", 5},
		{"%tid.x", 5},	{";", 5},	   {"L", 5},
		{":", 5},	{".pragma", 5},	   {"x", 5},
		{".y", 5},	{";", 5},	   {"}", 5},
		{"", 5},
	};
	const char *text =
		".entry k .maxntid {\n.loc 1 2, function_name f + 4, inlined_at 3\n.reg .u32 r; @p "
		"mov // a\n\n.u32 %r, "
		"%tid /* b */ .x; L : .pragma x .y; }";
	struct ptx_tokens t;

	assert_int_equal(ptx_tokens_init(&t, text, strlen(text), NULL), 0);
	assert_int_equal(ptx_tokens_join(&t, strlen(text)), 0);
	assert_int_equal(t.n, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < t.n; i++) {
		assert_int_equal(t.list[i].len, strlen(expected[i].text));
		assert_memory_equal(ptx_token_text(&t, &t.list[i]), expected[i].text,
				    t.list[i].len);
		assert_int_equal(t.list[i].line, expected[i].line);
	}
	ptx_tokens_deinit(&t);
}

static void lexer_ends_at_a_nul(void **state) {
	struct ptx_tokens t;

	assert_int_equal(ptx_tokens_init(&t, "a\0\x01", 3, NULL), 0);
	assert_int_equal(t.n, 2);
	ptx_tokens_deinit(&t);
}

static void lexer_counts_lines(void **state) {
	static const char text[] = "a\n/*\n\n*/b\n//\n\"x\\\ny\"\nc";
	static const unsigned lines[] = {1, 4, 6, 8, 8};
	struct ptx_tokens t;

	assert_int_equal(ptx_tokens_init(&t, text, strlen(text), NULL), 0);
	assert_int_equal(t.n, 5);
	for (size_t i = 0; i < t.n; i++) {
		assert_int_equal(t.list[i].line, lines[i]);
	}
	ptx_tokens_deinit(&t);
}

static void lexer_reads_whole_numbers(void **state) {
	static const struct {
		const char *text;
		int r;
		uint64_t v;
	} cases[] = {
		{"0", 0, 0},
		{"12", 0, 12},
		{"12U", 0, 12},
		{"017", 0, 15},
		{"0b101", 0, 5},
		{"0x1fU", 0, 31},
		{"0XfF", 0, 255},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"0x10000000000000000", -ERANGE, 0},
		{"08", -ERANGE, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ptx_tokens t;
		uint64_t v = 77;

		assert_int_equal(ptx_tokens_init(&t, cases[i].text, strlen(cases[i].text), NULL),
				 0);
		assert_int_equal(t.n, 2);
		assert_int_equal(t.list[0].kind, PTX_TOKEN_INT);
		assert_int_equal(ptx_token_int(&t, &t.list[0], &v), cases[i].r);
		assert_true(v == (cases[i].r ? 77 : cases[i].v));
		ptx_tokens_deinit(&t);
	}
}

static void lexer_reads_floats(void **state) {
	static const struct {
		const char *text;
		double v;
		bool is_f32;
	} cases[] = {
		{"0f3F800000", 1.0, true},  {"0d3FF8000000000000", 1.5, false},
		{"0FBf000000", -0.5, true}, {"1.5", 1.5, false},
		{".25", 0.25, false},	    {"1e3", 1000, false},
		{"2.5E-1", 0.25, false},    {"3.", 3, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ptx_tokens t;
		bool is_f32;
		double v;

		assert_int_equal(ptx_tokens_init(&t, cases[i].text, strlen(cases[i].text), NULL),
				 0);
		assert_int_equal(t.n, 2);
		assert_int_equal(t.list[0].kind, PTX_TOKEN_FLOAT);
		assert_int_equal(ptx_token_float(&t, &t.list[0], &v, &is_f32), 0);
		assert_true(v == cases[i].v && is_f32 == cases[i].is_f32);
		ptx_tokens_deinit(&t);
	}
}

static void lexer_refuses_what_starts_no_token(void **state) {
	static const struct {
		const char *text;
		unsigned line;
	} cases[] = {
		{"a\n#", 2}, {"\n\n/* x", 3}, {"\"abc", 1},  {"\n\"abc\\\"", 2}, {"12abc", 1},
		{"0x", 1},   {"0xg", 1},      {"a \x80", 1}, {"`", 1},		 {"0b2", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ptx_tokens t = {.n = 5};
		unsigned line = 0;

		assert_int_equal(ptx_tokens_init(&t, cases[i].text, strlen(cases[i].text), &line),
				 -EINVAL);
		assert_int_equal(line, cases[i].line);
		assert_int_equal(t.n, 5);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lexer_keeps_dotted_words_whole),
		cmocka_unit_test(lexer_tells_labels_from_scopes),
		cmocka_unit_test(lexer_skips_comments_and_keeps_strings),
		cmocka_unit_test(lexer_cuts_directives_at_their_dots),
		cmocka_unit_test(lexer_joins_split_names),
		cmocka_unit_test(lexer_ends_at_a_nul),
		cmocka_unit_test(lexer_counts_lines),
		cmocka_unit_test(lexer_reads_whole_numbers),
		cmocka_unit_test(lexer_reads_floats),
		cmocka_unit_test(lexer_refuses_what_starts_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
