/*
 * join.c: names that white space or comments split in front of a dot.
 *
 * ptxas takes "ld .param .u64" for "ld.param.u64" and "%ctaid .x" for "%ctaid.x". Everything behind
 * the lexer wants a name in one piece, so where there are such names, the tokens move to a copy of
 * the text that has them in one piece, with blanks behind.
 */
#include "shim/ptx/lexer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct joiner {
	struct ptx_tokens *t;
	size_t size;  /* of the text */
	size_t n;     /* tokens that are left */
	bool start;   /* a statement starts here */
	bool is_insn; /* it is an instruction, not a directive */
};

static bool is_dotted(const struct ptx_tokens *t, size_t i) {
	return t->list[i].kind == PTX_TOKEN_WORD && t->text[t->list[i].offset] == '.';
}

static char punct(const struct ptx_tokens *t, size_t i) {
	return t->list[i].kind == PTX_TOKEN_PUNCT ? t->text[t->list[i].offset] : '\0';
}

/*
 * Behind ".loc 1 2 3, function_name $L + 4, inlined_at 1 2 3", the one directive in a function that
 * no semicolon ends.
 */
static size_t skip_loc(const struct ptx_tokens *t, size_t i) {
	bool name = false;

	for (i++;; i++) {
		if (t->list[i].kind == PTX_TOKEN_WORD) {
			bool keyword = ptx_token_is(t, &t->list[i], "function_name") ||
				       ptx_token_is(t, &t->list[i], "inlined_at");

			if (!keyword && !name) {
				return i;
			}
			name = keyword && ptx_token_is(t, &t->list[i], "function_name");
		} else if (t->list[i].kind != PTX_TOKEN_INT && punct(t, i) != ',' &&
			   punct(t, i) != '+') {
			return i;
		}
	}
}

/* Puts the dotted words behind token @i at its end. Return: behind the last of them; 0: -ENOMEM. */
static size_t join(struct joiner *x, size_t i) {
	struct ptx_tokens *t = x->t;
	struct ptx_token *k = &t->list[i];
	uint32_t end = k->offset + k->len, last = end;

	if (!t->joined) {
		t->joined = malloc(x->size + 1);
		if (!t->joined) {
			return 0;
		}
		memcpy(t->joined, t->text, x->size);
		t->joined[x->size] = '\0';
		t->text = t->joined;
	}
	for (i++; is_dotted(t, i); i++) {
		memmove(t->joined + end, t->joined + t->list[i].offset, t->list[i].len);
		end += t->list[i].len;
		last = t->list[i].offset + t->list[i].len;
	}
	memset(t->joined + end, ' ', last - end);
	k->len = end - k->offset;
	return i;
}

/* Keeps token @i. Return: the one to look at next; 0: -ENOMEM. */
static size_t step(struct joiner *x, size_t i) {
	struct ptx_tokens *t = x->t;
	char c = punct(t, i);
	size_t next = i + 1;

	if (c != '\0') {
		x->start |= strchr(";{}:", c) != NULL;
	} else if (x->start && ptx_token_is(t, &t->list[i], ".loc")) {
		next = skip_loc(t, i);
	} else if (t->list[i].kind == PTX_TOKEN_WORD) {
		x->is_insn = x->start ? !is_dotted(t, i) : x->is_insn;
		x->start = false;
		if (x->is_insn && is_dotted(t, next)) {
			next = join(x, i);
			t->list[x->n++] = t->list[i];
			return next;
		}
	}
	memmove(&t->list[x->n], &t->list[i], (next - i) * sizeof(*t->list));
	x->n += next - i;
	return next;
}

int ptx_tokens_join(struct ptx_tokens *t, size_t size) {
	struct joiner x = {.t = t, .size = strnlen(t->text, size), .start = true};
	size_t i = 0;

	while (t->list[i].kind != PTX_TOKEN_END) {
		i = step(&x, i);
		if (i == 0) {
			return -ENOMEM;
		}
	}
	t->list[x.n++] = t->list[i];
	t->n = x.n;
	return 0;
}
