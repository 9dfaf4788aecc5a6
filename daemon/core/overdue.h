/*
 * overdue.h: no job waits for ever, though a policy may pass it over as long as others that can be
 * in time need the SMs. Used by sched.c before a policy decides.
 *
 * The text has no such rule: Alg. 2 starts a job on an idle GPU sooner or later, whatever it costs.
 * Here: a task of which a job waits, and none has been granted for params.max_wait of its periods
 * (its deadline or its shortest time, if longer), is overdue. Its first job starts as soon as
 * m_opt SMs are free on a GPU that it may use; until then one GPU is kept free for it. So the rule
 * takes at most one job in max_wait of any task, and less than U / max_wait of the GPUs' time.
 */
#pragma once

#include "daemon/core/policy.h"

/* Starts what is overdue, longest first. Return: the GPU on which nothing else must start now, as
 * an overdue job waits for it; -1: none. */
int overdue_start(struct sched *s, nsec_t now, struct sched_actions *actions);
