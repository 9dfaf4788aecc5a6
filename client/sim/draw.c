/* draw.c: see draw.h. */
#include "client/sim/draw.h"

#include <math.h>

#include "daemon/sim/sim.h"

double draw(uint64_t *random) {
	return (double)(sim_random(random) >> 11) * 0x1p-53;
}

double draw_between(uint64_t *random, double low, double high) {
	return low + (high - low) * draw(random);
}

void draw_uunifast(double sum, unsigned n, uint64_t *random, double *ret) {
	for (unsigned i = 0; i + 1 < n; i++) {
		double rest = sum * pow(draw(random), 1.0 / (n - i - 1));

		ret[i] = sum - rest;
		sum = rest;
	}
	ret[n - 1] = sum;
}
