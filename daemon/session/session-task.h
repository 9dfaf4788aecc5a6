/*
 * session-task.h: which task a session is, and what the policies know of it.
 */
#pragma once

#include "daemon/session/session.h"

struct inventory_gpu;

/* Its name, class and timing: its own words, the administrator's files, its user's rights. */
void session_task_admit(struct session *s, const Sbeet__Hello *hello);

/* A task with times to keep, whose profile is known, is one for the policies to plan with. */
void session_task_declare(struct session *s);

/* The program's GPU, where it is for us to choose and it can be told, and the only one that it uses
 * so far; else NULL. */
const struct inventory_gpu *session_task_choose_gpu(struct session *s, const Sbeet__Hello *hello);

/* Its task is this one from now on; jobs that it has stay as they are. @restart: its releases begin
 * anew, since period or offset were set. */
void session_task_set(struct session *s, const struct task_spec *task, bool restart);

/* To be called before a job is made: declares a task that was set anew, once no job of the old one
 * is left. */
void session_task_refresh(struct session *s);

/* Of a job that it makes now: its task's, or if that is 0 its process's: see --priority in
 * sbeetctl(1). For the latter, session_task_read_priority() before. */
int session_task_priority(const struct session *s);

/* Asks the kernel for the process's priority, if its task has none: 0 unless it runs under
 * SCHED_FIFO or SCHED_RR. */
void session_task_read_priority(struct session *s);

/* A job of its has ended: its time is learnt where `learn = yes` and the rules of learn.h ask for
 * it. */
void session_task_learn(struct session *s, const struct job *job, const Sbeet__JobDone *done,
			nsec_t finished);

/* It ends: who is started for the same task soon goes on from it. */
void session_task_remember(const struct session *s);

/* To be called at its end, when sched_task is gone. */
void session_task_free(struct session *s);
