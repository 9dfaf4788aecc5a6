/*
 * quiet.h: variables of shared memory that nobody writes while anybody may read them.
 *
 * Barriers of the whole block cut a kernel's run into stretches. A variable is quiet if no stretch
 * has both a load of it and anything else that it is used for, and if its name stands nowhere but
 * as an address, so that nothing else can reach it. All threads that load it in one stretch then
 * get one value, whether the load is volatile or not, and even if the program has data races
 * elsewhere; provided that all threads come to all barriers, which is the caller's business: one
 * that only some come to lets them pass another that the others wait at.
 */
#pragma once

#include "shim/ptx/cfg.h"

/* More of them in one kernel are not looked at. */
#define QUIET_MAX 16

struct quiet {
	uint32_t vars[QUIET_MAX]; /* of the module */
	unsigned n;
};

/* Of an entry that calls functions nothing is known. Return: 0, -ENOMEM. */
int quiet_find(struct quiet *ret, const struct cfg *c, const struct module_facts *facts,
	       const struct ptx_func *f);

/* Whether @s loads such a variable, by its name. */
bool quiet_is_load(const struct quiet *q, const struct ptx_module *m, const struct ptx_stmt *s);
