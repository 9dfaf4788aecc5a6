/* svg.c: see svg.h. */
#include "client/sim/svg.h"

#include <math.h>

/* Hatches of tasks, from plain to busy; the ground is light so that names can be read on it. */
static const struct {
	const char *ground, *lines;
} patterns[SVG_PATTERNS] = {
	{"#ffffff", "M0 8L8 0M-1 1L1 -1M7 9L9 7"},
	{"#d9d9d9", ""},
	{"#ffffff", "M0 4H8"},
	{"#ffffff", "M0 0L8 8M-1 7L1 9M7 -1L9 1"},
	{"#ffffff", "M4 0V8"},
	{"#eeeeee", "M0 8L8 0M0 0L8 8"},
	{"#b5b5b5", ""},
	{"#ffffff", "M2 2h.8M6 6h.8"},
};

void svg_begin(FILE *out, double width, double height, const char *title) {
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
		"viewBox=\"0 0 %g %g\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
		"<defs>\n",
		width, height, width, height);
	for (int i = 0; i < SVG_PATTERNS; i++) {
		fprintf(out,
			"<pattern id=\"p%d\" width=\"8\" height=\"8\" "
			"patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" "
			"fill=\"%s\"/><path d=\"%s\" stroke=\"#777777\" stroke-width=\"0.8\" "
			"fill=\"none\"/></pattern>\n",
			i, patterns[i].ground, patterns[i].lines);
	}
	fprintf(out, "</defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n");
	svg_text(out, width / 2, 20, 14, SVG_MIDDLE, title);
}

void svg_end(FILE *out) {
	fprintf(out, "</svg>\n");
}

static void escaped(FILE *out, const char *text) {
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			putc((unsigned char)*text < 0x20 ? '?' : *text, out);
			break;
		}
	}
}

void svg_text(FILE *out, double x, double y, double size, enum svg_anchor anchor,
	      const char *text) {
	static const char *const names[] = {"start", "middle", "end"};

	fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"%s\">", x, y, size,
		names[anchor]);
	escaped(out, text);
	fprintf(out, "</text>\n");
}

void svg_text_upright(FILE *out, double x, double y, double size, const char *text) {
	fprintf(out,
		"<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"middle\" "
		"transform=\"rotate(-90 %.2f %.2f)\">",
		x, y, size, x, y);
	escaped(out, text);
	fprintf(out, "</text>\n");
}

void svg_line(FILE *out, double x1, double y1, double x2, double y2, double width,
	      const char *colour) {
	fprintf(out, "<path d=\"M%.2f %.2fL%.2f %.2f\" stroke=\"%s\" stroke-width=\"%g\"/>\n", x1,
		y1, x2, y2, colour, width);
}

void svg_box(FILE *out, double x, double y, double width, double height, int pattern) {
	fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y, width,
		height);
	if (pattern < 0) {
		fprintf(out, "fill=\"#ffffff\"");
	} else {
		fprintf(out, "fill=\"url(#p%d)\"", pattern % SVG_PATTERNS);
	}
	fprintf(out, " stroke=\"#000000\" stroke-width=\"0.8\"/>\n");
}

void svg_arrow(FILE *out, double x, double y, double length, bool up) {
	double tip = up ? y - length : y + length, back = up ? 4 : -4;

	fprintf(out,
		"<path d=\"M%.2f %.2fV%.2fM%.2f %.2fL%.2f %.2fL%.2f %.2f\" stroke=\"#000000\" "
		"stroke-width=\"1\" fill=\"none\"/>\n",
		x, y, tip, x - 2.5, tip + back, x, tip, x + 2.5, tip + back);
}

/* @size: 1 as on a line. Hollow, but for the second round of shapes, and @hollow in any case. */
static void marker(FILE *out, double x, double y, unsigned index, double size, bool hollow,
		   const char *colour) {
	/* drawn in a square of 7 around (0, 0) */
	static const char *const shapes[SVG_MARKERS] = {
		"M-3.5 -3.5h7v7h-7z",
		"M0 -4.2L4 3.2H-4z",
		"M0 -4.5L4.5 0L0 4.5L-4.5 0z",
		"M0 4.2L4 -3.2H-4z",
		"M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
		"M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
		"M-4 0H4M0 -4V4",
		"M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5M0 -4.2V4.2",
	};

	fprintf(out,
		"<path transform=\"translate(%.2f %.2f) scale(%g)\" d=\"%s\" stroke=\"%s\" "
		"stroke-width=\"%.2f\" fill=\"%s\"/>\n",
		x, y, size, shapes[index % SVG_MARKERS], colour, 1.3 / size,
		hollow			  ? "none"
		: index / SVG_MARKERS % 2 ? colour
					  : "#ffffff");
}

void svg_point(FILE *out, double x, double y, unsigned index) {
	marker(out, x, y, index, 1.9, true, "#000000");
}

void svg_curve(FILE *out, const double *x, const double *y, size_t n, unsigned index) {
	static const char *const dashes[] = {"none", "7 3", "2 2", "8 3 2 3", "12 4"};
	/* dark enough to print as black */
	static const char *const colours[] = {"#000000", "#00429d", "#8b0000", "#00602b",
					      "#5b2a86", "#7a4a00", "#444444"};
	const char *colour = colours[index % 7];

	fprintf(out, "<path d=\"");
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s%.2f %.2f", i ? "L" : "M", x[i], y[i]);
	}
	fprintf(out,
		"\" stroke=\"%s\" stroke-width=\"1.4\" stroke-dasharray=\"%s\" fill=\"none\"/>\n",
		colour, dashes[index % 5]);
	for (size_t i = 0; i < n; i++) {
		marker(out, x[i], y[i], index, 1, false, colour);
	}
}

double svg_tick(double range, unsigned wanted) {
	double rough = range / wanted, unit;

	if (!(rough > 0)) {
		return 1;
	}
	unit = pow(10, floor(log10(rough)));
	if (rough <= unit) {
		return unit;
	}
	return rough <= 2 * unit ? 2 * unit : rough <= 5 * unit ? 5 * unit : 10 * unit;
}
