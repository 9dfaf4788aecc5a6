/*
 * interp-symbols.c: names to what they mean, by scope, for the decoder.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdlib.h>

int decode_grow(void *array, size_t n, size_t *cap, size_t size) {
	void **where = array, *p;
	size_t more;

	if (n < *cap) {
		return 0;
	}
	more = *cap ? *cap * 2 : 16;
	p = realloc(*where, more * size);
	if (!p) {
		return -ENOMEM;
	}
	*where = p;
	*cap = more;
	return 0;
}

static size_t symbol_hash(struct ptx_name name, uint32_t scope) {
	uint64_t h = 0xcbf29ce484222325 ^ scope;

	for (uint32_t i = 0; i < name.len; i++) {
		h = (h ^ (uint8_t)name.s[i]) * 0x100000001b3;
	}
	return (size_t)(h ^ h >> 29);
}

static int symbols_rehash(struct symbols *s) {
	size_t size = s->hash_size ? s->hash_size * 2 : 64;
	uint32_t *hash = calloc(size, sizeof(*hash));

	if (!hash) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n; i++) {
		size_t at = symbol_hash(s->list[i].name, s->list[i].scope) & (size - 1);

		while (hash[at]) {
			at = (at + 1) & (size - 1);
		}
		hash[at] = (uint32_t)i + 1;
	}
	free(s->hash);
	s->hash = hash;
	s->hash_size = size;
	return 0;
}

int64_t symbols_find(const struct symbols *s, struct ptx_name name, uint32_t scope) {
	size_t at;

	if (!s->hash_size) {
		return -1;
	}
	at = symbol_hash(name, scope) & (s->hash_size - 1);
	while (s->hash[at]) {
		const struct symbol *k = &s->list[s->hash[at] - 1];

		if (k->scope == scope && ptx_name_equal(k->name, name)) {
			return s->hash[at] - 1;
		}
		at = (at + 1) & (s->hash_size - 1);
	}
	return -1;
}

int symbols_add(struct symbols *s, const struct symbol *symbol) {
	size_t at;
	int r;

	r = decode_grow(&s->list, s->n, &s->cap, sizeof(*s->list));
	if (r < 0) {
		return r;
	}
	if (2 * (s->n + 1) > s->hash_size) {
		r = symbols_rehash(s);
		if (r < 0) {
			return r;
		}
	}
	at = symbol_hash(symbol->name, symbol->scope) & (s->hash_size - 1);
	while (s->hash[at]) {
		at = (at + 1) & (s->hash_size - 1);
	}
	s->list[s->n] = *symbol;
	s->hash[at] = (uint32_t)++s->n;
	return 0;
}

void symbols_deinit(struct symbols *s) {
	free(s->list);
	free(s->hash);
}

/* "%r12" as number 12 of the range "%r". */
static const struct symbol *find_in_range(const struct symbols *s, struct ptx_name name,
					  uint32_t scope, uint32_t *ret_index) {
	struct ptx_name prefix = name;
	uint64_t number = 0, scale = 1;
	int64_t at;

	while (prefix.len > 0 && prefix.s[prefix.len - 1] >= '0' &&
	       prefix.s[prefix.len - 1] <= '9' && scale <= 1000000000) {
		number += (uint64_t)(prefix.s[--prefix.len] - '0') * scale;
		scale *= 10;
		at = symbols_find(s, prefix, scope);
		if (at >= 0 && number < s->list[at].range) {
			*ret_index = (uint32_t)number;
			return &s->list[at];
		}
	}
	return NULL;
}

const struct symbol *decode_lookup(const struct decoder *d, struct ptx_name name,
				   uint32_t *ret_index) {
	const struct function *f = &d->functions[d->current];
	uint32_t index = 0, scope = d->scope;
	const struct symbol *found = NULL;
	int64_t at;

	for (;;) {
		at = symbols_find(&f->symbols, name, scope);
		found = at >= 0 ? &f->symbols.list[at]
				: find_in_range(&f->symbols, name, scope, &index);
		if (found || scope == 0) {
			break;
		}
		scope = f->parents[scope];
	}
	if (!found) {
		at = symbols_find(&d->globals, name, 0);
		found = at >= 0 ? &d->globals.list[at] : NULL;
	}
	if (found && ret_index) {
		*ret_index = index;
	}
	return found;
}
