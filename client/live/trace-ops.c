/*
 * trace-ops.c: see trace-ops.h.
 */
#include "client/live/trace-ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hash.h"

void trace_ops_deinit(struct trace_ops *ops) {
	free(ops->list);
	free(ops->rows);
	free(ops->sessions);
	*ops = (struct trace_ops){0};
}

/* Room for one more element, @most in all. */
static int grow(void *array, size_t n, size_t *room, size_t size, size_t most) {
	size_t more = *room ? *room * 2 : 64;
	void *bigger;

	if (n < *room) {
		return 0;
	}
	if (n >= most) {
		return -E2BIG;
	}
	bigger = reallocarray(*(void **)array, more, size);
	if (!bigger) {
		return -ENOMEM;
	}
	*(void **)array = bigger;
	*room = more;
	return 0;
}

/* The index of the session, or where it belongs: mostly behind all others. */
static size_t find_session(const struct trace_ops *ops, uint64_t id) {
	size_t low = 0, high = ops->n_sessions;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ops->sessions[middle].id < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

int trace_ops_session(struct trace_ops *ops, uint64_t session, uint32_t task) {
	size_t at = find_session(ops, session);
	int r;

	if ((at < ops->n_sessions && ops->sessions[at].id == session) ||
	    ops->n_sessions == TRACE_SESSIONS_MAX) {
		return 0;
	}
	r = grow(&ops->sessions, ops->n_sessions, &ops->sessions_room, sizeof(*ops->sessions),
		 TRACE_SESSIONS_MAX);
	if (r < 0) {
		return r;
	}
	memmove(&ops->sessions[at + 1], &ops->sessions[at],
		(ops->n_sessions - at) * sizeof(*ops->sessions));
	ops->sessions[at] = (struct trace_session){session, task};
	ops->n_sessions++;
	return 0;
}

/* What the row of @e is called. */
static const char *name_of(const struct event *e) {
	return *e->kernel ? e->kernel : event_op_name(e->op);
}

static int find_row(struct trace_ops *ops, uint32_t task, const char *name, uint32_t *ret) {
	uint64_t hash = hash_bytes(HASH_EMPTY, name, strlen(name)) + task;
	uint32_t *head = &ops->hash[hash % TRACE_ROWS_HASH];
	struct trace_row *row;
	int r;

	for (uint32_t at = *head; at; at = ops->rows[at - 1].next) {
		if (ops->rows[at - 1].task == task && strcmp(ops->rows[at - 1].name, name) == 0) {
			*ret = at - 1;
			return 0;
		}
	}
	r = grow(&ops->rows, ops->n_rows, &ops->rows_room, sizeof(*ops->rows), TRACE_ROWS_MAX);
	if (r < 0) {
		return r;
	}
	row = &ops->rows[ops->n_rows];
	*row = (struct trace_row){.task = task, .next = *head};
	memcpy(row->name, name, strlen(name) + 1);
	*ret = (uint32_t)ops->n_rows++;
	*head = *ret + 1;
	return 0;
}

int trace_ops_add(struct trace_ops *ops, const struct event *e) {
	size_t at = find_session(ops, e->session);
	uint32_t row;
	int r;

	if (at == ops->n_sessions || ops->sessions[at].id != e->session) {
		return 0;
	}
	r = find_row(ops, ops->sessions[at].task, name_of(e), &row);
	if (r == 0) {
		r = grow(&ops->list, ops->n, &ops->room, sizeof(*ops->list), TRACE_OPS_MAX);
	}
	if (r < 0) {
		return r;
	}
	ops->rows[row].n++;
	ops->list[ops->n++] = (struct trace_op){
		.time = e->time,
		.session = e->session,
		.job = e->job,
		.blocks = e->blocks,
		.block_threads = e->block_threads,
		.bytes = e->bytes,
		.stream = e->stream,
		.enforcement = e->enforcement,
		.row = row,
	};
	return 0;
}
