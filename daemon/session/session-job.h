/*
 * session-job.h: the jobs of a session: from a request that is allowed to their end. Every job in
 * the list is charged to the session's user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/smset.h"
#include "sbeet.pb-c.h"

struct job;
struct session;

/* By the shim's number; NULL: it has none. */
struct job *session_job_find(struct session *s, uint64_t number);

/* A job of an allowed request for GPU @gpu begins to wait; it could run on @others (mask) as well.
 * Its charge was made by the caller. NULL: no memory, or no room in the engine. */
struct job *session_job_open(struct session *s, const Sbeet__Request *request, size_t gpu,
			     uint32_t others);

/* The same for a job that runs, or ran, under terms that mean @sms: nobody was asked, and the
 * engine does not know it. NULL: no memory. */
struct job *session_job_begin(struct session *s, const Sbeet__Began *began, size_t gpu,
			      const struct smset *sms);

/* A job of another session, or of a daemon before this one, comes into the list and under the
 * user's quota. Return: 0 or SESSION_E_QUOTA. */
int session_job_add(struct session *s, struct job *job);

/* Undoes that, if the job can't run after all: it is the caller's again. */
void session_job_take_back(struct session *s, struct job *job);

/* It has its SMs: tells the process, for the engine. Ends the session if that can't take it. */
/* A policy stops the job: its program is told, and does what it can: it launches nothing more under
 * it, and says when what it has launched is over. One that can't go on with a job (an older
 * libsbeet.so) ends it there; the rest is another one. */
void session_job_stop(struct job *job);

/* It runs and is stopped, and its program need not be told: its work gives way by itself. */
void session_job_put_aside(struct job *job);

/* Its program says that nothing of it runs any more. */
void session_job_stopped(struct session *s, struct job *job);

/* And that it wants to go on with it. */
void session_job_continue(struct session *s, struct job *job, const Sbeet__Request *request);

void session_job_grant(struct job *job);

/* Whether anybody watches the operations of the process: it is told for each job that runs, and for
 * those to come with their grants. */
void session_job_record_ops(struct session *s, bool on);

/* Its process says that it is over, or has given it up: counts it, and drops it. */
void session_job_done(struct session *s, struct job *job, const Sbeet__JobDone *done);

/* Out of the engine, the list and the quota. @done: complete, and counted already. */
void session_job_drop(struct session *s, struct job *job, bool done);

/* All that wait. */
void session_job_drop_waiting(struct session *s);
