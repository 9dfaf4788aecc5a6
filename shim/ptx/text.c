/*
 * text.c: a text that grows by doubling.
 */
#include "shim/ptx/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_deinit(struct text *t) {
	free(t->s);
	*t = (struct text){0};
}

/* Room for @n more bytes and the final NUL. Return: whether there is. */
static int reserve(struct text *t, size_t n) {
	size_t need, capacity = t->capacity ? t->capacity : 256;
	char *s;

	if (t->error || __builtin_add_overflow(t->n, n, &need) || need > SIZE_MAX / 4) {
		t->error = -ENOMEM;
		return 0;
	}
	if (need < t->capacity) {
		return 1;
	}
	while (capacity <= need) {
		capacity *= 2;
	}
	s = realloc(t->s, capacity);
	if (!s) {
		t->error = -ENOMEM;
		return 0;
	}
	t->s = s;
	t->capacity = capacity;
	return 1;
}

void text_add(struct text *t, const char *s, size_t n) {
	if (reserve(t, n)) {
		memcpy(t->s + t->n, s, n);
		t->n += n;
		t->s[t->n] = '\0';
	}
}

void text_adds(struct text *t, const char *s) {
	text_add(t, s, strlen(s));
}

void text_addf(struct text *t, const char *format, ...) {
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0) {
		t->error = -ENOMEM;
		return;
	}
	if (reserve(t, (size_t)n)) {
		va_start(args, format);
		vsnprintf(t->s + t->n, (size_t)n + 1, format, args);
		va_end(args);
		t->n += (size_t)n;
	}
}

char *text_take(struct text *t, size_t *ret_n) {
	char *s;

	if (!t->s && !t->error) {
		text_adds(t, "");
	}
	if (t->error) {
		return NULL;
	}
	s = t->s;
	if (ret_n) {
		*ret_n = t->n;
	}
	*t = (struct text){0};
	return s;
}
