/*
 * history.h: what `top` remembers from one look to the next: power of each GPU, misses of each
 * task.
 *
 * A snapshot only says how things stand; what is new follows from the ones before it.
 */
#pragma once

#include "client/live/snapshot.h"
#include "proto/limits.h"
#include "proto/units.h"

/* Readings of a GPU's power that are kept. */
#define HISTORY_POWERS 60

/* How long a miss is fresh. */
#define HISTORY_FRESH_NS (5 * NSEC_PER_SEC)

struct history_gpu {
	uint64_t power_mw[HISTORY_POWERS]; /* the last one is the newest */
	size_t n;
	uint64_t read_ns; /* when the newest was made, on sbeetd's clock */
};

/* What a look saw; enough of them for the shortest interval between looks. */
#define HISTORY_LOOKS 64

struct history_look {
	uint64_t at_ns; /* on sbeetd's clock */
	uint64_t misses;
};

struct history_task {
	char name[PROTO_NAME_MAX + 1];
	unsigned number; /* of all tasks there were, in the order they came: picks the colour */
	struct history_look looks[HISTORY_LOOKS]; /* the first is the last that is not fresh */
	size_t n_looks;
};

struct history {
	struct history_gpu *gpus; /* owned */
	size_t n_gpus;
	struct history_task *tasks; /* owned; those of the last snapshot */
	size_t n_tasks;
	unsigned n_numbers; /* given away */
	bool begun;
};

/* Return: 0 or -ENOMEM, after which nothing has changed. */
int history_add(struct history *h, const struct snapshot *s);
void history_deinit(struct history *h);

/* NULL where nothing is known. */
const struct history_gpu *history_gpu(const struct history *h, size_t i);
const struct history_task *history_task(const struct history *h, const char *name);

/* Misses of @task, which may be NULL, that are fresh. */
uint64_t history_fresh(const struct history_task *task);
