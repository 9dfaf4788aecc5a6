/*
 * locate.h: the line of a JSON document on which a value stands. jansson does not keep it.
 */
#pragma once

#include <stddef.h>

/* One step from a value to one within it. */
struct locate_step {
	const char *key; /* of a member; NULL: an element, number `index` */
	size_t index;
};

/* The line, from 1, on which the value at the end of @path begins, in the @size bytes of @text,
 * which were parsed without an error. If it can't be found, because a key is written with escapes:
 * that of the nearest value around it. */
unsigned locate_line(const char *text, size_t size, const struct locate_step *path, size_t n_steps);
