/*
 * safe-kthread.h: the corrected bound under the kernel thread (Alg. 6), beside Lemma 13
 * (preempt.h). All tasks are busy during G^e.
 *
 * What Lemma 12 and 13 leave out:
 * - behind a busy task of higher priority, a task without GPU segments also waits for those that
 *   keep the GPU from the busy one;
 * - a task that has the GPU keeps it while it waits for its own CPU, behind tasks that need no GPU;
 * - on the CPU of the kernel thread, a task without GPU segments is also delayed by updates for
 *   jobs of lower priority;
 * - by the formula of x_i, not its proof: tasks on other CPUs wait for updates too.
 *
 * What is assumed of the system: a GPU-using task that is not of best effort gets the GPU when its
 * job is the ready one of highest priority, from release to completion. Whenever another task is
 * that one, the kernel thread updates the runlist for epsilon, which includes its polling interval,
 * above all others on its CPU; it updates for the last change only if several come during an
 * update. Other changes of state, such as of tasks that don't get the GPU, cause no update.
 *
 * The bound. S are the tasks above i on its CPU, all above on the GPU for each GPU-using one of S
 * or i, all above on its CPU for each of S, and so on. While i is ready and does not progress, one
 * of S does, or an update runs. The same holds while any of S is ready, so in a window that begins
 * when none of S is, no job is carried in:
 *   R_i = C_i + G_i + sum over S of ceil(R_i / T_h) (C_h + G_h) + epsilon U
 * or in the window from the release of i on:
 *   R_i = C_i + G_i + sum over S of ceil((R_i + J_h) / T_h) (C_h + G_h) + epsilon U'
 * with J_h = R_h - C_h - G_h. The bound is the smaller one. U and U' count the updates, at most one
 * for each time that a GPU-using task of S gets ready or done. For those outside S and i they count
 * - the update under way and the next one when the window begins;
 * - if i is GPU-using, none in U': while it is ready, they change nothing;
 * - otherwise, if i or, for U, one of S is on the CPU of the kernel thread, each of them;
 * - otherwise one for each job of a GPU-using task of S: the one under way at its release.
 */
#pragma once

#include "daemon/core/analysis/rta.h"

/* The bounds of all tasks in turn; fills in @ret[i] of the n_real_time first ones. */
void rta_safe_kthread_all(const struct rta_set *set, struct rta_bound *ret);
