/*
 * groups.h: which SMs of a GPU that is cut into groups (sched_gpu_model.last_group): sets of whole
 * groups that lie beside each other, so that there are few different ones. sched.h includes it for
 * sched_divide().
 *
 * A program needs some milliseconds and some memory for each set of SMs that it is granted for the
 * first time, and keeps no more than some dozens. A GPU of 16 groups has 136 rows of groups, and
 * 65,535 sets of them.
 */
#pragma once

#include "daemon/core/state.h"

/*
 * Divides a GPU, as between processes only green contexts are exact, and those come in groups of
 * @group SMs: then parts of the GPU are made of whole groups. What the groups don't divide goes
 * with the last one, and a whole one more, for that is how the driver cuts (an H200 has 132 SMs: 15
 * groups of 8, 12 left). @group at least 1, and few enough that there are several.
 */
void sched_divide(struct sched_gpu_model *model, unsigned group);

/* At least @n SMs of @from in whole groups, from its low or from its high end; all whole groups if
 * they are fewer. */
struct smset sched_pick_sms(const struct sched_gpu_model *model, const struct smset *from,
			    unsigned n, bool high);

/* The most SMs of @from that lie in one row of whole groups; all of them if there are no groups. */
unsigned groups_longest_row(const struct sched_gpu_model *model, const struct smset *from);

/*
 * At least @n SMs of @from in whole groups, in one row if any is long enough: from the shortest
 * such row, at its high end if that is the GPU's, else at its low end. Or @again, what the caller
 * was given last (NULL: nothing), if that has as many and leaves no shorter rows.
 */
struct smset groups_pick(const struct sched_gpu_model *model, const struct smset *from, unsigned n,
			 const struct smset *again);
