/*
 * objects.h: what sbeetd has: GPUs, tasks, sessions and jobs; each with one table of columns, which
 * `status`, `top` and the lists share, and its JSON form.
 */
#pragma once

#include "client/map.h"
#include "client/snapshot.h"
#include "client/table.h"

/* Longest text of an object's id. */
#define OBJECT_ID_MAX 72

struct object {
	const char *noun; /* "session" */
	const struct table_column *columns;
	size_t n_columns;
	const char *none; /* said where there is none */
	size_t (*count)(const struct snapshot *s);

	/* Adds the row of the @i-th one. */
	void (*add)(struct table *t, const struct snapshot *s, size_t i);

	/* What `show` and the completion call it. */
	void (*id)(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]);

	/* NULL if memory ran out. */
	json_t *(*json)(const struct snapshot *s, size_t i);
};

extern const struct object object_gpu, object_task, object_session, object_job;

/* The row of a GPU with the first line of @map, and the rows with its other lines. */
void object_add_gpu(struct table *t, const struct snapshot *s, const Sbeet__Control__Gpu *g,
		    struct map map);

/* "3min 2s", "5d 4h": the two largest units. */
void object_print_age(nsec_t t, char *text, size_t size);
