/*
 * lexer.h: PTX text to tokens.
 *
 * Tokens point into the text; nothing is copied. Names keep their dots: "ld.global.u32", "%tid.x",
 * "$L__BB0_2" and "%r1" are one token each. Directives are cut at theirs: ".global.u32" are two
 * tokens, as with a blank between. ("::" is part of a word too: "cp.async.bulk.shared::cluster".)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind {
	PTX_TOKEN_END,
	PTX_TOKEN_WORD,	  /* opcode, directive (.reg), register (%r1), label, name */
	PTX_TOKEN_INT,	  /* 12, 0x1F, 017, 0b1, with an optional U */
	PTX_TOKEN_FLOAT,  /* 1.5, 0f3F800000, 0d3FF0000000000000 */
	PTX_TOKEN_STRING, /* "...": text without the quotes, escapes as written */
	PTX_TOKEN_PUNCT,  /* one character: { } ( ) [ ] < > , ; : = + - * / @ ! | & ^ ~ % ? */
};

struct ptx_token {
	enum ptx_token_kind kind;
	uint32_t line; /* from 1 */
	uint32_t offset; /* into the text */
	uint32_t len;
};

struct ptx_tokens {
	const char *text; /* borrowed, or joined */
	char *joined;	  /* owned: the text that ptx_tokens_join() made, or NULL */
	struct ptx_token *list; /* owned; ends with PTX_TOKEN_END */
	size_t n;
};

/* Comments and white space are skipped; a NUL ends the text. Return: 0; -EINVAL with @ret_line (which
 * may be NULL) at a byte that starts no token or a comment or string that does not end; -E2BIG above
 * 256 MiB; -ENOMEM. */
int ptx_tokens_init(struct ptx_tokens *t, const char *text, size_t size, unsigned *ret_line);
void ptx_tokens_deinit(struct ptx_tokens *t);

/* Makes one token of each name in an instruction that white space or comments split in front of a
 * dot: "ld .global .u32", "%tid .x". Each token keeps its line. @size: as for ptx_tokens_init().
 * Return: 0, -ENOMEM. */
int ptx_tokens_join(struct ptx_tokens *t, size_t size);

static inline const char *ptx_token_text(const struct ptx_tokens *t, const struct ptx_token *k) {
	return t->text + k->offset;
}
bool ptx_token_is(const struct ptx_tokens *t, const struct ptx_token *k, const char *what);

/* Value of a PTX_TOKEN_INT as 64 bits. Return: 0, -ERANGE. */
int ptx_token_int(const struct ptx_tokens *t, const struct ptx_token *k, uint64_t *ret);

/* Value of a PTX_TOKEN_FLOAT as a double; 0f and 0d forms exactly (but for the payload of an f32
 * NaN). @ret_is_f32: it was 0f. Return: 0; -ERANGE for one of more than 127 characters; -ENOMEM. */
int ptx_token_float(const struct ptx_tokens *t, const struct ptx_token *k, double *ret,
		    bool *ret_is_f32);
