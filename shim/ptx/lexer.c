/*
 * lexer.c: PTX text to tokens, in one pass over the bytes.
 *
 * Decides nothing about meaning: which words are opcodes, registers or labels is the parser's
 * business. A NUL ends the text, as it does for the driver, which is given no length.
 */
#include "shim/ptx/lexer.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Offsets are 32 bits wide; no program's PTX comes near this. */
#define LEXER_TEXT_MAX (256u * 1024 * 1024)

/* Longest numeral that strtod() is given: a copy, because the text has no end mark. */
#define LEXER_NUMERAL_MAX 128

enum char_class {
	CHAR_OTHER,
	CHAR_SPACE,
	CHAR_WORD, /* starts or continues a word */
	CHAR_DIGIT,
	CHAR_PUNCT,
	CHAR_QUOTE,
};

static const uint8_t classes[256] = {
	[' '] = CHAR_SPACE,	    ['\t'] = CHAR_SPACE,       ['\n'] = CHAR_SPACE,
	['\r'] = CHAR_SPACE,	    ['\v'] = CHAR_SPACE,       ['\f'] = CHAR_SPACE,
	['a' ... 'z'] = CHAR_WORD,  ['A' ... 'Z'] = CHAR_WORD, ['_'] = CHAR_WORD,
	['$'] = CHAR_WORD,	    ['.'] = CHAR_WORD,	       ['%'] = CHAR_WORD,
	['0' ... '9'] = CHAR_DIGIT, ['"'] = CHAR_QUOTE,	       ['{'] = CHAR_PUNCT,
	['}'] = CHAR_PUNCT,	    ['('] = CHAR_PUNCT,	       [')'] = CHAR_PUNCT,
	['['] = CHAR_PUNCT,	    [']'] = CHAR_PUNCT,	       ['<'] = CHAR_PUNCT,
	['>'] = CHAR_PUNCT,	    [','] = CHAR_PUNCT,	       [';'] = CHAR_PUNCT,
	[':'] = CHAR_PUNCT,	    ['='] = CHAR_PUNCT,	       ['+'] = CHAR_PUNCT,
	['-'] = CHAR_PUNCT,	    ['*'] = CHAR_PUNCT,	       ['/'] = CHAR_PUNCT,
	['@'] = CHAR_PUNCT,	    ['!'] = CHAR_PUNCT,	       ['|'] = CHAR_PUNCT,
	['&'] = CHAR_PUNCT,	    ['^'] = CHAR_PUNCT,	       ['~'] = CHAR_PUNCT,
	['?'] = CHAR_PUNCT,
};

struct lexer {
	const char *text;
	uint32_t size, at, line;
	struct ptx_tokens *out;
	size_t capacity;
};

/* The byte @ahead of the current one; NUL beyond the end. */
static unsigned char peek(const struct lexer *x, uint32_t ahead) {
	return x->size - x->at > ahead ? (unsigned char)x->text[x->at + ahead] : 0;
}

static bool is_word(unsigned char c) {
	return c != '%' && (classes[c] == CHAR_WORD || classes[c] == CHAR_DIGIT);
}

static bool is_decimal(unsigned char c) {
	return classes[c] == CHAR_DIGIT;
}

static int hex_value(unsigned char c) {
	if (is_decimal(c)) {
		return c - '0';
	}
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int add(struct lexer *x, enum ptx_token_kind kind, uint32_t offset, uint32_t len,
	       uint32_t line) {
	struct ptx_tokens *t = x->out;

	if (t->n == x->capacity) {
		size_t capacity = x->capacity ? x->capacity * 2 : 256;
		struct ptx_token *list = reallocarray(t->list, capacity, sizeof(*list));

		if (!list) {
			return -ENOMEM;
		}
		t->list = list;
		x->capacity = capacity;
	}
	t->list[t->n++] =
		(struct ptx_token){.kind = kind, .line = line, .offset = offset, .len = len};
	return 0;
}

/* White space and comments. Return: 0; -EINVAL for a comment without an end. */
static int skip_blanks(struct lexer *x) {
	while (x->at < x->size) {
		unsigned char c = peek(x, 0);

		if (classes[c] == CHAR_SPACE) {
			x->line += c == '\n';
			x->at++;
		} else if (c == '/' && peek(x, 1) == '/') {
			while (x->at < x->size && peek(x, 0) != '\n') {
				x->at++;
			}
		} else if (c == '/' && peek(x, 1) == '*') {
			uint32_t at, line = x->line;

			for (at = x->at + 2; at + 1 < x->size; at++) {
				if (x->text[at] == '*' && x->text[at + 1] == '/') {
					break;
				}
				line += x->text[at] == '\n';
			}
			if (at + 1 >= x->size) {
				return -EINVAL;
			}
			x->at = at + 2;
			x->line = line;
		} else {
			break;
		}
	}
	return 0;
}

/* A '%' alone is the operator of constant expressions; one before a letter starts a register. */
static int lex_word(struct lexer *x) {
	uint32_t start = x->at;
	unsigned char c = peek(x, 0);
	bool directive = c == '.';

	x->at++;
	if (c == '%' && !is_word(peek(x, 0))) {
		return add(x, PTX_TOKEN_PUNCT, start, 1, x->line);
	}
	for (;;) {
		if (is_word(peek(x, 0)) && !(directive && peek(x, 0) == '.')) {
			x->at++;
		} else if (peek(x, 0) == ':' && peek(x, 1) == ':' && is_word(peek(x, 2))) {
			x->at += 2;
		} else {
			break;
		}
	}
	return add(x, PTX_TOKEN_WORD, start, x->at - start, x->line);
}

static int lex_string(struct lexer *x) {
	uint32_t start = x->at + 1, line = x->line;

	for (uint32_t at = start; at < x->size; at++) {
		if (x->text[at] == '\\') {
			at++; /* the escaped character may be a quote */
			x->line += at < x->size && x->text[at] == '\n';
		} else if (x->text[at] == '"') {
			x->at = at + 1;
			return add(x, PTX_TOKEN_STRING, start, at - start, line);
		} else {
			x->line += x->text[at] == '\n';
		}
	}
	x->line = line;
	return -EINVAL;
}

/* 0f and 0d with exactly 8 and 16 hexadecimal digits. */
static bool lex_exact_float(struct lexer *x) {
	unsigned char c = peek(x, 1) | 0x20;
	uint32_t n = c == 'f' ? 8 : c == 'd' ? 16 : 0;

	if (peek(x, 0) != '0' || n == 0) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (hex_value(peek(x, 2 + i)) < 0) {
			return false;
		}
	}
	x->at += 2 + n;
	return true;
}

static void skip_digits(struct lexer *x, int base) {
	int v;

	while ((v = hex_value(peek(x, 0))) >= 0 && v < base) {
		x->at++;
	}
}

static bool is_exponent(const struct lexer *x) {
	uint32_t sign = peek(x, 1) == '+' || peek(x, 1) == '-';

	return (peek(x, 0) | 0x20) == 'e' && is_decimal(peek(x, 1 + sign));
}

static int lex_number(struct lexer *x) {
	enum ptx_token_kind kind = PTX_TOKEN_INT;
	uint32_t start = x->at;
	unsigned char prefix = peek(x, 1) | 0x20;

	if (lex_exact_float(x)) {
		kind = PTX_TOKEN_FLOAT;
	} else if (peek(x, 0) == '0' && (prefix == 'x' || prefix == 'b')) {
		x->at += 2;
		skip_digits(x, prefix == 'x' ? 16 : 2);
		if (x->at == start + 2) {
			return -EINVAL;
		}
	} else {
		skip_digits(x, 10);
		if (peek(x, 0) == '.') {
			kind = PTX_TOKEN_FLOAT;
			x->at++;
			skip_digits(x, 10);
		}
		if (is_exponent(x)) {
			kind = PTX_TOKEN_FLOAT;
			x->at += 2;
			skip_digits(x, 10);
		}
	}
	if (kind == PTX_TOKEN_INT && (peek(x, 0) | 0x20) == 'u') {
		x->at++;
	}
	if (is_word(peek(x, 0)) && peek(x, 0) != '.') {
		return -EINVAL; /* 12abc */
	}
	return add(x, kind, start, x->at - start, x->line);
}

static int lex_token(struct lexer *x) {
	unsigned char c = peek(x, 0);

	switch (classes[c]) {
	case CHAR_WORD:
		if (c == '.' && is_decimal(peek(x, 1))) {
			return lex_number(x);
		}
		return lex_word(x);
	case CHAR_DIGIT:
		return lex_number(x);
	case CHAR_QUOTE:
		return lex_string(x);
	case CHAR_PUNCT:
		x->at++;
		return add(x, PTX_TOKEN_PUNCT, x->at - 1, 1, x->line);
	default:
		return -EINVAL;
	}
}

int ptx_tokens_init(struct ptx_tokens *t, const char *text, size_t size, unsigned *ret_line) {
	struct ptx_tokens out = {.text = text};
	struct lexer x = {.text = text, .line = 1, .out = &out};
	int r;

	size = strnlen(text, size);
	if (size > LEXER_TEXT_MAX) {
		return -E2BIG;
	}
	x.size = (uint32_t)size;
	do {
		r = skip_blanks(&x);
		if (r == 0) {
			r = x.at < x.size ? lex_token(&x) : add(&x, PTX_TOKEN_END, x.at, 0, x.line);
		}
		if (r < 0) {
			ptx_tokens_deinit(&out);
			if (r == -EINVAL && ret_line) {
				*ret_line = x.line;
			}
			return r;
		}
	} while (out.list[out.n - 1].kind != PTX_TOKEN_END);
	*t = out;
	return 0;
}

void ptx_tokens_deinit(struct ptx_tokens *t) {
	free(t->list);
	free(t->joined);
	*t = (struct ptx_tokens){0};
}

bool ptx_token_is(const struct ptx_tokens *t, const struct ptx_token *k, const char *what) {
	return strlen(what) == k->len && memcmp(ptx_token_text(t, k), what, k->len) == 0 &&
	       k->kind != PTX_TOKEN_STRING && k->kind != PTX_TOKEN_END;
}

int ptx_token_int(const struct ptx_tokens *t, const struct ptx_token *k, uint64_t *ret) {
	const char *s = ptx_token_text(t, k), *end = s + k->len;
	uint64_t base = 10, v = 0;

	if ((end[-1] | 0x20) == 'u') {
		end--;
	}
	if (end - s > 1 && s[0] == '0') {
		base = (s[1] | 0x20) == 'x' ? 16 : (s[1] | 0x20) == 'b' ? 2 : 8;
		s += base == 8 ? 1 : 2;
	}
	for (; s < end; s++) {
		int digit = hex_value((unsigned char)*s);

		if (digit < 0 || (uint64_t)digit >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v)) {
			return -ERANGE;
		}
	}
	*ret = v;
	return 0;
}

int ptx_token_float(const struct ptx_tokens *t, const struct ptx_token *k, double *ret,
		    bool *ret_is_f32) {
	const char *s = ptx_token_text(t, k);
	char copy[LEXER_NUMERAL_MAX], *end;
	locale_t c_locale;
	unsigned char prefix = k->len > 1 && s[0] == '0' ? s[1] | 0x20 : 0;
	uint64_t bits = 0;
	double v;

	if (prefix == 'f' || prefix == 'd') {
		for (uint32_t i = 2; i < k->len; i++) {
			bits = bits << 4 | (uint64_t)hex_value((unsigned char)s[i]);
		}
		if (prefix == 'f') {
			uint32_t narrow = (uint32_t)bits;
			float f;

			memcpy(&f, &narrow, sizeof(f));
			v = (double)f;
		} else {
			memcpy(&v, &bits, sizeof(v));
		}
	} else {
		if (k->len >= sizeof(copy)) {
			return -ERANGE;
		}
		memcpy(copy, s, k->len);
		copy[k->len] = '\0';
		c_locale = newlocale(LC_ALL_MASK, "C",
				     (locale_t)0); /* the host program may have its own */
		if (c_locale == (locale_t)0) {
			return -ENOMEM;
		}
		v = strtod_l(copy, &end, c_locale);
		freelocale(c_locale);
		if (*end != '\0') {
			return -ERANGE;
		}
	}
	*ret = v;
	*ret_is_f32 = prefix == 'f';
	return 0;
}
