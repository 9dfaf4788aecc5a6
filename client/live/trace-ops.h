/*
 * trace-ops.h: the kernels and copies of a trace: a row for each kernel of each task, and for each
 * kind of copy, with the times when they were issued.
 */
#pragma once

#include "client/live/event.h"

struct trace_op {
	nsec_t time; /* when the program issued it */
	uint64_t session, job;
	uint64_t blocks, block_threads; /* of launches */
	uint64_t bytes;			/* of copies */
	uint64_t stream;
	Sbeet__Enforcement enforcement;
	uint32_t row; /* index */
};

struct trace_row {
	uint32_t task; /* index in the trace */
	char name[EVENT_KERNEL_MAX + 1];
	uint64_t n;    /* operations */
	uint32_t next; /* in the table of rows, index + 1 */
};

/* Bounds on what a file can make us keep: some 300 MiB. */
#define TRACE_OPS_MAX	   4000000
#define TRACE_ROWS_MAX	   4096
#define TRACE_SESSIONS_MAX 65536
#define TRACE_ROWS_HASH	   1024

struct trace_session {
	uint64_t id;
	uint32_t task;
};

/* All zero: there are none. */
struct trace_ops {
	struct trace_op *list;		/* owned, in the order in which they were told */
	struct trace_row *rows;		/* owned */
	struct trace_session *sessions; /* owned, by id */
	size_t n, n_rows, n_sessions;
	size_t room, rows_room, sessions_room;
	uint32_t hash[TRACE_ROWS_HASH]; /* heads of lists of rows, index + 1 */
	uint64_t n_lost;
};

void trace_ops_deinit(struct trace_ops *ops);

/* @session belongs to the task @task, an index. Beyond TRACE_SESSIONS_MAX it is left out. Return: 0
 * or -ENOMEM. */
int trace_ops_session(struct trace_ops *ops, uint64_t session, uint32_t task);

/* Takes an EVENT_OP; one of a session that was not heard of is left out. Return: 0, -ENOMEM,
 * -E2BIG. */
int trace_ops_add(struct trace_ops *ops, const struct event *e);
