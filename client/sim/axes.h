/*
 * axes.h: the frame of a diagram: where a value stands in it, its axes with their numbers.
 */
#pragma once

#include <stdio.h>

struct axes {
	FILE *out; /* borrowed; SVG, between svg_begin() and svg_end() */
	double left, top, width, height;
	double x_low, x_high; /* may be the same */
	double low, high;     /* of what is drawn upwards; high is above low */
};

double axes_x(const struct axes *a, double x);
double axes_y(const struct axes *a, double value);
void axes_draw(const struct axes *a, const char *x_name, const char *name);
