/* energy.c: see energy.h. */
#include "energy.h"

#include <stdlib.h>

static int compare_times(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a;
	nsec_t y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

uint64_t power_energy_pj(const struct power_gpu *gpu, unsigned index,
			 const struct power_segment *segments, size_t n_segments, nsec_t from,
			 nsec_t to, nsec_t *edges) {
	uint64_t energy = 0;
	size_t n_edges = 0;
	nsec_t t = from;

	for (size_t i = 0; i < n_segments; i++) {
		if (segments[i].gpu == index) {
			edges[n_edges++] = nsec_clamp(segments[i].start, from, to);
			edges[n_edges++] = nsec_clamp(segments[i].end, from, to);
		}
	}
	qsort(edges, n_edges, sizeof(*edges), compare_times);

	/* Between two neighbouring edges nothing changes; after the last one nothing runs. */
	for (size_t e = 0; e < n_edges; e++) {
		uint64_t dynamic_mw = 0;
		unsigned busy = 0;

		if (edges[e] == t) {
			continue;
		}
		for (size_t i = 0; i < n_segments; i++) {
			const struct power_segment *s = &segments[i];

			if (s->gpu == index && s->start <= t && t < s->end) {
				dynamic_mw += s->dynamic_mw;
				busy += s->n_sms;
			}
		}
		energy += power_now_mw(gpu, busy, dynamic_mw) * (edges[e] - t);
		t = edges[e];
	}
	return energy + (uint64_t)gpu->static_mw * (to - t);
}
