/*
 * hazards.h: what a thread that has ended its virtual block, but lives on, may do to those that
 * wait for it, and whether that can be cured.
 *
 * On the GPU a thread that has exited counts nowhere: barriers and member masks go on without it. A
 * twin's threads never exit. So a full barrier that some threads may miss becomes a vote, and an
 * instruction that waits for the lanes of a mask, or a barrier for a number of threads, is allowed
 * only where no thread that it could wait for can have ended.
 */
#pragma once

#include "shim/ptx/facts.h"

struct hazards {
	struct refusal refusal;
	bool vote;		 /* barriers must be votes */
	unsigned block_multiple; /* as in struct twin_kernel */
};

/* Refuses functions in which threads may part before they wait for each other, and all that call
 * them. Before any kernel is judged. Return: 0, -ENOMEM. */
int hazards_judge_functions(struct module_facts *facts);

/* Of entry @f, which nothing else speaks against. Return: 0, -ENOMEM. */
int hazards_judge(struct hazards *ret, const struct module_facts *facts, const struct ptx_func *f);

/* A barrier number that no instruction of the module uses with a number of threads; 16 if there is
 * none. */
unsigned hazards_free_barrier(const struct module_facts *facts);
