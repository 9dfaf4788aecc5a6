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
 * a set S of tasks of higher priority runs, or a call of a task outside S does. find_roles() finds
 * S: tasks above i on its CPU; if i or a busy one of these uses the GPU, all above it on the GPU;
 * all above each of those on its CPU, and so on:
 *   R_i = C_i + G_i + 2 epsilon eta_i
 *         + sum over S of ceil((R_i + R_h - W_h) / T_h) W_h + epsilon B
 * W_h is the time for which a job of h can delay i, with its own 2 eta_h updates: C + G^m if h
 * suspends and only has the CPU of one that is waited for, G if it only has the GPU, C + G if both.
 *
 * B counts the calls of tasks outside S that delay i or one of S; the smaller of two numbers:
 * - all calls that such tasks make, sum of 2 eta_l ceil((R_i + R_l) / T_l). Of a best-effort task
 *   any number of jobs may come.
 * - one for each event that a call needs to delay a task of S, or i: calls are disjoint in time,
 *   and otherwise the task of S would have gone first. h gets ready on the CPU of the call (1 + s
 *   times a job, with s the times that it suspends), asks for the lock (2 eta), or leaves the CPU
 *   to a task of S that asks for it (1 + s). On the CPU of i, none of the first kind if i never
 *   suspends. If h only has the GPU, what counts is from the end of its first call of a segment:
 *   s and eta.
 *
 * Where the window begins: at the release of i, as above; or earlier, when nothing of some tasks of
 * S is ready, so that no job of theirs is carried in: ceil(R_i / T_h) instead. This needs that one
 * of S runs, in a time that is counted, while any of those tasks is ready:
 * - tasks above on the CPU of i that never suspend;
 * - tasks that never suspend and have the CPU of one that is waited for;
 * - all of S, if it holds whatever delays a task of S at any time, and all of W_h is C + G.
 * But the job of i before is then outside S. The bound is the smallest of the four.
 *
 * R_l, for the calls, depends on tasks of lower priority: see rta_assume_deadlines().
 *
 * How pessimistic it is (bench-analysis, Table 4.2's sets with epsilon 1 ms): see
 * tests/bench/ANALYSIS.md.
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
