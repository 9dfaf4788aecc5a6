/* costs.c: see costs.h. */
#include "daemon/sim/costs.h"

void costs_add(struct costs *c, nsec_t cost) {
	unsigned octave = cost < 16 ? 0 : 63 - (unsigned)__builtin_clzll(cost);
	unsigned cell =
		octave < 4 ? (unsigned)cost : octave * 16 + (unsigned)((cost >> (octave - 4)) & 15);

	c->cells[cell]++;
	c->n++;
	c->total += cost;
	c->max = cost > c->max ? cost : c->max;
}

/* The upper end of the cell in which it lies; the longest cost ends the last cell. */
nsec_t costs_percentile(const struct costs *c, unsigned permille) {
	uint64_t wanted = c->n * permille / 1000, seen = 0;

	for (unsigned cell = 0; cell < COSTS_CELLS; cell++) {
		seen += c->cells[cell];
		if (seen > wanted) {
			unsigned octave = cell / 16;
			nsec_t end =
				octave < 4 ? cell : (nsec_t)(16 + cell % 16 + 1) << (octave - 4);

			return end < c->max ? end : c->max;
		}
	}
	return c->max;
}
