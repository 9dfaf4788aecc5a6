/*
 * svg.h: the few shapes that our pictures are made of, as SVG 1.1.
 *
 * Everything is black on white and told apart by patterns, dashes and markers, so that it survives
 * a photocopy; colour only helps. Errors of the stream are left to whoever closes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SVG_PATTERNS 8
#define SVG_MARKERS  8

enum svg_anchor {
	SVG_START,
	SVG_MIDDLE,
	SVG_END,
};

void svg_begin(FILE *out, double width, double height, const char *title);
void svg_end(FILE *out);

/* The text may hold anything: it is escaped. */
void svg_text(FILE *out, double x, double y, double size, enum svg_anchor anchor, const char *text);

/* Turned by 90 degrees, around its middle: the name of an upright axis. */
void svg_text_upright(FILE *out, double x, double y, double size, const char *text);
void svg_line(FILE *out, double x1, double y1, double x2, double y2, double width,
	      const char *colour);

/* @pattern: 0 to SVG_PATTERNS - 1; others repeat. -1: white. */
void svg_box(FILE *out, double x, double y, double width, double height, int pattern);

/* Upwards from (x, y), or downwards; @length includes the head. */
void svg_arrow(FILE *out, double x, double y, double length, bool up);

/* A line through points, then its markers; style @index of a plot's line. */
void svg_curve(FILE *out, const double *x, const double *y, size_t n, unsigned index);

/* What the markers of line @index look like, but large and thin: a point that others found. */
void svg_point(FILE *out, double x, double y, unsigned index);

/* About @wanted steps for [0, range]: 1, 2 or 5 times a power of ten. */
double svg_tick(double range, unsigned wanted);
