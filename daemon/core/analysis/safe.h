/*
 * safe.h: the corrected bound of a GPU that is preempted segment by segment (Alg. 7), beside those
 * that the text prints (preempt.h). It holds for any mix of busy and suspending tasks.
 *
 * What the printed bounds leave out:
 * - a segment holds the GPU also during its G^m, and while its task waits for its CPU there;
 * - behind a busy task of higher priority, a task without GPU segments also waits for those that
 * keep the GPU from the busy one;
 * - each segment updates the runlist twice, and each update may first wait for one of a task of
 * lower priority; such an update also keeps a task from its CPU.
 *
 * What is assumed of the system:
 * - A CPU runs the ready task of highest priority, the GPU the segment of highest priority that has
 *   begun. A best-effort task gives the GPU up when any other begins (Alg. 7, line 14, as printed
 *   moves only one of them to the pending ones).
 * - Each end of a segment makes one call, which updates the runlist for at most epsilon under one
 * lock and is not preempted meanwhile. Who waits for the lock spins and can be preempted; the lock
 * goes to the waiting task of highest priority that runs on its CPU then. An update for a task of
 * lower priority does not stop the GPU's running segment.
 * - A suspending task suspends once in each GPU segment, and gives its CPU up only there.
 *
 * The bound. A task i waits either for its CPU, for the lock, or for the GPU. Whoever has that is
 * of higher priority and runs, or waits in turn; so at any instant at which i does not run, one of
 * a set S of tasks of higher priority runs, or a call of a task of lower priority does. roles()
 * finds S: tasks above i on its CPU; if i or a busy one of these uses the GPU, all above it on the
 * GPU; all above each of those on its CPU, and so on. Calls of tasks outside S are disjoint in
 * time, and each that delays i needs an event within it, as otherwise the task of S would have gone
 * first: a task of S gets ready on the CPU of the call (1 + s a job, with s the times that it
 * suspends), asks for the lock (2 eta), or leaves the CPU to a task of S that asks for it (1 + s).
 * With v_h such events a job of h: own = C_i + G_i + 2 epsilon eta_i + epsilon v_i R_i = own + sum
 * over S of ceil((R_i + R_h - W_h) / T_h) W_h + ceil((R_i + R_h) / T_h) epsilon v_h where W_h is
 * the time for which h can delay i: C + G^m, G, or C + G with its updates. If S also holds whatever
 * delays a task of S, counted in full, then a window that starts when all of S are idle has no jobs
 * from before: R_i = own + sum over S of ceil(R_i / T_h) (C_h + G_h + 2 epsilon eta_h + epsilon
 * v_h) Both hold; the bound is the smaller one.
 */
#pragma once

#include "daemon/core/analysis/rta.h"

enum rta_mode {
	RTA_MODE_OWN, /* each task as rta_task.busy says */
	RTA_MODE_BUSY,
	RTA_MODE_SUSPEND,
};

/* The bounds of all tasks in turn; fills in @ret[i] of the n_real_time first ones. */
void rta_safe_all(const struct rta_set *set, enum rta_mode mode, struct rta_bound *ret);
