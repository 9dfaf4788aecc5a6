/* plot-points.c: see plot-points.h. */
#include "client/sim/plot-points.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/csv.h"
#include "client/sim/scenario-file.h"
#include "client/sim/simulated.h"

static int cell_number(const struct csv *c, size_t column, double least, double most, double *ret) {
	const char *text = c->cells[column];
	char *end;
	double value;

	if (!*text) {
		*ret = NAN;
		return 0;
	}
	value = strtod(text, &end);
	if (*end || !(value >= least && value <= most)) {
		return csv_fail(c, "expected a number from %g to %g, found '%s'", least, most,
				text);
	}
	*ret = value;
	return 0;
}

static int read_point(const struct csv *c, const size_t *columns, const struct sweep *s,
		      struct plot_points *p) {
	const char *name = c->cells[columns[0]];
	struct plot_point point = {0};
	int e;

	if (!simulated_find(name)) {
		return csv_fail(c, "expected the name of a policy, found '%s'", name);
	}
	if ((e = cell_number(c, columns[1], 0, 1000, &point.u)) < 0 ||
	    (e = cell_number(c, columns[2], 0, 1, &point.miss_ratio)) < 0 ||
	    (e = cell_number(c, columns[3], 0, 1e12, &point.energy_j)) < 0) {
		return e;
	}
	if (isnan(point.u)) {
		return csv_fail(c, "expected a utilisation, found nothing");
	}
	while (point.policy < s->n_policies && strcmp(s->policies[point.policy]->name, name) != 0) {
		point.policy++;
	}
	if (point.policy == s->n_policies || point.u < s->u[0] || point.u > s->u[s->n_points - 1]) {
		return 0;
	}
	if (p->n == PLOT_POINTS_MAX) {
		return csv_fail(c, "more than %d points", PLOT_POINTS_MAX);
	}
	p->list[p->n++] = point;
	return 0;
}

static int read_points(struct csv *c, const struct sweep *s, struct plot_points *p) {
	static const char *const names[] = {"policy", "utilisation", "miss_ratio", "energy_j",
					    NULL};
	size_t columns[4];
	int e = csv_read_header(c, names, columns);

	while (e == 0 && (e = csv_read_row(c, columns, 4)) > 0) {
		e = read_point(c, columns, s, p);
	}
	return e;
}

int plot_points_read(struct plot_points *ret, const char *path, const struct sweep *s, char *error,
		     size_t error_size) {
	struct plot_points p = {.list = calloc(PLOT_POINTS_MAX, sizeof(*p.list))};
	struct csv *c = calloc(1, sizeof(*c));
	char *text = NULL;
	size_t size;
	int e = p.list && c ? scenario_file_read(path, &text, &size) : -ENOMEM;

	if (e < 0 && e != -ENOMEM) {
		snprintf(error, error_size, "cannot read '%s': %s", path,
			 e == -ENODATA ? "it is empty" : strerror(-e));
		e = -EIO;
	}
	if (e == 0) {
		csv_begin(c, path, text, error, error_size);
		e = read_points(c, s, &p);
	}
	free(text);
	free(c);
	if (e < 0) {
		plot_points_deinit(&p);
		return e;
	}
	*ret = p;
	return 0;
}

void plot_points_deinit(struct plot_points *p) {
	free(p->list);
	*p = (struct plot_points){0};
}
