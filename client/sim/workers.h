/*
 * workers.h: many independent units of work on several threads.
 *
 * Each unit writes to a place of its own, so the result does not depend on the number of threads.
 */
#pragma once

#include <stddef.h>

#define WORKERS_MAX 256

struct workers {
	size_t n_units;
	unsigned n_threads; /* 1 to WORKERS_MAX */

	/* Called for each unit once, by any thread. A negative result ends all of them. */
	int (*run)(void *userdata, size_t unit);

	/* NULL, or called ten times a second by the caller's own thread. */
	void (*on_progress)(void *progress, size_t done, size_t all);
	void *progress;
};

/* Runs all units. Return: 0; the first negative result of run(); -EAGAIN: no threads. */
int workers_run(const struct workers *w, void *userdata);

/* One a core, up to WORKERS_MAX. */
unsigned workers_default(void);
