/*
 * hazards.h: what a thread that has ended its virtual block, but lives on, may do to those that
 * wait for it, and whether that can be cured.
 *
 * On the GPU a thread that has exited counts nowhere: barriers and member masks go on without it. A
 * twin's threads never exit. So a full barrier that some threads may miss becomes a vote, and an
 * instruction that waits for the lanes of a mask, or a barrier for a number of threads, is allowed
 * only where no thread that it could wait for can have ended, or where those that have ended can be
 * taken out of its mask (leavers.h, rollcall.h).
 *
 * What is refused for good, and why:
 *	bar.red where threads may end before	the barrier is a vote then, and a result behind a
 *						vote was wrong on a real GPU (hazards.c)
 *	barriers for a number of threads, where	nobody can vote in their stead
 *	 some may have ended
 *	lanes that leave in a part of the code	those left can't be counted: not all of them come
 *	 that not all lanes of a warp run	there
 *	calls through pointers, addresses of	the pointers that a program has lead to the
 *original's functions				functions, which read the wrong block ids generic
 *addresses of constants		a kernel finds its own module's constants there, and a
 *twin's module has others (facts.c)
 *	grids that wait for each other, all of	a twin's blocks do not run at the same time, and its
 *	 their blocks, or their clusters	grid is not the program's
 *
 * What is left out of twins, and why that is right: griddepcontrol, by which a kernel that was
 * launched with programmatic stream serialization starts before the one in front of it is complete.
 *
 *	the twin is launched without that attribute	so it starts when all in front of it is
 *		(plan.c)				complete and its memory visible: .wait has
 *							nothing to wait for. It must be so, for two
 *							twins of a stream share a control block,
 *which the first puts back at its end. .launch_dependents is not in it			so the
 *kernel behind it, if that is an original with the attribute, starts when all workers have ended,
 *that is, all virtual blocks. With it, that would be when each worker has run it once, in his first
 *block.
 *
 * Both only make kernels start later. That they overlap is a leave, never a promise: a program that
 * can't do without would hang on a full GPU too. A launch with an event in the middle of its grid
 * is no twin's (plan.c).
 */
#pragma once

#include "shim/ptx/facts.h"
#include "shim/ptx/leavers.h"

struct hazards {
	struct refusal refusal;
	bool vote;		 /* barriers must be votes */
	bool apart;		 /* lanes of one warp may vote at different places */
	unsigned block_multiple; /* as in struct twin_kernel */
	/* Branches at which the lanes of a warp that stay are counted, in the order of the text;
	 * masks must be cut to those. Owned. */
	struct leave *leaves;
	size_t n_leaves;
	bool roll; /* lanes are counted where they meet: rollcall.h */
};

/* Refuses functions in which threads may part before they wait for each other, and all that call
 * them. Before any kernel is judged. Return: 0, -ENOMEM. */
int hazards_judge_functions(struct module_facts *facts);

/* Of entry @f, which nothing else speaks against. Return: 0, -ENOMEM. */
int hazards_judge(struct hazards *ret, const struct module_facts *facts, const struct ptx_func *f);
void hazards_deinit(struct hazards *h);

/* A barrier number that no instruction of the module uses with a number of threads; 16 if there is
 * none. */
unsigned hazards_free_barrier(const struct module_facts *facts);
