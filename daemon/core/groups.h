/*
 * groups.h: which SMs of a GPU that is cut into groups (sched_gpu_model.last_group): sets of whole
 * groups that lie beside each other, so that there are few different ones. Included by sched.c and
 * tests only.
 *
 * A program needs some milliseconds and some memory for each set of SMs that it is granted for the
 * first time, and keeps no more than some dozens. A GPU of 16 groups has 136 rows of groups, and
 * 65,535 sets of them.
 */
#pragma once

#include "daemon/core/sched.h"

/* The most SMs of @from that lie in one row of whole groups; all of them if there are no groups. */
unsigned groups_longest_row(const struct sched_gpu_model *model, const struct smset *from);

/*
 * At least @n SMs of @from in whole groups, in one row if any is long enough: from the shortest
 * such row, at its high end if that is the GPU's, else at its low end. Or @again, what the caller
 * was given last (NULL: nothing), if that has as many and leaves no shorter rows.
 */
struct smset groups_pick(const struct sched_gpu_model *model, const struct smset *from, unsigned n,
			 const struct smset *again);
