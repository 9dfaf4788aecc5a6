/*
 * tune-world.h: plans that are tuned, for tests: the clock, the GPU and what its tasks do are the
 * test's.
 */
#pragma once

#include <stdbool.h>

#include "daemon/core/steer/tune.h"
#include "tests/unit/steer-tasks.h"

#define WINDOW (2 * NSEC_PER_SEC)

/* What is tuned, and a GPU that does what `does` says. */
struct world {
	struct tune tune;
	unsigned n;
	/* Of each task's jobs under @terms in @time. */
	void (*does)(const struct world *w, const struct terms *terms, nsec_t time,
		     struct seen *ret);
	const struct plan_task *known, *truth;
	nsec_t time, since; /* now; the terms hold */
	unsigned n_tries, n_plans;
};

/* Return: whether its way holds from now on. */
bool give_plan(struct world *w, const struct plan *plan);

/* The planner makes it, of what is known by now. */
void make_plan(struct world *w);

/* When something may be found out next. */
enum tune_action look(struct world *w);
void look_until_kept(struct world *w);
void look_for(struct world *w, nsec_t time);

/* ---- with plans that say nothing: the level of the terms says how many of a thousand jobs, one
 * each millisecond, are late ---- */

#define LEVELS 5

extern const unsigned *late_jobs; /* by level */
extern unsigned unreported_jobs;  /* of a thousand */

void does_as_its_level_says(const struct world *w, const struct terms *terms, nsec_t time,
			    struct seen *ret);
void fake_way(struct plan_way *way, unsigned level);

/* A plan of level @first, and others of those below @n. */
void fake_plan(struct plan *plan, unsigned first, unsigned n);

/* With a plan of level 0, and others of all other levels. @by_level: late_jobs. */
struct world fake_world(const unsigned *by_level);

/* That of the way that holds. */
unsigned level(const struct world *w);
bool was_tried(const struct world *w, unsigned level);
