/*
 * taskedit.h: the text of a tasks.d/NAME.conf with other values: what an administrator wrote there,
 * comments too, stays. Pure.
 */
#pragma once

#include <stddef.h>

/* A key of section [task]. */
struct taskedit_value {
	const char *key;
	const char *value;
};

/*
 * @text, @n bytes, with these values: lines of section [task] with one of the keys are gone, and
 * lines with the new values are first in it. An empty text becomes a file of its own, whose first
 * line is the comment @head.
 * Return: 0, or -ENOMEM. @ret: owned by the caller, NUL-terminated, and as valid as @text is.
 */
int taskedit_apply(const char *text, size_t n, const char *head,
		   const struct taskedit_value *values, size_t n_values, char **ret, size_t *ret_n);
