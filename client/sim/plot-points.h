/*
 * plot-points.h: what others found, to be drawn beside a sweep's own curves: the points of a CSV
 * file with the columns policy, utilisation, miss_ratio and energy_j, as --csv writes them. A value
 * that is not known is left empty.
 */
#pragma once

#include "client/sim/sweep.h"

#define PLOT_POINTS_MAX 2000

struct plot_point {
	size_t policy; /* index of the sweep's */
	double u;
	double miss_ratio, energy_j; /* NAN: not known */
};

struct plot_points {
	struct plot_point *list; /* owned */
	size_t n;
};

/* Points of policies or utilisations that the sweep @s does not have are left out. Return: 0;
 * -EINVAL, -EIO with one line in @error; -ENOMEM. */
int plot_points_read(struct plot_points *ret, const char *path, const struct sweep *s, char *error,
		     size_t error_size);
void plot_points_deinit(struct plot_points *p);
