/*
 * test-ptx-parser.c: the parser on every construct that nvcc or people write, on text that is not
 * PTX, and on a module cut off at each of its bytes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/ptx.h"

#define HEAD ".version 9.0\n.target sm_90a, debug\n.address_size 64\n"

static struct ptx_module *parse(const char *text) {
	struct ptx_module *m = NULL;
	char error[200] = "";

	if (ptx_module_new(&m, text, strlen(text), error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
	return m;
}

static void assert_name(struct ptx_name n, const char *what) {
	assert_int_equal(n.len, strlen(what));
	assert_memory_equal(n.s, what, n.len);
}

static void parser_reads_the_module_head(void **state) {
	struct ptx_module *m = parse(HEAD
				     ".file 1 \"/a b/c.cu\", 12, 34\n.pragma \"x\";\n"
				     ".section .debug_str { a: .b8 1, 2\n .b32 .debug_info+5 }\n"
				     ".alias f, g;");

	assert_int_equal(m->version_major, 9);
	assert_int_equal(m->version_minor, 0);
	assert_int_equal(m->target_sm, 90);
	assert_name(m->target, "sm_90a");
	assert_int_equal(m->address_size, 64);
	assert_int_equal(m->n_items, 7);
	ptx_module_free(m);
}

static void parser_reads_variables(void **state) {
	struct ptx_module *m =
		parse(HEAD
		      ".visible .global .align 8 .u64 t[2] = {generic(a)+4, {b}}, u = 0xff(t);\n"
		      ".extern .shared .align 16 .b8 dyn[];\n"
		      ".const .v4 .f32 c[2][3];\n"
		      ".global .attribute(.managed) .align 4 .u32 mm;\n"
		      ".global .texref tex;\n.weak .global .b8 w;");
	const struct ptx_var *v = m->vars;

	assert_int_equal(m->n_vars, 7);
	assert_name(v[0].name, "t");
	assert_true(v[0].is_visible && v[0].is_array && v[0].has_init);
	assert_int_equal(v[0].count, 2);
	assert_int_equal(v[0].align, 8);
	assert_name(v[1].name, "u");
	assert_true(v[1].has_init && !v[1].is_array);
	assert_int_equal(v[1].init_end - v[1].init_first, 4);
	assert_true(v[2].is_extern && v[2].is_array && v[2].count == 0);
	assert_int_equal(v[2].space, PTX_SPACE_SHARED);
	assert_int_equal(v[3].vector, 4);
	assert_int_equal(v[3].count, 6);
	assert_int_equal(v[3].align, 16);
	assert_name(v[4].name, "mm");
	assert_int_equal(v[5].space, PTX_SPACE_TEX);
	assert_true(v[6].is_weak);
	ptx_module_free(m);
}

static const char kernel[] = HEAD
	".extern .func (.param .b32 r) ext (.param .b64 a);\n"
	".func (.param .align 16 .b8 ret[16]) dev(.param .u64 .ptr .global .align 4 x, .reg .b32 "
	"y) "
	".noreturn\n;\n"
	".visible .entry k(.param .align 8 .b8 p[24], .param .u64 q)\n"
	".maxntid 256, 2\n.minnctapersm 2\n.pragma \"nounroll\";\n{\n"
	".reg .pred %p<3>; .reg .b32 %r<10>, a, b<3>; .reg .b64 %rd<4>;\n"
	".local .align 8 .b8 __local_depot0[16];\n"
	".shared .align 4 .b8 s[4][8];\n"
	".loc 1 2 3\n"
	".loc 1 2 3, function_name $L__info_string0 + 23, inlined_at 1 2 3\n"
	"mov.u32 %r1, %tid.x; mov.b32 a, b2; mov.u64 %rd1, s+4;\n"
	"$L1: @!%p1 bra.uni $L1;\n"
	"ld.param.u64 %rd2, [p+8]; st.global.v2.u32 [%rd2+-4], {%r1, _};\n"
	"setp.lt.and.s32 %p1|%p2, %r1, -5, !%p0;\n"
	"add.f32 %r2, 0f3F800000, -1.5;\n"
	"{ .reg .b32 k; .param .b32 param0; .param .b32 retval0; mov.b32 k, 1;\n"
	"pr: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;\n"
	"call (retval0), %rd1, (param0), pr; }\n"
	"call.uni k; tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [tx, {%r1, %r2}];\n"
	"ts: .branchtargets $L1, $L2; $L2: brx.idx %r1, ts; ld.u32 %r1, [16]; ;\n"
	"mov.b32 k, WARP_SZ; ret; }\n";

static const struct ptx_stmt *find(const struct ptx_module *m, const char *opcode, unsigned nth) {
	for (size_t i = 0; i < m->n_stmts; i++) {
		if (m->stmts[i].kind == PTX_STMT_INSN && ptx_name_is(m->stmts[i].opcode, opcode) &&
		    nth-- == 0) {
			return &m->stmts[i];
		}
	}
	fail_msg("no %s", opcode);
	return NULL;
}

static void parser_reads_functions(void **state) {
	struct ptx_module *m = parse(kernel);
	const struct ptx_func *f;

	assert_int_equal(m->n_funcs, 3);
	f = ptx_module_func(m, (struct ptx_name){"dev", 3});
	assert_true(f && f->noreturn && !f->has_body && !f->is_entry);
	assert_int_equal(f->n_rets, 1);
	assert_int_equal(f->n_params, 2);
	f = ptx_module_func(m, (struct ptx_name){"k", 1});
	assert_true(f && f->is_entry && f->is_visible && f->has_body);
	assert_int_equal(f->maxntid[0], 256);
	assert_int_equal(f->maxntid[1], 2);
	assert_int_equal(f->maxntid[2], 1);
	assert_int_equal(f->reqntid[0], 0);
	assert_int_equal(m->vars[f->params].align, 8);
	assert_int_equal(m->vars[f->params].count, 24);
	assert_null(ptx_module_func(m, (struct ptx_name){"none", 4}));
	ptx_module_free(m);
}

static void parser_reads_operands(void **state) {
	struct ptx_module *m = parse(kernel);
	const struct ptx_operand *o;

	o = &m->operands[find(m, "mov.b32", 0)->operands];
	assert_int_equal(o[0].kind, PTX_OPERAND_REG);
	assert_int_equal(o[1].kind, PTX_OPERAND_REG);
	assert_name(o[1].name, "b2");
	o = &m->operands[find(m, "mov.u64", 0)->operands];
	assert_int_equal(o[1].kind, PTX_OPERAND_SYMBOL);
	assert_int_equal(o[1].value, 4);
	o = &m->operands[find(m, "ld.param.u64", 0)->operands];
	assert_int_equal(o[1].kind, PTX_OPERAND_ADDR);
	assert_true(!o[1].base_is_reg && o[1].value == 8);
	o = &m->operands[find(m, "st.global.v2.u32", 0)->operands];
	assert_true(o[0].base_is_reg && o[0].value == -4);
	assert_int_equal(o[1].kind, PTX_OPERAND_VECTOR);
	assert_int_equal(o[1].n_elements, 2);
	assert_int_equal(m->operands[o[1].elements + 1].kind, PTX_OPERAND_SINK);
	o = &m->operands[find(m, "setp.lt.and.s32", 0)->operands];
	assert_name(o[0].name, "%p1");
	assert_name(o[0].pair, "%p2");
	assert_int_equal(o[2].value, -5);
	assert_true(o[3].negated);
	o = &m->operands[find(m, "add.f32", 0)->operands];
	assert_true(o[1].is_f32 && o[1].fvalue == 1.0);
	assert_true(!o[2].is_f32 && o[2].fvalue == -1.5);
	o = &m->operands[find(m, "tex.2d.v4.f32.f32", 0)->operands];
	assert_int_equal(o[1].kind, PTX_OPERAND_OTHER);
	o = &m->operands[find(m, "ld.u32", 0)->operands];
	assert_true(o[1].kind == PTX_OPERAND_ADDR && o[1].name.len == 0 && o[1].value == 16);
	ptx_module_free(m);
}

static void parser_reads_calls_and_tables(void **state) {
	struct ptx_module *m = parse(kernel);
	const struct ptx_stmt *s = find(m, "call", 0);
	const struct ptx_operand *o = &m->operands[s->operands];
	unsigned tables = 0;

	assert_int_equal(s->n_operands, 4);
	assert_int_equal(o[0].kind, PTX_OPERAND_LIST);
	assert_int_equal(o[1].kind, PTX_OPERAND_REG);
	assert_name(m->operands[o[2].elements].name, "param0");
	assert_name(o[3].name, "pr");
	for (size_t i = 0; i < m->n_stmts; i++) {
		if (m->stmts[i].kind == PTX_STMT_TABLE) {
			tables++;
			if (ptx_name_is(m->stmts[i].opcode, "ts")) {
				assert_int_equal(m->stmts[i].n_names, 2);
				assert_name(m->operands[m->stmts[i].names + 1].name, "$L2");
			}
		}
	}
	assert_int_equal(tables, 2);
	ptx_module_free(m);
}

static void parser_keeps_scopes_apart(void **state) {
	struct ptx_module *m = parse(kernel);

	/* "k" is a register inside the braces and the kernel's own name outside of them */
	assert_int_equal(m->operands[find(m, "mov.b32", 1)->operands].kind, PTX_OPERAND_REG);
	assert_int_equal(m->operands[find(m, "mov.b32", 2)->operands].kind, PTX_OPERAND_SYMBOL);
	assert_int_equal(m->operands[find(m, "mov.b32", 2)->operands + 1].value, 32);
	ptx_module_free(m);
}

static void parser_says_where_and_what(void **state) {
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "line 1: expected .version, not the end of the text"},
		{"\x7f"
		 "ELF",
		 "line 1: expected PTX, not these bytes, or a comment or string has no end"},
		{HEAD "hello",
		 "line 4: expected a declaration, a function or a directive, not 'hello'"},
		{HEAD ".entry k {", "line 4: expected a name, not the end of the text"},
		{HEAD ".entry k { }}",
		 "line 4: expected a declaration, a function or a directive, not '}'"},
		{HEAD ".entry k { add %r1, ; }",
		 "line 4: expected an operand or a semicolon, not ','"},
		{HEAD ".entry k { add %r1 }",
		 "line 4: expected a semicolon, not the end of the text"},
		{HEAD ".entry k { mov {a; }", "line 4: expected an operand, not '{'"},
		{HEAD ".entry k { mov a]; }",
		 "line 4: expected an operand or a semicolon, not ']'"},
		{HEAD ".global .b8 x[",
		 "line 4: expected a whole number in range, not the end of the text"},
		{HEAD ".global .b8 x[99999999][9999999999999];",
		 "line 4: expected a smaller array, not '9999999999999'"},
		{HEAD ".global .align 3 .b8 x;", "line 4: expected a power of two, not '3'"},
		{HEAD ".global .b8 x = {1;",
		 "line 4: expected the end of the initialiser, not ';'"},
		{HEAD ".section .x {",
		 "line 4: expected a closing bracket, not the end of the text"},
		{".version nine", "line 1: expected a version number, not 'nine'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ptx_module *m = NULL;
		char error[200] = "";

		assert_int_equal(ptx_module_new(&m, cases[i].text, strlen(cases[i].text), error,
						sizeof(error)),
				 -EINVAL);
		assert_string_equal(error, cases[i].error);
		assert_null(m);
	}
}

static void parser_answers_for_every_truncation(void **state) {
	size_t n = strlen(kernel), whole = 0;

	for (size_t i = 0; i <= n; i++) {
		char *copy = malloc(i + 1); /* exact, so that a read beyond the end is seen */
		struct ptx_module *m = NULL;

		assert_non_null(copy);
		memcpy(copy, kernel, i);
		if (ptx_module_new(&m, copy, i, NULL, 0) == 0) {
			whole++;
		}
		ptx_module_free(m);
		free(copy);
	}
	assert_true(whole >= 2 && whole < n / 2);
}

/* Nesting is data, not recursion: depth costs memory, never the stack. */
static void parser_takes_any_depth(void **state) {
	enum { DEPTH = 200000 };
	size_t head = strlen(HEAD ".entry k {");
	char *text = malloc(head + 2 * DEPTH + 2);
	struct ptx_module *m = NULL;

	assert_non_null(text);
	memcpy(text, HEAD ".entry k {", head);
	memset(text + head, '{', DEPTH);
	memset(text + head + DEPTH, '}', DEPTH + 1);
	assert_int_equal(ptx_module_new(&m, text, head + 2 * DEPTH + 1, NULL, 0), 0);
	assert_int_equal(m->n_stmts, 2 * DEPTH);
	ptx_module_free(m);
	m = NULL;
	memset(text + head, '[', 2 * DEPTH);
	assert_int_equal(ptx_module_new(&m, text, head + 2 * DEPTH, NULL, 0), -EINVAL);
	free(text);
}

static void parser_splits_opcodes(void **state) {
	struct ptx_name op = {"ld.global.u32", 13};

	assert_name(ptx_opcode_part(op, 0), "ld");
	assert_name(ptx_opcode_part(op, 2), "u32");
	assert_int_equal(ptx_opcode_part(op, 3).len, 0);
	assert_true(ptx_opcode_has(op, "global"));
	assert_false(ptx_opcode_has(op, "ld"));
	assert_false(ptx_opcode_has(op, "glob"));
	assert_int_equal(ptx_type_bytes(ptx_type_from_name((struct ptx_name){".bf16x2", 7})), 4);
	assert_int_equal(ptx_type_from_name((struct ptx_name){"u3", 2}), PTX_TYPE_NONE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parser_reads_the_module_head),
		cmocka_unit_test(parser_reads_variables),
		cmocka_unit_test(parser_reads_functions),
		cmocka_unit_test(parser_reads_operands),
		cmocka_unit_test(parser_reads_calls_and_tables),
		cmocka_unit_test(parser_keeps_scopes_apart),
		cmocka_unit_test(parser_says_where_and_what),
		cmocka_unit_test(parser_answers_for_every_truncation),
		cmocka_unit_test(parser_takes_any_depth),
		cmocka_unit_test(parser_splits_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
