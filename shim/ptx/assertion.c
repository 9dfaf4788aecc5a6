/*
 * assertion.c: see assertion.h.
 */
#include "shim/ptx/assertion.h"

#include <string.h>

#include "shim/ptx/opcodes.h"

/* Threads that can be told apart, and bytes for the name that each gives its function. All others
 * give the function's own name. */
#define TEXTS	   64
#define TEXT_BYTES 512
/* Bytes of the function's name that are kept: 64 are more than what is added to it. */
#define NAME_BYTES (TEXT_BYTES - 64)

bool assertion_is_call(const struct ptx_module *m, const struct ptx_stmt *s) {
	static const unsigned bytes[] = {8, 8, 4, 8, 8}; /* message, file, line, function, size */
	const struct ptx_operand *o = &m->operands[s->operands];
	const struct ptx_func *f;

	if (s->op->class != OPCODE_CALL || s->n_operands != 2 || o[1].kind != PTX_OPERAND_LIST ||
	    o[1].n_elements != 5 || !ptx_name_is(o[0].name, "__assertfail")) {
		return false;
	}
	f = ptx_module_func(m, o[0].name);
	if (!f || f->has_body || f->n_params != 5 || f->n_rets != 0) {
		return false;
	}
	for (uint32_t i = 0; i < 5; i++) {
		const struct ptx_var *v = &m->vars[f->params + i];

		if (v->is_array || ptx_type_bytes(v->type) != bytes[i]) {
			return false;
		}
	}
	return true;
}

/* @s behind the text so far, without its end. */
static void emit_string(struct text *out, const char *s) {
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		text_addf(out, "\tmov.u32 \td, %d;\n\tst.global.u8 \t[to+%zu], d;\n", s[i], i);
	}
	text_addf(out, "\tadd.u64 \tto, to, %zu;\n", n);
}

/* A text of its own for this thread: the function's name, up to NAME_BYTES of it. */
static void emit_copy(struct text *out) {
	text_addf(out,
		  "\tatom.relaxed.gpu.global.add.u32 \tk, [sbeet_assert_n], 1;\n"
		  "\tsetp.ge.u32 \tp, k, %d;\n"
		  "\t@p bra \t$sbeet_assert_call;\n"
		  "\tmul.wide.u32 \tto, k, %d;\n"
		  "\tmov.u64 \tend, sbeet_assert_texts;\n"
		  "\tadd.u64 \tto, to, end;\n"
		  "\tmov.u64 \tfrom, name;\n"
		  "\tcvta.global.u64 \tname, to;\n"
		  "\tadd.u64 \tend, to, %d;\n"
		  "$sbeet_assert_copy:\n"
		  "\tld.u8 \td, [from];\n"
		  "\tsetp.eq.u32 \tp, d, 0;\n"
		  "\t@p bra \t$sbeet_assert_block;\n"
		  "\tst.global.u8 \t[to], d;\n"
		  "\tadd.u64 \tfrom, from, 1;\n"
		  "\tadd.u64 \tto, to, 1;\n"
		  "\tsetp.lt.u64 \tp, to, end;\n"
		  "\t@p bra \t$sbeet_assert_copy;\n"
		  "$sbeet_assert_block:\n",
		  TEXTS, TEXT_BYTES, NAME_BYTES);
}

/* Three numbers, decimal. */
static void emit_numbers(struct text *out) {
	emit_string(out, ", block [");
	text_adds(out,
		  "\tmov.u32 \tk, 0;\n"
		  "\tld.param.u32 \tv, [x];\n"
		  "$sbeet_assert_number:\n"
		  "\tmov.u32 \tq, 1000000000;\n"
		  "$sbeet_assert_skip:\n"
		  "\tsetp.ge.u32 \tp, v, q;\n"
		  "\t@p bra \t$sbeet_assert_digit;\n"
		  "\tsetp.eq.u32 \tp, q, 1;\n"
		  "\t@p bra \t$sbeet_assert_digit;\n"
		  "\tdiv.u32 \tq, q, 10;\n"
		  "\tbra \t$sbeet_assert_skip;\n"
		  "$sbeet_assert_digit:\n"
		  "\tdiv.u32 \td, v, q;\n"
		  "\trem.u32 \tv, v, q;\n"
		  "\tadd.u32 \td, d, 48;\n"
		  "\tst.global.u8 \t[to], d;\n"
		  "\tadd.u64 \tto, to, 1;\n"
		  "\tdiv.u32 \tq, q, 10;\n"
		  "\tsetp.ne.u32 \tp, q, 0;\n"
		  "\t@p bra \t$sbeet_assert_digit;\n"
		  "\tadd.u32 \tk, k, 1;\n"
		  "\tsetp.eq.u32 \tp, k, 3;\n"
		  "\t@p bra \t$sbeet_assert_end;\n"
		  "\tld.param.u32 \tv, [z];\n"
		  "\tsetp.eq.u32 \tp, k, 1;\n"
		  "\t@p ld.param.u32 \tv, [y];\n");
	emit_string(out, ",");
	text_adds(out,
		  "\tbra \t$sbeet_assert_number;\n"
		  "$sbeet_assert_end:\n");
	emit_string(out, "]");
	text_adds(out,
		  "\tmov.u32 \td, 0;\n"
		  "\tst.global.u8 \t[to], d;\n");
}

void assertion_emit(struct text *out) {
	text_addf(out,
		  ".global .align 4 .u32 sbeet_assert_n;\n"
		  ".global .align 1 .b8 sbeet_assert_texts[%d];\n"
		  ".func " ASSERTION_FUNCTION
		  "(\n"
		  "\t.param .b64 message,\n\t.param .b64 file,\n\t.param .b32 line,\n"
		  "\t.param .b64 function,\n\t.param .b64 size,\n"
		  "\t.param .b32 x,\n\t.param .b32 y,\n\t.param .b32 z\n)\n{\n"
		  "\t.reg .pred \tp;\n"
		  "\t.reg .b32 \tk, v, q, d, number;\n"
		  "\t.reg .b64 \tname, from, to, end, text, path, bytes;\n"
		  "\tld.param.u64 \tname, [function];\n",
		  TEXTS * TEXT_BYTES);
	emit_copy(out);
	emit_numbers(out);
	text_adds(out,
		  "$sbeet_assert_call:\n"
		  "\tld.param.u64 \ttext, [message];\n"
		  "\tld.param.u64 \tpath, [file];\n"
		  "\tld.param.u32 \tnumber, [line];\n"
		  "\tld.param.u64 \tbytes, [size];\n"
		  "\t{\n"
		  "\t.param .b64 a;\n\t.param .b64 b;\n\t.param .b32 c;\n"
		  "\t.param .b64 e;\n\t.param .b64 f;\n"
		  "\tst.param.b64 \t[a], text;\n"
		  "\tst.param.b64 \t[b], path;\n"
		  "\tst.param.b32 \t[c], number;\n"
		  "\tst.param.b64 \t[e], name;\n"
		  "\tst.param.b64 \t[f], bytes;\n"
		  "\tcall.uni \t__assertfail, (a, b, c, e, f);\n"
		  "\t}\n"
		  "\tret;\n}\n");
}
