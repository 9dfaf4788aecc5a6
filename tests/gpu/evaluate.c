/*
 * evaluate.c: what evaluate.sh can't do in sh: random task sets, running them, the plot, the
 *summary.
 *
 * usage: evaluate tasks SCENARIO STEP N U SEED [WORK...]
 *	N tasks of Table 3.5 with utilisation U, of these works (all), a line each: work period
 *deadline offset (ns) priority level. A task's mean time is that over multiples of STEP SMs. Level:
 *a stream priority, -5 for the shortest deadline, -4 for the next, ..., 0. usage: evaluate cell
 *LEAD_NS WINDOW_NS	runs the commands on standard input, see cell.h usage: evaluate summary
 *TASKS_CSV [COLUMN...] misses by utilisation and column; what tasks miss more under COLUMN (steer)
 *than under mps usage: evaluate plot CSV FAMILY SVG of misses and energy over utilisation, as
 *Figures 2.8 and 2.9
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/sim/plot.h"
#include "client/sim/scenario-file.h"
#include "client/sim/taskset.h"
#include "tests/apps/common.h"
#include "tests/gpu/cell.h"
#include "tests/gpu/summary.h"

#define COLUMNS_MAX 16
#define POINTS_MAX  32

static int level_of(const struct sched_task *set, unsigned n, unsigned task) {
	int rank = 0;

	for (unsigned i = 0; i < n; i++) {
		rank += set[i].deadline < set[task].deadline ||
			(set[i].deadline == set[task].deadline && i < task);
	}
	return rank < 5 ? rank - 5 : 0;
}

/* Profiles that are none of @works are left out. */
static bool *others(const struct scenario *scenario, char *const *works) {
	bool *excluded = app_alloc(scenario->n_profiles, sizeof(*excluded));

	for (size_t i = 0; i < scenario->n_profiles; i++) {
		excluded[i] = *works != NULL;
		for (char *const *work = works; *work; work++) {
			excluded[i] = excluded[i] && strcmp(scenario->profiles[i].name, *work) != 0;
		}
	}
	return excluded;
}

static int tasks(char **args) {
	struct taskset_rules rules;
	struct scenario scenario;
	char error[1024] = "", *text;
	size_t size, profiles[TASKSET_MAX];
	struct sched_task set[TASKSET_MAX];
	bool *excluded;
	unsigned n;

	if (scenario_file_read(args[0], &text, &size) < 0 ||
	    scenario_init(&scenario, args[0], text, size, NULL, NULL, error, sizeof(error)) < 0) {
		fprintf(stderr, "evaluate: cannot read '%s': %s\n", args[0], error);
		return 1;
	}
	taskset_rules_default(&rules, &scenario);
	excluded = others(&scenario, args + 5);
	rules.excluded = excluded;
	rules.reference_step = (unsigned)strtoul(args[1], NULL, 10);
	rules.n_tasks = (unsigned)strtoul(args[2], NULL, 10);
	if (rules.reference_step == 0 || rules.n_tasks == 0 || rules.n_tasks > TASKSET_MAX ||
	    taskset_make(&scenario, &rules, strtod(args[3], NULL), strtoull(args[4], NULL, 10), set,
			 profiles, &n) < 0) {
		fprintf(stderr, "evaluate: there is no such task set\n");
		return 1;
	}
	for (unsigned i = 0; i < n; i++) {
		printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d\n",
		       scenario.profiles[profiles[i]].name, set[i].period, set[i].deadline,
		       set[i].first_release, (int)set[i].spec.priority, level_of(set, n, i));
	}
	free(excluded);
	scenario_deinit(&scenario);
	free(text);
	return 0;
}

/* What the CSV says of one column and utilisation: sums over the task sets. */
struct cell {
	double misses, energy;
	unsigned n;
};

struct table {
	struct sched_policy columns[COLUMNS_MAX];
	char names[COLUMNS_MAX][32];
	struct cell cells[POINTS_MAX][COLUMNS_MAX];
	struct sweep sweep;
};

static size_t column_of(struct table *t, const char *name) {
	size_t i = 0;

	while (i < t->sweep.n_policies && strcmp(t->names[i], name) != 0) {
		i++;
	}
	if (i == t->sweep.n_policies && i < COLUMNS_MAX) {
		snprintf(t->names[i], sizeof(t->names[i]), "%s", name);
		t->columns[i].name = t->names[i];
		t->sweep.policies[i] = &t->columns[i];
		t->sweep.n_policies++;
	}
	return i;
}

/* Points stand in rising order; a new one moves those above it. */
static size_t point_of(struct table *t, double u) {
	size_t i = 0, n = t->sweep.n_points;

	while (i < n && t->sweep.u[i] < u - 1e-6) {
		i++;
	}
	if (i < n && t->sweep.u[i] < u + 1e-6) {
		return i;
	}
	if (n == POINTS_MAX) {
		return n;
	}
	memmove(&t->sweep.u[i + 1], &t->sweep.u[i], (n - i) * sizeof(t->sweep.u[0]));
	memmove(&t->cells[i + 1], &t->cells[i], (n - i) * sizeof(t->cells[0]));
	memset(&t->cells[i], 0, sizeof(t->cells[i]));
	t->sweep.u[i] = u;
	t->sweep.n_points++;
	return i;
}

/* Lines that are none of ours, such as the first, are passed over. */
static void read_line(struct table *t, const char *line, const char *family) {
	unsigned n_tasks, released, completed, missed;
	double u, window, energy;
	char name[32], from[32];
	size_t c, p;

	if (sscanf(line, "%31[^,],%31[^,],%lf,%*u,%u,%lf,%u,%u,%u,%*f,%*f,%*f,%lf", from, name, &u,
		   &n_tasks, &window, &released, &completed, &missed, &energy) != 9 ||
	    strcmp(from, family) != 0) {
		return;
	}
	c = column_of(t, name);
	p = point_of(t, u);
	if (c < COLUMNS_MAX && p < POINTS_MAX) {
		t->cells[p][c].misses += released ? (double)missed / released : 0;
		t->cells[p][c].energy += energy;
		t->cells[p][c].n++;
		t->sweep.rules.n_tasks = n_tasks;
		t->sweep.duration = (nsec_t)(window * 1e9);
	}
}

static int plot(const char *path, const char *family) {
	struct table *t = app_alloc(1, sizeof(*t));
	FILE *f = fopen(path, "re");
	struct plot_points points = {0};
	struct select_words notes = {0};
	struct sweep_result result;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		read_line(t, line, family);
	}
	if (f) {
		fclose(f);
	}
	if (t->sweep.n_points == 0) {
		fprintf(stderr, "evaluate: nothing to plot in '%s'\n", path);
		free(t);
		return 1;
	}
	result.cells = app_alloc(t->sweep.n_points * t->sweep.n_policies, sizeof(*result.cells));
	for (size_t p = 0; p < t->sweep.n_points; p++) {
		for (size_t c = 0; c < t->sweep.n_policies; c++) {
			const struct cell *cell = &t->cells[p][c];
			struct sweep_cell *to = &result.cells[p * t->sweep.n_policies + c];

			to->miss_ratio = cell->n ? cell->misses / cell->n : 0;
			to->energy_j = cell->n ? cell->energy / cell->n : 0;
			t->sweep.n_tasksets =
				cell->n > t->sweep.n_tasksets ? cell->n : t->sweep.n_tasksets;
		}
	}
	plot_write(&t->sweep, &result, &points, &notes, stdout);
	free(result.cells);
	free(t);
	return 0;
}

int main(int argc, char **argv) {
	if (argc >= 7 && strcmp(argv[1], "tasks") == 0) {
		return tasks(argv + 2);
	}
	if (argc == 4 && strcmp(argv[1], "cell") == 0) {
		return cell_run(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	}
	if (argc >= 3 && strcmp(argv[1], "summary") == 0) {
		return summary_print(argv[2], argv + 3);
	}
	if (argc == 4 && strcmp(argv[1], "plot") == 0) {
		return plot(argv[2], argv[3]);
	}
	fprintf(stderr, "usage: see the head of evaluate.c\n");
	return 2;
}
