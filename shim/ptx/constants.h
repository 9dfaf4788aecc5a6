/*
 * constants.h: whether a function's use of addresses in .const memory can be followed.
 *
 * A twin reads the original's constants where they are, in global memory: their addresses change
 * kind, and with them every instruction that uses one. So each address that ld.const takes must
 * come from a variable's name in the same function, and none may go anywhere else.
 */
#pragma once

#include "shim/ptx/facts.h"

/* @ret: no reason if all is well. Return: 0, -ENOMEM. */
int constants_check(const struct ptx_module *m, const struct ptx_func *f, struct refusal *ret);
