/*
 * assertion.h: assert() in twins. The driver's message names the block that ran, which in a twin is a
 * worker; so the virtual block is added to the function's name that the message begins with.
 */
#pragma once

#include "shim/ptx/ptx.h"
#include "shim/ptx/text.h"

/* Takes __assertfail's parameters, and the virtual block's x, y and z. */
#define ASSERTION_FUNCTION "sbeet_assertfail"

/* Whether @s calls __assertfail in the form that compilers know. */
bool assertion_is_call(const struct ptx_module *m, const struct ptx_stmt *s);

/* The function above, and what it needs. */
void assertion_emit(struct text *out);
