/* response-plot.c: see response-plot.h. */
#include "client/sim/response-plot.h"

#include <math.h>

#include "client/sim/axes.h"
#include "client/sim/svg.h"

#define WIDTH  470.0
#define HEIGHT 330.0
#define LEFT   64.0
#define TOP    44.0
#define LEGEND 290.0
#define BOTTOM 62.0
#define NOTE   17.0
#define LINE   21.0

static void draw_curve(const struct rta_sweep *s, const struct rta_sweep_result *result,
		       const struct axes *axes, size_t curve) {
	double x[RTA_SWEEP_POINTS_MAX], y[RTA_SWEEP_POINTS_MAX];

	for (size_t i = 0; i < s->n_points; i++) {
		x[i] = axes_x(axes, s->points[i] / 1000.0);
		y[i] = axes_y(axes, rta_sweep_percent(s, result, i, curve));
	}
	svg_curve(axes->out, x, y, s->n_points, (unsigned)curve);
}

void response_plot_write(const struct rta_sweep *s, const struct rta_sweep_result *result,
			 const struct select_words *notes, FILE *out) {
	const struct axes axes = {
		.out = out,
		.left = LEFT,
		.top = TOP,
		.width = WIDTH,
		.height = HEIGHT,
		.x_low = s->points[0] / 1000.0,
		.x_high = s->points[s->n_points - 1] / 1000.0,
		.high = 100,
	};
	double legend = LEFT + WIDTH + 20, below = TOP + HEIGHT + BOTTOM;
	double height =
		fmax(below + NOTE * (double)notes->n, TOP + LINE * (double)s->n_curves + 20);
	char title[64];

	snprintf(title, sizeof(title), "%u sets of tasks a point", s->n_sets);
	svg_begin(out, legend + LEGEND, height, title);
	axes_draw(&axes, random_params[s->x].axis, "schedulable sets in %");
	for (size_t k = 0; k < s->n_curves; k++) {
		double y = TOP + 10 + LINE * (double)k;
		double xs[] = {legend, legend + 19, legend + 38}, ys[] = {y, y, y};

		draw_curve(s, result, &axes, k);
		svg_curve(out, xs, ys, 3, (unsigned)k);
		svg_text(out, legend + 46, y + 4, 11, SVG_START, s->curves[k].name);
	}
	for (size_t i = 0; i < notes->n; i++) {
		svg_text(out, LEFT, below + NOTE * (double)i, 11.5, SVG_START, notes->list[i]);
	}
	svg_end(out);
}
