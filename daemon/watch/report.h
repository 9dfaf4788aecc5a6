/*
 * report.h: what events say of sessions, jobs and GPUs.
 *
 * The report_*() functions are for the places where something happens: they cost a comparison where
 * nobody watches. The report_fill_*() functions describe what there is, for a watcher that comes
 * later.
 */
#pragma once

#include "daemon/watch/feed.h"

struct job;
struct server;
struct session;

/* @kind: SESSION_START, SESSION_KILL or SESSION_END, now. */
void report_session(const struct session *s, Sbeet__Control__EventKind kind);

/* JOB_REQUEST, _GRANT, _REVOKE, _RESUME, _LATE, _OVERRUN, _ABANDON, now. */
void report_job(const struct job *job, Sbeet__Control__EventKind kind);

/* JOB_DONE, JOB_MISS where that is so, and JOB_OVERRUN where that is so and was not told before,
 * now. */
void report_job_done(const struct job *job);

/* The policy in force has changed. */
void report_policy(struct server *server);

/* The configuration was read again. */
void report_config(struct server *server);

/* The GPU @index grants nothing more; not @drained: it grants again. */
void report_drain(struct server *server, size_t index, bool drained);

/* The GPU @index has a new reading of its power. */
void report_gpu(struct server *server, size_t index);

void report_fill_gpu(const struct server *server, size_t index, struct feed_event *ret);
void report_fill_session(const struct session *s, struct feed_event *ret);
void report_fill_job(const struct job *job, struct feed_event *ret);
