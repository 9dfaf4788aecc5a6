/*
 * taskvars.h: what a program says of its task: SBEET_* in its environment, or the options of
 * `sbeetctl run`. Both are read here, so they mean the same and are refused in the same words.
 * Pure.
 */
#pragma once

#include <stddef.h>

#include "proto/task-spec.h"

/* One value and where it comes from. */
struct taskvar_source {
	const char *name; /* "--period" or "SBEET_PERIOD"; for messages */
	const char *text; /* NULL: not given */
};

/*
 * Reads all values that a program may say. What is not given: none; the class is real-time with a
 * period or a deadline. Return: 0; or -EINVAL: @ret_wrong can't be understood, or contradicts
 * another value, and @why says so in one line of at most @size bytes, 512 is enough.
 */
int taskvars_read(struct task_spec *ret, const struct taskvar_source from[static _TASK_FIELD_N],
		  enum task_field *ret_wrong, char *why, size_t size);
