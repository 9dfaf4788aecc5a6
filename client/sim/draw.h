/*
 * draw.h: random numbers of random task sets. The state is that of sim_random().
 */
#pragma once

#include <stdint.h>

/* Even in [0, 1). */
double draw(uint64_t *random);

/* Even in [low, high). */
double draw_between(uint64_t *random, double low, double high);

/* Bini and Buttazzo's UUniFast: even among all @n numbers from 0 that add up to @sum. */
void draw_uunifast(double sum, unsigned n, uint64_t *random, double *ret);
