/*
 * plot.h: a sweep as two curves a policy: misses and energy over utilisation.
 */
#pragma once

#include <stdio.h>

#include "client/sim/plot-points.h"
#include "client/sim/select.h"

/* @points: drawn beside the curves as large hollow markers, without lines; @notes: sentences that
 * stand below them. Either may have none. Writes SVG. Errors of the stream are left to whoever
 * closes it. */
void plot_write(const struct sweep *s, const struct sweep_result *result,
		const struct plot_points *points, const struct select_words *notes, FILE *out);
