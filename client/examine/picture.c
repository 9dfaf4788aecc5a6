/* picture.c: see picture.h. */
#include "client/examine/picture.h"

#include <math.h>
#include <string.h>

#include "client/sim/axes.h"
#include "client/sim/svg.h"

#define WIDTH	900.0
#define LEFT	70.0
#define TOP	44.0
#define SM_H	110.0
#define COPY_H	26.0
#define SMS_MAX 4
#define LANES	64 /* blocks side by side on an SM */

/* ---- timeline ---- */

struct lane {
	uint64_t end;
	unsigned lower, threads;
};

struct drawing {
	FILE *out;
	uint64_t from, to;
	unsigned sm_threads, sms;
	uint32_t sm[SMS_MAX]; /* those that are drawn, by %smid */
};

static double x_of(const struct drawing *d, uint64_t t) {
	return LEFT + (WIDTH - LEFT - 20) * (double)(t - d->from) / (double)(d->to - d->from);
}

static void find_span(struct drawing *d, const struct experiment_run *run) {
	d->from = UINT64_MAX;
	d->to = 0;
	for (size_t i = 0; i < run->n_records; i++) {
		const struct experiment_record *r = &run->records[i];

		if (r->end > 0) {
			uint64_t first = r->launched < r->start ? r->launched : r->start;

			d->from = first < d->from ? first : d->from;
			d->to = r->end > d->to ? r->end : d->to;
		}
	}
	if (d->to <= d->from) {
		d->from = 0;
		d->to = 1;
	}
}

/* The lowest ids that have blocks. */
static void find_sms(struct drawing *d, const struct experiment_run *run) {
	for (;;) {
		uint32_t next = UINT32_MAX;

		for (size_t i = 0; i < run->n_records; i++) {
			for (unsigned b = 0; b < run->records[i].n_blocks; b++) {
				uint32_t sm = run->records[i].blocks[b].sm;

				if (sm < next && (d->sms == 0 || sm > d->sm[d->sms - 1])) {
					next = sm;
				}
			}
		}
		if (next == UINT32_MAX || d->sms == SMS_MAX) {
			return;
		}
		d->sm[d->sms++] = next;
	}
}

/* Lower edge, in threads, of a block that begins at @start: the lowest that is free. */
static unsigned find_lane(struct lane *lanes, size_t *n, const struct experiment_block *block,
			  unsigned threads) {
	unsigned at = 0;
	size_t i = 0, kept = 0;

	for (; i < *n; i++) {
		if (lanes[i].end > block->start) {
			lanes[kept++] = lanes[i];
		}
	}
	*n = kept;
	for (i = 0; i < *n; i++) {
		if (at < lanes[i].lower + lanes[i].threads && lanes[i].lower < at + threads) {
			at = lanes[i].lower + lanes[i].threads;
			i = (size_t)-1; /* all of them again, from there */
		}
	}
	if (*n < LANES) {
		lanes[(*n)++] = (struct lane){block->end, at, threads};
	}
	return at;
}

static void draw_block(const struct drawing *d, double bottom, unsigned lower, unsigned threads,
		       const struct experiment_block *block, const char *name, unsigned index,
		       unsigned pattern) {
	double x = x_of(d, block->start), width = x_of(d, block->end) - x;
	double scale = (SM_H - 8) / (double)d->sm_threads, height = scale * threads;
	double y = bottom - scale * lower - height;
	char text[EXPERIMENT_NAME_MAX + 16];

	svg_box(d->out, x, y, width, height, (int)(pattern % SVG_PATTERNS));
	snprintf(text, sizeof(text), "%s:%u", name, index);
	if (width > 8 * (double)strlen(text) && height > 11) {
		svg_text(d->out, x + width / 2, y + height / 2 + 4, 10, SVG_MIDDLE, text);
	}
}

/* The blocks of one SM, in the order of their start. */
static void draw_sm(const struct drawing *d, const struct experiment *e,
		    const struct experiment_run *run, unsigned row) {
	double bottom = TOP + SM_H * (row + 1);
	struct lane lanes[LANES];
	uint64_t after = 0, after_id = 0;
	size_t n_lanes = 0;
	char text[32];

	snprintf(text, sizeof(text), "SM %u", d->sm[row]);
	svg_text(d->out, LEFT - 8, bottom - SM_H / 2, 11, SVG_END, text);
	svg_line(d->out, LEFT, bottom, WIDTH - 20, bottom, 1, "#000000");
	for (;;) {
		const struct experiment_block *next = NULL;
		uint64_t id = 0, next_id = 0;
		size_t record = 0;

		for (size_t i = 0; i < run->n_records; i++) {
			const struct experiment_record *r = &run->records[i];

			for (unsigned b = 0; b < r->n_blocks; b++, id++) {
				const struct experiment_block *block = &r->blocks[b];

				if (block->sm == d->sm[row] && block->end > block->start &&
				    (block->start > after ||
				     (block->start == after && id >= after_id)) &&
				    (!next || block->start < next->start)) {
					next = block;
					next_id = id;
					record = i;
				}
			}
		}
		if (!next) {
			return;
		}
		after = next->start;
		after_id = next_id + 1;
		draw_block(d, bottom,
			   find_lane(lanes, &n_lanes, next, e->ops[record % e->n_ops].threads),
			   e->ops[record % e->n_ops].threads, next, e->ops[record % e->n_ops].name,
			   (unsigned)(next - run->records[record].blocks),
			   (unsigned)(record % e->n_ops));
	}
}

static void draw_copies(const struct drawing *d, const struct experiment *e,
			const struct experiment_run *run, double top) {
	svg_text(d->out, LEFT - 8, top + COPY_H / 2, 11, SVG_END, "copies in");
	svg_text(d->out, LEFT - 8, top + COPY_H * 3 / 2, 11, SVG_END, "out");
	for (size_t i = 0; i < run->n_records; i++) {
		const struct experiment_record *r = &run->records[i];
		const struct experiment_op *op = &e->ops[i % e->n_ops];
		double y = top + (op->kind == EXPERIMENT_COPY_OUT ? COPY_H : 0);

		if (r->n_blocks > 0 || r->end == 0) {
			continue;
		}
		svg_box(d->out, x_of(d, r->start), y, x_of(d, r->end) - x_of(d, r->start),
			COPY_H - 4, (int)(i % e->n_ops % SVG_PATTERNS));
		svg_text(d->out, (x_of(d, r->start) + x_of(d, r->end)) / 2, y + 14, 9, SVG_MIDDLE,
			 op->name);
	}
}

static void draw_axis(const struct drawing *d, const struct experiment *e,
		      const struct experiment_run *run, double top) {
	double span = (double)(d->to - d->from) / 1e6, step = svg_tick(span, 10);
	char text[32];

	svg_line(d->out, LEFT, top, WIDTH - 20, top, 1, "#000000");
	for (double ms = 0; ms <= span; ms += step) {
		double x = x_of(d, d->from + (uint64_t)(ms * 1e6));

		svg_line(d->out, x, top, x, top + 4, 1, "#000000");
		snprintf(text, sizeof(text), "%.4g", ms);
		svg_text(d->out, x, top + 16, 10, SVG_MIDDLE, text);
	}
	for (size_t i = 0; i < run->n_records; i++) {
		if (run->records[i].end > 0 && run->records[i].n_blocks > 0) {
			double x = x_of(d, run->records[i].launched);

			svg_arrow(d->out, x, top + 44, 20, true);
			svg_text(d->out, x, top + 58, 9, SVG_MIDDLE, e->ops[i % e->n_ops].name);
		}
	}
	svg_text(d->out, LEFT, top + 76, 10, SVG_START,
		 "ms; arrows: launches of kernels; heights: threads of a block");
}

void picture_timeline(const struct experiment *e, const struct experiment_run *run,
		      const struct experiment_gpu *gpu, FILE *out) {
	struct drawing d = {.out = out, .sm_threads = gpu->sm_threads};
	double below;

	find_span(&d, run);
	find_sms(&d, run);
	below = TOP + SM_H * d.sms + 10;
	svg_begin(out, WIDTH, below + 2 * COPY_H + 90, e->name);
	for (unsigned i = 0; i < d.sms; i++) {
		draw_sm(&d, e, run, i);
	}
	draw_copies(&d, e, run, below);
	draw_axis(&d, e, run, below + 2 * COPY_H);
	svg_end(out);
}

/* ---- distributions ---- */

#define POINTS 25 /* of a curve: each has a marker */

void picture_distribution(const char *title, const struct picture_curve *curves, size_t n,
			  FILE *out) {
	struct axes axes = {
		.out = out, .left = LEFT, .top = TOP, .width = 480, .height = 320, .high = 100};
	double legend = LEFT + 480 + 20;
	size_t shown = 0;

	axes.x_low = INFINITY;
	for (size_t i = 0; i < n; i++) {
		const struct study_times *t = curves[i].times;

		if (t->n > 0) {
			double most = (double)t->list[t->n - 1] * curves[i].factor / 1e6;
			double least = (double)t->list[0] * curves[i].factor / 1e6;

			axes.x_high = most > axes.x_high ? most : axes.x_high;
			axes.x_low = least < axes.x_low ? least : axes.x_low;
		}
	}
	axes.x_low = axes.x_high > 0 ? axes.x_low * 0.95 : 0;
	svg_begin(out, legend + 200, TOP + 320 + 60, title);
	axes_draw(&axes, "ms", "at most so long, %");
	for (size_t i = 0; i < n; i++) {
		double x[POINTS], y[POINTS], at = TOP + 10 + 21.0 * (double)shown;
		double xs[] = {legend, legend + 19, legend + 38}, ys[] = {at, at, at};

		if (curves[i].times->n == 0) {
			continue;
		}
		for (unsigned k = 0; k < POINTS; k++) {
			double percent = 100.0 * k / (POINTS - 1);

			x[k] = axes_x(&axes, (double)study_percentile(curves[i].times, percent) *
						     curves[i].factor / 1e6);
			y[k] = axes_y(&axes, percent);
		}
		svg_curve(out, x, y, POINTS, (unsigned)i);
		svg_curve(out, xs, ys, 3, (unsigned)i);
		svg_text(out, legend + 46, at + 4, 11, SVG_START, curves[i].name);
		shown++;
	}
	svg_end(out);
}
