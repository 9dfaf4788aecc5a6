/*
 * response-plot.h: a sweep of response-time analysis as curves, one a method.
 */
#pragma once

#include <stdio.h>

#include "client/sim/rta-sweep.h"

/* @notes: sentences that stand below the curves. Writes SVG. Errors of the stream are left to
 * whoever closes it. */
void response_plot_write(const struct rta_sweep *s, const struct rta_sweep_result *result,
			 const struct select_words *notes, FILE *out);
