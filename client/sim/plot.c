/* plot.c: see plot.h. */
#include "client/sim/plot.h"

#include <math.h>

#include "client/sim/axes.h"
#include "client/sim/svg.h"

#define PANEL_WIDTH  430.0
#define PANEL_HEIGHT 330.0
#define LEFT	     64.0
#define TOP	     44.0
#define GAP	     80.0
#define LEGEND	     170.0
#define BOTTOM	     62.0
#define NOTE	     17.0

/* One of the two pictures. */
struct panel {
	const struct sweep *s;
	const struct plot_points *points;
	struct axes axes;
};

static double value_of(const struct sweep_cell *c, bool energy) {
	return energy ? c->energy_j : c->miss_ratio * 100;
}

static double point_value(const struct plot_point *point, bool energy) {
	return energy ? point->energy_j : point->miss_ratio * 100;
}

/* Room for all values: misses from 0, energy from a round number below the least. */
static void choose_range(struct panel *p, const struct sweep_result *result, bool energy) {
	double low = INFINITY, high = 0, step;

	for (size_t i = 0; i < p->s->n_points * p->s->n_policies; i++) {
		low = fmin(low, value_of(&result->cells[i], energy));
		high = fmax(high, value_of(&result->cells[i], energy));
	}
	for (size_t i = 0; i < p->points->n; i++) { /* fmin() and fmax() leave NAN out */
		low = fmin(low, point_value(&p->points->list[i], energy));
		high = fmax(high, point_value(&p->points->list[i], energy));
	}
	low = energy ? low : 0;
	step = svg_tick(high - low, 8);
	p->axes.low = floor(low / step) * step;
	p->axes.high = ceil(high / step) * step;
	if (p->axes.high <= p->axes.low) {
		p->axes.high = p->axes.low + step;
	}
}

static void draw_panel(struct panel *p, const struct sweep_result *result, bool energy) {
	double x[SWEEP_POINTS_MAX], y[SWEEP_POINTS_MAX];
	const struct sweep *s = p->s;

	choose_range(p, result, energy);
	axes_draw(&p->axes, s->rules.heavy ? "share of heavy tasks" : "utilisation of the task set",
		  energy	   ? "mean energy in J"
		  : s->rules.heavy ? "mean deadline misses of light tasks in %"
				   : "mean deadline misses in %");
	for (size_t policy = 0; policy < s->n_policies; policy++) {
		for (size_t i = 0; i < s->n_points; i++) {
			x[i] = axes_x(&p->axes, s->u[i]);
			y[i] = axes_y(&p->axes,
				      value_of(&result->cells[i * s->n_policies + policy], energy));
		}
		svg_curve(p->axes.out, x, y, s->n_points, (unsigned)policy);
	}
	for (size_t i = 0; i < p->points->n; i++) {
		const struct plot_point *point = &p->points->list[i];
		double value = point_value(point, energy);

		if (!isnan(value)) {
			svg_point(p->axes.out, axes_x(&p->axes, point->u), axes_y(&p->axes, value),
				  (unsigned)point->policy);
		}
	}
}

static bool has_points(const struct plot_points *points, size_t policy) {
	for (size_t i = 0; i < points->n; i++) {
		if (points->list[i].policy == policy) {
			return true;
		}
	}
	return false;
}

static void draw_legend(const struct sweep *s, const struct plot_points *points, FILE *out,
			double left) {
	double below = TOP + 10 + 21 * (double)s->n_policies;

	for (size_t policy = 0; policy < s->n_policies; policy++) {
		if (has_points(points, policy)) {
			svg_point(out, left + 19, below, (unsigned)policy);
			svg_text(out, left + 46, below + 4, 11, SVG_START,
				 s->policies[policy]->name);
			svg_text(out, left + 46, below + 17, 10, SVG_START, "as given to compare");
			below += 34;
		}
	}
	for (size_t policy = 0; policy < s->n_policies; policy++) {
		double y = TOP + 10 + 21 * (double)policy;
		double xs[] = {left, left + 19, left + 38}, ys[] = {y, y, y};

		svg_curve(out, xs, ys, 3, (unsigned)policy);
		svg_text(out, left + 46, y + 4, 11, SVG_START, s->policies[policy]->name);
	}
}

/* What stands in the legend, in lines of 21. */
static double legend_height(const struct sweep *s, const struct plot_points *points) {
	double height = 21 * (double)s->n_policies;

	for (size_t policy = 0; policy < s->n_policies; policy++) {
		height += has_points(points, policy) ? 34 : 0;
	}
	return height;
}

void plot_write(const struct sweep *s, const struct sweep_result *result,
		const struct plot_points *points, const struct select_words *notes, FILE *out) {
	struct panel p = {
		.s = s,
		.points = points,
		.axes = {.out = out,
			 .left = LEFT,
			 .top = TOP,
			 .width = PANEL_WIDTH,
			 .height = PANEL_HEIGHT,
			 .x_low = s->u[0],
			 .x_high = s->u[s->n_points - 1]},
	};
	double legend = LEFT + 2 * PANEL_WIDTH + GAP + 20;
	double needed = TOP + 10 + legend_height(s, points) + 10;
	double below = TOP + PANEL_HEIGHT + BOTTOM;
	double height = fmax(below + NOTE * (double)notes->n, needed);
	char title[160], text[32], size[32] = "";

	if (!s->rules.heavy) {
		snprintf(size, sizeof(size), " of %u tasks", s->rules.n_tasks);
	}
	units_print_nsec(s->duration, text, sizeof(text));
	snprintf(title, sizeof(title), "%u task sets%s a point, %s each", s->n_tasksets, size,
		 text);
	svg_begin(out, legend + LEGEND, height, title);
	draw_panel(&p, result, false);
	p.axes.left = LEFT + PANEL_WIDTH + GAP;
	draw_panel(&p, result, true);
	draw_legend(s, points, out, legend);
	for (size_t i = 0; i < notes->n; i++) {
		svg_text(out, LEFT, below + NOTE * (double)i, 11.5, SVG_START, notes->list[i]);
	}
	svg_end(out);
}
