/*
 * header.h: the first lines of a PTX text: telling one when it is seen, and finding those that
 * stand somewhere among other data.
 *
 * Looks at no more than `.version` and `.target`; whether the rest is PTX is the parser's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct header {
	unsigned sm; /* 75 for sm_75; 0: not told */
	char suffix; /* 'a' of sm_90a, 'f' of sm_100f, or 0 */
};

/* Is `.version` the first that stands in [@text, @end), after white space and comments? Then
 * @ret holds what follows it. */
bool header_read(const char *text, const char *end, struct header *ret);

/* To find every PTX text in [next, end). Start with {.next = data, .end = data + size}. */
struct header_scan {
	const char *next, *end;
};

/*
 * The next terminated text that begins (after white space and comments) with a `.version` of
 * numbers and a `.target`. What stands right before a text without a NUL between, other than
 * comments, does not hide it. All calls together look at each byte a constant number of times.
 * Return: false if there is none any more; then outputs are untouched.
 */
bool header_scan_next(struct header_scan *scan, const char **ret_text, size_t *ret_size);
