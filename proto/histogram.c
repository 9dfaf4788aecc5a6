/* histogram.c: see histogram.h. */
#include "proto/histogram.h"

_Static_assert(HISTOGRAM_LOWEST == 1 << 10, "the first octave begins at 2^10 ns");
_Static_assert(HISTOGRAM_PARTS == 1 << 4, "a part is found by four bits");

size_t histogram_bucket(nsec_t time) {
	unsigned octave, part;

	if (time < HISTOGRAM_LOWEST) {
		return 0;
	}
	octave = 63u - (unsigned)__builtin_clzll(time) - 10;
	if (octave >= HISTOGRAM_OCTAVES) {
		return HISTOGRAM_BUCKETS - 1;
	}
	part = (unsigned)(time >> (octave + 6)) & (HISTOGRAM_PARTS - 1);
	return 1 + octave * HISTOGRAM_PARTS + part;
}

nsec_t histogram_middle(size_t bucket) {
	size_t octave, part;
	nsec_t width;

	if (bucket == 0) {
		return HISTOGRAM_LOWEST / 2;
	}
	octave = (bucket - 1) / HISTOGRAM_PARTS;
	part = (bucket - 1) % HISTOGRAM_PARTS;
	width = (nsec_t)1 << (octave + 6);
	return (HISTOGRAM_PARTS + part) * width + width / 2;
}

void histogram_add(struct histogram *h, size_t bucket, uint32_t n) {
	uint32_t left = UINT32_MAX - h->counts[bucket];

	h->counts[bucket] += n < left ? n : left;
}

uint64_t histogram_count(const struct histogram *h) {
	uint64_t n = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		n += h->counts[i];
	}
	return n;
}

nsec_t histogram_percentile(const struct histogram *h, unsigned percent) {
	uint64_t n = histogram_count(h), wanted = (n * percent + 99) / 100, seen = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->counts[i];
		if (n > 0 && seen >= wanted) {
			return histogram_middle(i);
		}
	}
	return 0;
}
