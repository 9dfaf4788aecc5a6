/*
 * known.h: registers that hold one of two constants all the time: -1, which as a member mask means
 * all 32 lanes, and 31, with which a shuffle goes through the whole warp.
 */
#pragma once

#include "shim/ptx/names.h"

struct known {
	struct ptx_names names; /* owned: register to what all its values are */
};

/* Of a function with a body. Return: 0, -ENOMEM. */
int known_init(struct known *k, const struct ptx_module *m, const struct ptx_func *f);
void known_deinit(struct known *k);

/* Whether @o is the constant itself, or such a register. */
bool known_is_full_mask(const struct known *k, const struct ptx_operand *o);
bool known_is_31(const struct known *k, const struct ptx_operand *o);
