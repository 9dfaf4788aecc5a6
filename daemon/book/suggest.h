/*
 * suggest.h: the known name that a mistyped one probably meant.
 */
#pragma once

#include <stddef.h>

struct suggest {
	const char *text; /* what was typed; borrowed */
	const char *best; /* NULL: nothing near enough so far */
	size_t distance;
};

/* Start, then offer each known name, then read `best`. */
struct suggest suggest_start(const char *text);
void suggest_offer(struct suggest *s, const char *name);
