/*
 * taskvars.h: what a program says of its task: SBEET_* in its environment, or the options of
 * `sbeetctl run`. Both are read here, so they mean the same and are refused in the same words.
 * Pure.
 */
#pragma once

#include <stddef.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

enum taskvar {
	TASKVAR_TASK,
	TASKVAR_CLASS,
	TASKVAR_PERIOD,
	TASKVAR_DEADLINE,
	TASKVAR_OFFSET,
	TASKVAR_PRIORITY,
	TASKVAR_MIN_SMS,
	TASKVAR_MAX_SMS,
	TASKVAR_SCOPE,
	_TASKVAR_N,
};

struct taskvars {
	char task[PROTO_NAME_MAX + 1]; /* "": the program's name */
	Sbeet__TaskClass task_class;   /* if not given: real-time with a period or a deadline */
	Sbeet__Scope scope;
	nsec_t period, deadline, offset; /* 0: none */
	int priority;
	unsigned min_sms, max_sms; /* 0: no bound */
};

/* One value and where it comes from. */
struct taskvar_source {
	const char *name; /* "--period" or "SBEET_PERIOD"; for messages */
	const char *text; /* NULL: not given */
};

/* "SBEET_PERIOD" and "--period" */
const char *taskvar_variable(enum taskvar var);
const char *taskvar_option(enum taskvar var);

/*
 * Reads all values. Return: 0; or -EINVAL: @ret_wrong can't be understood, or contradicts another
 * value, and @why says so in one line of at most @size bytes, 512 is enough.
 */
int taskvars_read(struct taskvars *ret, const struct taskvar_source from[static _TASKVAR_N],
		  enum taskvar *ret_wrong, char *why, size_t size);
