/*
 * fuzz-lexer.c: any bytes give tokens that lie within them, in order, or the line of the first byte
 * that is none.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/ptx/lexer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool what) {
	if (!what) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct ptx_tokens t;
	unsigned line = 0;
	uint64_t v;
	double d;
	bool f32;

	if (ptx_tokens_init(&t, (const char *)bytes, size, &line) < 0) {
		require(line > 0);
		return 0;
	}
	require(t.n > 0 && t.list[t.n - 1].kind == PTX_TOKEN_END);
	for (size_t i = 0; i < t.n; i++) {
		const struct ptx_token *k = &t.list[i];

		require((size_t)k->offset + k->len <= size);
		require(i == 0 || (k->line >= k[-1].line && k->offset >= k[-1].offset + k[-1].len));
		if (k->kind == PTX_TOKEN_INT) {
			ptx_token_int(&t, k, &v);
		} else if (k->kind == PTX_TOKEN_FLOAT) {
			ptx_token_float(&t, k, &d, &f32);
		}
	}
	require(ptx_tokens_join(&t, size) == 0);
	require(t.n > 0 && t.list[t.n - 1].kind == PTX_TOKEN_END);
	for (size_t i = 0; i < t.n; i++) {
		const struct ptx_token *k = &t.list[i];

		require((size_t)k->offset + k->len <= size);
		require(i == 0 || (k->line >= k[-1].line && k->offset >= k[-1].offset + k[-1].len));
	}
	ptx_tokens_deinit(&t);
	return 0;
}
