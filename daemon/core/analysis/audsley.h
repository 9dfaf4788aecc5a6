/*
 * audsley.h: GPU priorities of their own (4.5.3), by Audsley's assignment.
 */
#pragma once

#include "daemon/core/analysis/preempt.h"

/*
 * From the lowest level of the GPU upwards, gives each to the first GPU-using task, from the lowest
 * CPU priority on, that meets its deadline there by the lemma of @p. As the order above it is not
 * known then, the deadlines of those tasks stand for their responses in the jitters.
 *
 * @swap: a task may go below one of lower priority on its own CPU. The text does not say; by
 * default it may not: a busy task that has the CPU would wait for one that waits for this CPU,
 * forever.
 *
 * @p: its bounds and levels are not used. @ret, @ret_levels: of the n_real_time first tasks,
 * filled in on success only. Return: whether all tasks meet their deadlines so.
 */
bool rta_audsley(const struct rta_preempt *p, bool swap, struct rta_bound *ret,
		 unsigned *ret_levels);
