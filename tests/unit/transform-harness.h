/*
 * transform-harness.h: what the tests of the rewriter share.
 *
 * Everything fails the test at once; nothing to check for callers.
 */
#pragma once

#include <stdbool.h>

#include "shim/ptx/transform.h"

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"

/* What the body of a kernel may do between %p1, which differs from thread to thread, and %p2, which
 * does not. */
#define DIFFER "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;\n"
#define SAME   "ld.param.u32 %r2, [p]; setp.lt.u32 %p2, %r2, 5;\n"

/* Waits for the whole warp. */
#define SHFL_TEXT "shfl.sync.down.b32 %r3|%p4, %r4, 1, 31, -1;"
#define SHFL	  "shfl.sync.down.b32 %r3|%p4, %r4, 1, 31, -1;\n"

/* The caller frees the result. */
struct transform *transform(const char *text);
/* The transform of one entry "k" with @body, after @before. */
struct transform *transform_body(const char *before, const char *body);

/* That entry has a twin, in which barriers are votes or not. */
void assert_twin(const char *before, const char *body, bool votes);
/* That entry is refused because of @instruction (NULL: any), for a reason that contains @reason. */
void assert_refused(const char *before, const char *body, const char *instruction,
		    const char *reason);

/* @what stands in @text @n times. */
void assert_occurs(const char *text, const char *what, unsigned n);
