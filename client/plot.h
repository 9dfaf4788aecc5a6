/*
 * plot.h: a sweep as two curves a policy: misses and energy over utilisation.
 */
#pragma once

#include <stdio.h>

#include "client/sweep.h"

/* Writes SVG. Errors of the stream are left to whoever closes it. */
void plot_write(const struct sweep *s, const struct sweep_result *result, FILE *out);
