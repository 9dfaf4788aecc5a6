/*
 * hazards.h: what a thread that has ended its virtual block, but lives on, may do to those that
 * wait for it, and whether that can be cured.
 */
#pragma once

#include "shim/ptx/facts.h"

struct hazards {
	struct refusal refusal;
	bool vote;		 /* barriers must be votes */
	unsigned block_multiple; /* as in struct twin_kernel */
};

/* Of entry @f, which nothing else speaks against. Return: 0, -ENOMEM. */
int hazards_judge(struct hazards *ret, const struct module_facts *facts, const struct ptx_func *f);

/* A barrier number that no instruction of the module uses with a number of threads; 16 if there is
 * none. */
unsigned hazards_free_barrier(const struct module_facts *facts);
