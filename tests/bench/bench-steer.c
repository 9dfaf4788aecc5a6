/*
 * bench-steer.c DATA [TASKS...]: how long the search for a plan takes (core/steer/plan.h).
 *
 * DATA: tests/gpu/evaluation. Plans the task sets there that sbeetd planned while they were
 * measured, with the profiles that were measured then, and random sets of the same works at a
 * utilisation of 2.0, of so many tasks (default: 6, 10, 20). A JSON line for each plan: CPU time,
 * predictions that were made, whether nothing was left to try, late jobs as predicted, and a
 * checksum of all that the plan says: a change that is to be faster only leaves it as it was.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/measured.h"

#define SETS_EACH 2

/* ---- what comes out ---- */

static void add(uint64_t *sum, uint64_t value) {
	*sum = (*sum ^ value) * 1099511628211u;
}

static void add_way(uint64_t *sum, const struct terms *terms, const struct model_result *predicted,
		    unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		add(sum, terms[i].first);
		add(sum, terms[i].n);
		add(sum, terms[i].level);
		add(sum, terms[i].copies);
		add(sum, predicted[i].released);
		add(sum, predicted[i].missed);
		add(sum, predicted[i].response);
	}
}

static uint64_t checksum(const struct plan *plan, unsigned n) {
	uint64_t sum = 14695981039346656037u;

	add_way(&sum, plan->terms, plan->predicted, n);
	for (unsigned i = 0; i < plan->n_others; i++) {
		add_way(&sum, plan->others[i].terms, plan->others[i].predicted, n);
	}
	return sum;
}

static void plan(const char *name, const struct plan_task *tasks, unsigned n) {
	unsigned released = 0, missed = 0;
	struct plan plan;
	clock_t began = clock();

	plan_make(&measured_gpu, tasks, n, PLAN_WHOLE, 0, NULL, &plan);
	for (unsigned i = 0; i < n; i++) {
		released += plan.predicted[i].released;
		missed += plan.predicted[i].missed;
	}
	printf("{\"bench\": \"steer\", \"set\": \"%s\", \"tasks\": %u, \"cpu_s\": %.2f, "
	       "\"predictions\": %u, \"whole\": %s, \"released\": %u, \"missed\": %u, "
	       "\"plan\": \"%016" PRIx64 "\"}\n",
	       name, n, (double)(clock() - began) / CLOCKS_PER_SEC, plan.n_tried,
	       plan.is_whole ? "true" : "false", released, missed, checksum(&plan, n));
	fflush(stdout);
}

/* ---- the sets ---- */

static void plan_measured(const char *folder) {
	FILE *f = measured_open(folder, "steer-tasks.csv");
	struct plan_task tasks[MODEL_TASKS_MAX];
	char line[512], name[64] = "";
	unsigned n = 0;

	while (fgets(line, sizeof(line), f)) {
		char u[16], set[32], work[32], this[64];
		uint64_t period, deadline;

		if (sscanf(line, "mixed,steer,%15[^,],%31[^,],%*u,%31[^,],%" SCNu64 ",%" SCNu64, u,
			   set, work, &period, &deadline) != 5 ||
		    measured_work(work) == MEASURED_WORKS) {
			continue;
		}
		snprintf(this, sizeof(this), "%s:%s", u, set);
		if (n > 0 && (strcmp(this, name) != 0 || n == MODEL_TASKS_MAX)) {
			plan(name, tasks, n);
			n = 0;
		}
		memcpy(name, this, sizeof(name));
		tasks[n++] = measured_task(measured_work(work), period, deadline);
	}
	if (n > 0) {
		plan(name, tasks, n);
	}
	fclose(f);
}

static double draw(uint64_t *random) {
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*random >> 33) + 1) / 2147483649.0;
}

/* Utilisations that add up to 2.0 (UUniFast), deadlines of half the period. */
static void plan_random(unsigned n, uint64_t seed) {
	struct plan_task tasks[MODEL_TASKS_MAX];
	uint64_t random = n * 1000 + seed;
	char name[64];
	double left = 2;

	for (unsigned i = 0; i < n; i++) {
		size_t work = (size_t)(draw(&random) * MEASURED_WORKS) % MEASURED_WORKS;
		double next = i + 1 < n ? left * pow(draw(&random), 1.0 / (n - i - 1)) : 0;
		const struct profile_table *p = measured_profile(work);
		double whole = (double)(p->exec[MEASURED_SMS] + p->copy_in + p->copy_out);
		double period = whole / fmax(left - next, 0.002);

		tasks[i] = measured_task(work, (nsec_t)period, (nsec_t)(period / 2));
		left = next;
	}
	snprintf(name, sizeof(name), "random:%" PRIu64, seed);
	plan(name, tasks, n);
}

int main(int argc, char **argv) {
	static const unsigned sizes[] = {6, 10, 20};

	if (argc < 2) {
		fprintf(stderr, "usage: bench-steer DATA [TASKS...]\n");
		return 2;
	}
	measured_read(argv[1]);
	plan_measured(argv[1]);
	for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++) {
		unsigned n = argc > 2 ? (unsigned)atoi(argv[i + 2]) : sizes[i];

		for (uint64_t seed = 1; n > 0 && n <= MODEL_TASKS_MAX && seed <= SETS_EACH;
		     seed++) {
			plan_random(n, seed);
		}
	}
	return 0;
}
