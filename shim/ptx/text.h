/*
 * text.h: a text that grows. After a failed allocation it stays as it is and remembers the error,
 * so that its users check once, at the end.
 */
#pragma once

#include <stddef.h>

struct text {
	char *s; /* owned, terminated once anything was added */
	size_t n, capacity;
	int error; /* 0, -ENOMEM */
};

void text_deinit(struct text *t);
void text_add(struct text *t, const char *s, size_t n);
void text_adds(struct text *t, const char *s);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text, which becomes the caller's; NULL if an allocation failed. */
char *text_take(struct text *t, size_t *ret_n);
