/*
 * gantt.h: a schedule as the papers draw it: SMs up, time across, releases and deadlines marked.
 */
#pragma once

#include <stdio.h>

#include "client/sim/simulation.h"

/* Writes SVG. Errors of the stream are left to whoever closes it. */
void gantt_write(const struct simulation *s, const struct scenario *scenario, FILE *out);
