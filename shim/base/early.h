/*
 * early.h: for functions on the way of a dlsym(): a sanitizer's own runtime looks names up before it
 * is ready to be told of anything, or has functions of its own in the place of the C library's.
 */
#pragma once

#include <stdbool.h>

#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
#define EARLY __attribute__((disable_sanitizer_instrumentation))
#else
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

/* As strcmp(), which may be a sanitizer's. */
EARLY static inline bool early_same(const char *a, const char *b) {
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}
