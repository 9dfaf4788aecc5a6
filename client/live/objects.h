/*
 * objects.h: what sbeetd has: GPUs, tasks, sessions and jobs; each with one table of columns, which
 * `status`, `top` and the lists share, and its JSON form.
 */
#pragma once

#include "client/base/table.h"
#include "client/live/map.h"
#include "client/live/snapshot.h"

/* Longest text of an object's id. */
#define OBJECT_ID_MAX 72

struct object {
	const char *noun; /* "session" */
	const struct table_column *columns;
	size_t n_columns;
	const char *none; /* said where there is none */
	size_t (*count)(const struct snapshot *s);

	/* Adds the row of the @i-th one, for a terminal of @width columns; 0: there is none. */
	void (*add)(struct table *t, const struct snapshot *s, size_t i, unsigned width);

	/* What `show` and the completion call it. */
	void (*id)(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]);

	/* NULL if memory ran out. */
	json_t *(*json)(const struct snapshot *s, size_t i);

	/* Whether it is also called @id; NULL: it has no other name. */
	bool (*is)(const struct snapshot *s, size_t i, const char *id);
};

extern const struct object object_gpu, object_task, object_session, object_job, object_allocation;

/* "46.0", "46.0/220" with what the GPU may draw; empty if the driver gives no power. */
void object_print_power(const Sbeet__Control__Gpu *g, char *text, size_t size);

/* "up, 3 clients". */
void object_print_mps(const Sbeet__Control__Mps *m, char *text, size_t size);

/* "3min 2s", "5d 4h": the two largest units. */
void object_print_age(nsec_t t, char *text, size_t size);
