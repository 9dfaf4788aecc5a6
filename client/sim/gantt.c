/* gantt.c: see gantt.h. */
#include "client/sim/gantt.h"

#include <string.h>

#include "client/sim/svg.h"

#define WIDTH	     1000.0
#define LEFT	     110.0
#define RIGHT	     20.0
#define TOP	     36.0
#define PANEL_HEIGHT 170.0
#define PANEL_GAP    26.0
#define ROW_HEIGHT   30.0
#define BOTTOM	     44.0

struct gantt {
	const struct simulation *s;
	const struct scenario *scenario;
	FILE *out;
};

static double x_of(const struct gantt *g, nsec_t t) {
	return LEFT + (WIDTH - LEFT - RIGHT) * (double)t / (double)g->s->duration;
}

/* Upper edge of SM @sm's place in panel @gpu: SM 0 is at the bottom. */
static double y_of(const struct gantt *g, unsigned gpu, unsigned sm) {
	unsigned n = g->scenario->gpus[gpu].model.power.n_sms;

	return TOP + gpu * (PANEL_HEIGHT + PANEL_GAP) + PANEL_HEIGHT * (n - sm) / n;
}

/* Copies are white, the kernel has its task's pattern. */
static void draw_part(const struct gantt *g, const struct sim_segment *s, unsigned first,
		      unsigned n) {
	double top = y_of(g, s->gpu, first + n), height = y_of(g, s->gpu, first) - top;
	double from = x_of(g, s->start), to = x_of(g, s->end);
	double kernel_from = x_of(g, s->kernel_start), kernel_to = x_of(g, s->kernel_end);

	svg_box(g->out, from, top, to - from, height, -1);
	svg_box(g->out, kernel_from, top, kernel_to - kernel_from, height, (int)s->task);
}

static void draw_label(const struct gantt *g, const struct sim_segment *s, unsigned first,
		       unsigned n) {
	double top = y_of(g, s->gpu, first + n), height = y_of(g, s->gpu, first) - top;
	double width = x_of(g, s->kernel_end) - x_of(g, s->kernel_start), x;
	char text[128];
	double needed;

	snprintf(text, sizeof(text), "%s,%llu", g->scenario->task_names[s->task],
		 (unsigned long long)s->job + 1);
	needed = 6.4 * (double)strlen(text) + 6;
	if (needed > width || height < 13) {
		return;
	}
	x = (x_of(g, s->kernel_start) + x_of(g, s->kernel_end)) / 2;
	fprintf(g->out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"13\" fill=\"#ffffff\"/>\n",
		x - needed / 2, top + height / 2 - 6.5, needed);
	svg_text(g->out, x, top + height / 2 + 4, 10.5, SVG_MIDDLE, text);
}

/* A set of SMs may lie in pieces; the name goes onto the first one. */
static void draw_segment(const struct gantt *g, const struct sim_segment *s) {
	bool labelled = false;
	int sm = smset_next(&s->sms, 0);

	while (sm >= 0) {
		unsigned n = 1;

		while (smset_has(&s->sms, (unsigned)sm + n) && (unsigned)sm + n < PROTO_SMS_MAX) {
			n++;
		}
		draw_part(g, s, (unsigned)sm, n);
		if (!labelled) {
			draw_label(g, s, (unsigned)sm, n);
			labelled = true;
		}
		sm = (unsigned)sm + n < PROTO_SMS_MAX ? smset_next(&s->sms, (unsigned)sm + n) : -1;
	}
}

static void draw_panel(const struct gantt *g, unsigned gpu) {
	const struct scenario_gpu *of = &g->scenario->gpus[gpu];
	unsigned n = of->model.power.n_sms, step = (unsigned)svg_tick(n, 6);
	double top = y_of(g, gpu, n), bottom = y_of(g, gpu, 0);
	char text[128];

	for (unsigned sm = 0; sm <= n; sm += step ? step : 1) {
		double y = y_of(g, gpu, sm);

		svg_line(g->out, LEFT - 4, y, LEFT, y, 1, "#000000");
		snprintf(text, sizeof(text), "%u", sm);
		svg_text(g->out, LEFT - 7, y + 4, 10, SVG_END, text);
	}
	if (of->model.limit < n) {
		double y = y_of(g, gpu, of->model.limit);

		fprintf(g->out,
			"<path d=\"M%.2f %.2fH%.2f\" stroke=\"#000000\" stroke-dasharray=\"2 3\" "
			"stroke-width=\"0.8\"/>\n",
			LEFT, y, WIDTH - RIGHT);
	}
	svg_line(g->out, LEFT, top, LEFT, bottom, 1.2, "#000000");
	svg_line(g->out, LEFT, bottom, WIDTH - RIGHT, bottom, 1.2, "#000000");
	snprintf(text, sizeof(text), "SMs of %s", of->name);
	svg_text_upright(g->out, 60, (top + bottom) / 2, 11, text);
}

/* A row of arrows: up for releases, down for deadlines. */
static void draw_task(const struct gantt *g, size_t index, double y) {
	const struct sched_task *t = &g->scenario->tasks[index];

	svg_box(g->out, 12, y - 15, 18, 12, (int)index);
	svg_text(g->out, 36, y - 5, 10.5, SVG_START, g->scenario->task_names[index]);
	svg_line(g->out, LEFT, y, WIDTH - RIGHT, y, 0.5, "#777777");
	for (nsec_t r = t->first_release; r < g->s->duration; r += t->period) {
		svg_arrow(g->out, x_of(g, r), y, 20, true);
		if (t->deadline && r + t->deadline <= g->s->duration) {
			svg_arrow(g->out, x_of(g, r + t->deadline), y - 20, 20, false);
		}
		if (t->period == 0) {
			break;
		}
	}
}

static void draw_time(const struct gantt *g, double y) {
	double ms = (double)g->s->duration / NSEC_PER_MSEC, step = svg_tick(ms, 12);
	char text[64];

	svg_line(g->out, LEFT, y, WIDTH - RIGHT, y, 1.2, "#000000");
	for (double t = 0; t <= ms * 1.0001; t += step) {
		double x = LEFT + (WIDTH - LEFT - RIGHT) * t / ms;

		svg_line(g->out, x, y, x, y + 4, 1, "#000000");
		snprintf(text, sizeof(text), "%.6g", t);
		svg_text(g->out, x, y + 16, 10, SVG_MIDDLE, text);
	}
	svg_text(g->out, (LEFT + WIDTH - RIGHT) / 2, y + 33, 11, SVG_MIDDLE,
		 "time in ms; arrows: release (up), deadline (down); white: copies");
}

void gantt_write(const struct simulation *s, const struct scenario *scenario, FILE *out) {
	struct gantt g = {s, scenario, out};
	double rows = TOP + (double)scenario->n_gpus * (PANEL_HEIGHT + PANEL_GAP);
	double axis = rows + (double)scenario->n_tasks * ROW_HEIGHT + 8;
	char title[256];

	snprintf(title, sizeof(title), "%s: %llu of %llu jobs missed, %.2f J", s->policy->name,
		 (unsigned long long)s->result.count.missed,
		 (unsigned long long)(s->result.count.released - s->result.count.open),
		 (double)s->result.energy_total_pj / POWER_PJ_PER_J);
	svg_begin(out, WIDTH, axis + BOTTOM, title);
	for (unsigned k = 0; k < scenario->n_gpus; k++) {
		draw_panel(&g, k);
	}
	for (size_t i = 0; i < s->n_segments; i++) {
		draw_segment(&g, &s->segments[i]);
	}
	for (size_t i = 0; i < scenario->n_tasks; i++) {
		draw_task(&g, i, rows + (double)(i + 1) * ROW_HEIGHT);
	}
	draw_time(&g, axis);
	svg_end(out);
}
