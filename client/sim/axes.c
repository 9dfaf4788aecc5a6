/* axes.c: see axes.h. */
#include "client/sim/axes.h"

#include <math.h>

#include "client/sim/svg.h"

double axes_x(const struct axes *a, double x) {
	double range = a->x_high > a->x_low ? a->x_high - a->x_low : 1;

	return a->left + a->width * (x - a->x_low) / range;
}

double axes_y(const struct axes *a, double value) {
	return a->top + a->height * (1 - (value - a->low) / (a->high - a->low));
}

void axes_draw(const struct axes *a, const char *x_name, const char *name) {
	double bottom = a->top + a->height, right = a->left + a->width;
	double step = svg_tick(a->high - a->low, 8);
	double x_step = svg_tick(a->x_high - a->x_low, 10);
	char text[32];

	for (double v = a->low; v <= a->high + step / 100; v += step) {
		svg_line(a->out, a->left, axes_y(a, v), right, axes_y(a, v), 0.5, "#cccccc");
		snprintf(text, sizeof(text), "%.6g", v);
		svg_text(a->out, a->left - 6, axes_y(a, v) + 4, 10.5, SVG_END, text);
	}
	for (double x = ceil(a->x_low / x_step - 0.001) * x_step + 0.0;
	     x <= a->x_high + x_step / 100; x += x_step) {
		svg_line(a->out, axes_x(a, x), bottom, axes_x(a, x), bottom + 4, 1, "#000000");
		snprintf(text, sizeof(text), "%.4g", x);
		svg_text(a->out, axes_x(a, x), bottom + 17, 10.5, SVG_MIDDLE, text);
	}
	svg_line(a->out, a->left, a->top, a->left, bottom, 1.2, "#000000");
	svg_line(a->out, a->left, bottom, right, bottom, 1.2, "#000000");
	svg_text(a->out, a->left + a->width / 2, bottom + 36, 12, SVG_MIDDLE, x_name);
	svg_text_upright(a->out, a->left - 46, a->top + a->height / 2, 12, name);
}
