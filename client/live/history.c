/*
 * history.c: see history.h.
 */
#include "client/live/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sbeetd tells the age of a reading in whole calls: two that are as close are the same one. */
#define SAME_READING_NS NSEC_PER_MSEC

static void add_power(struct history_gpu *h, const Sbeet__Control__Gpu *g, uint64_t now_ns) {
	uint64_t read_ns = now_ns - g->power_age_ns;

	if (!g->power_mw || read_ns < h->read_ns + SAME_READING_NS) {
		return;
	}
	if (h->n == HISTORY_POWERS) {
		memmove(h->power_mw, h->power_mw + 1, (h->n - 1) * sizeof(h->power_mw[0]));
		h->n--;
	}
	h->power_mw[h->n++] = g->power_mw;
	h->read_ns = read_ns;
}

static int resize_gpus(struct history *h, size_t n) {
	struct history_gpu *gpus;

	if (n == h->n_gpus) {
		return 0;
	}
	gpus = reallocarray(h->gpus, n + 1, sizeof(*gpus));
	if (!gpus) {
		return -ENOMEM;
	}
	if (n > h->n_gpus) {
		memset(gpus + h->n_gpus, 0, (n - h->n_gpus) * sizeof(*gpus));
	}
	h->gpus = gpus;
	h->n_gpus = n;
	return 0;
}

static void forget_first(struct history_task *t) {
	t->n_looks--;
	memmove(t->looks, t->looks + 1, t->n_looks * sizeof(t->looks[0]));
}

static void add_look(struct history_task *t, uint64_t misses, uint64_t now_ns) {
	/* A task whose sessions have ended begins again with fewer misses. */
	if (t->n_looks > 0 && misses < t->looks[t->n_looks - 1].misses) {
		t->n_looks = 0;
	}
	while (t->n_looks == HISTORY_LOOKS ||
	       (t->n_looks > 1 && now_ns - t->looks[1].at_ns >= HISTORY_FRESH_NS)) {
		forget_first(t);
	}
	t->looks[t->n_looks++] = (struct history_look){now_ns, misses};
}

/* What a task missed before the first look is not new; of one that came later all is. */
static void follow_task(struct history *h, const struct snapshot_task *task, uint64_t now_ns,
			struct history_task *ret) {
	const struct history_task *before = history_task(h, task->name);

	if (before) {
		*ret = *before;
	} else {
		*ret = (struct history_task){.number = h->n_numbers++};
		snprintf(ret->name, sizeof(ret->name), "%s", task->name);
		add_look(ret, h->begun ? 0 : task->misses, now_ns);
	}
	add_look(ret, task->misses, now_ns);
}

int history_add(struct history *h, const struct snapshot *s) {
	uint64_t now_ns = s->service->now_ns;
	struct history_task *tasks = calloc(s->n_tasks + 1, sizeof(*tasks));

	if (!tasks || resize_gpus(h, s->n_gpus) < 0) {
		free(tasks);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		add_power(&h->gpus[i], s->gpus[i], now_ns);
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		follow_task(h, &s->tasks[i], now_ns, &tasks[i]);
	}
	free(h->tasks);
	h->tasks = tasks;
	h->n_tasks = s->n_tasks;
	h->begun = true;
	return 0;
}

void history_deinit(struct history *h) {
	free(h->gpus);
	free(h->tasks);
	*h = (struct history){0};
}

const struct history_gpu *history_gpu(const struct history *h, size_t i) {
	return i < h->n_gpus ? &h->gpus[i] : NULL;
}

const struct history_task *history_task(const struct history *h, const char *name) {
	for (size_t i = 0; i < h->n_tasks; i++) {
		if (strcmp(h->tasks[i].name, name) == 0) {
			return &h->tasks[i];
		}
	}
	return NULL;
}

uint64_t history_fresh(const struct history_task *task) {
	return task ? task->looks[task->n_looks - 1].misses - task->looks[0].misses : 0;
}
