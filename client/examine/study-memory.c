/*
 * study-memory.c: how long walks through copied, zero-copy and unified memory take, and copies.
 *
 * A walk follows links, each of which depends on the one before, in 2 blocks of 32 threads, as in
 * the paper: every thread begins in a part of its own. In order, a link leads to the next word;
 * random ones are one circle through all words, so that no thread comes back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examine/children.h"
#include "client/examine/driver.h"
#include "client/examine/study.h"

#define BLOCKS	2
#define THREADS 32
#define TRIES	3

struct shared {
	struct study_options o;
	bool has[STUDY_MEMORIES];
	size_t n_copies;
	struct {
		uint64_t bytes, in_ns, out_ns;
	} copies[STUDY_COPIES];
	uint64_t samples[]; /* [walk][memory][run * BLOCKS + block] */
};

static size_t n_samples(const struct study_options *o) {
	return (size_t)o->runs * BLOCKS;
}

static uint64_t *samples_of(uint64_t *samples, const struct study_options *o, int walk, int kind) {
	return samples + ((size_t)walk * STUDY_MEMORIES + (size_t)kind) * n_samples(o);
}

/* ---- links ---- */

static uint64_t random_next(uint64_t *state) { /* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* One circle through all words, by Sattolo. */
static void link_randomly(uint32_t *words, uint64_t n) {
	uint64_t state = 1;

	for (uint64_t i = 0; i < n; i++) {
		words[i] = (uint32_t)i;
	}
	for (uint64_t i = n - 1; i > 0; i--) {
		uint64_t j = random_next(&state) % i;
		uint32_t word = words[i];

		words[i] = words[j];
		words[j] = word;
	}
}

static void link_in_order(uint32_t *words, uint64_t n) {
	for (uint64_t i = 0; i < n; i++) {
		words[i] = (uint32_t)((i + 1) % n);
	}
}

/* ---- walks ---- */

struct memory {
	driver_memory data;
	void *host; /* of zero-copy and unified memory: the same, as the CPU sees it */
};

static int memory_make(struct driver *d, enum study_memory_kind kind, uint64_t bytes,
		       struct memory *ret) {
	struct memory m = {.host = NULL};
	int r;

	switch (kind) {
	case STUDY_ZERO_COPY:
		r = driver_check(d,
				 d->alloc_host(&m.host, bytes, DRIVER_PORTABLE | DRIVER_DEVICEMAP),
				 "allocating zero-copy memory");
		r = r < 0 ? r
			  : driver_check(d, d->host_pointer(&m.data, m.host, 0),
					 "mapping zero-copy memory");
		break;
	case STUDY_UNIFIED:
		r = driver_check(d, d->alloc_managed(&m.data, bytes, DRIVER_ATTACH_GLOBAL),
				 "allocating unified memory");
		m.host = (void *)(uintptr_t)m.data;
		break;
	default:
		r = driver_check(d, d->alloc(&m.data, bytes), "allocating memory");
	}
	if (r == 0) {
		*ret = m;
	}
	return r;
}

static void memory_release(struct driver *d, enum study_memory_kind kind, struct memory *m) {
	if (kind == STUDY_ZERO_COPY) {
		d->free_host(m->host);
	} else {
		d->free(m->data);
	}
}

static int memory_fill(struct driver *d, const struct memory *m, const uint32_t *words,
		       uint64_t bytes) {
	if (m->host) {
		memcpy(m->host, words, bytes);
		return 0;
	}
	return driver_check(d, d->copy_in(m->data, words, bytes, NULL), "copying");
}

static int walk(struct driver *d, const struct study_options *o, const struct memory *m,
		driver_memory records, uint64_t *samples) {
	struct experiment_block blocks[BLOCKS];
	int r = 0;

	for (unsigned run = 0; r == 0 && run <= o->runs; run++) { /* the first one warms up */
		if ((r = driver_launch(d, d->walk, BLOCKS, THREADS, 0, NULL, records, o->steps,
				       m->data, o->bytes / sizeof(uint32_t))) < 0 ||
		    (r = driver_check(d, d->copy_out(blocks, records, sizeof(blocks), NULL),
				      "copying")) < 0 ||
		    (r = driver_check(d, d->synchronize(), "walking through memory")) < 0) {
			return r;
		}
		for (unsigned b = 0; run > 0 && b < BLOCKS; b++) {
			samples[(run - 1) * BLOCKS + b] = blocks[b].end - blocks[b].start;
		}
	}
	return r;
}

static int walk_all(struct driver *d, struct shared *s, uint32_t *words) {
	driver_memory records;
	int r = driver_check(d, d->alloc(&records, BLOCKS * sizeof(struct experiment_block)),
			     "allocating memory");

	for (int pattern = 0; r == 0 && pattern < STUDY_WALKS; pattern++) {
		(pattern == STUDY_RANDOM ? link_randomly
					 : link_in_order)(words, s->o.bytes / sizeof(*words));
		for (int kind = 0; r == 0 && kind < STUDY_MEMORIES; kind++) {
			struct memory m = {.host = NULL};

			if (memory_make(d, (enum study_memory_kind)kind, s->o.bytes, &m) < 0) {
				if (kind != STUDY_COPIED) {
					continue; /* it has none */
				}
				return -EIO;
			}
			r = memory_fill(d, &m, words, s->o.bytes);
			r = r < 0 ? r
				  : walk(d, &s->o, &m, records,
					 samples_of(s->samples, &s->o, pattern, kind));
			s->has[kind] = r == 0;
			memory_release(d, (enum study_memory_kind)kind, &m);
		}
	}
	return r;
}

/* ---- copies ---- */

static int time_copy(struct driver *d, bool in, void *host, driver_memory data, uint64_t bytes,
		     uint64_t *ret) {
	uint64_t best = UINT64_MAX;
	int r = 0;

	for (int i = 0; r == 0 && i < TRIES; i++) {
		nsec_t began = nsec_now(), took;

		r = driver_check(d,
				 in ? d->copy_in(data, host, bytes, NULL)
				    : d->copy_out(host, data, bytes, NULL),
				 "copying");
		r = r < 0 ? r : driver_check(d, d->synchronize(), "copying");
		took = nsec_now() - began;
		best = took < best ? took : best;
	}
	*ret = best;
	return r;
}

static int copy_all(struct driver *d, struct shared *s) {
	driver_memory data;
	void *host;
	int r;

	if ((r = driver_check(d, d->alloc(&data, s->o.bytes), "allocating memory")) < 0 ||
	    (r = driver_check(d, d->alloc_host(&host, s->o.bytes, DRIVER_PORTABLE),
			      "allocating pinned memory")) < 0) {
		return r;
	}
	for (uint64_t bytes = 1024; r == 0 && bytes <= s->o.bytes && s->n_copies < STUDY_COPIES;
	     bytes *= 4) {
		size_t i = s->n_copies++;

		s->copies[i].bytes = bytes;
		r = time_copy(d, true, host, data, bytes, &s->copies[i].in_ns);
		r = r < 0 ? r : time_copy(d, false, host, data, bytes, &s->copies[i].out_ns);
	}
	return r;
}

static int memory_main(void *userdata, unsigned index, char *error, size_t error_size) {
	struct shared *s = userdata;
	uint32_t *words = malloc(s->o.bytes);
	struct driver d;
	int r;

	(void)index;
	if (!words) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	r = driver_open(&d, s->o.gpu, error, error_size);
	r = r < 0 ? r : walk_all(&d, s, words);
	free(words);
	return r < 0 ? r : copy_all(&d, s);
}

int study_memory(struct study_memory *ret, const struct study_options *o, char *error,
		 size_t error_size) {
	size_t n = n_samples(o) * STUDY_WALKS * STUDY_MEMORIES;
	size_t size = sizeof(struct shared) + n * sizeof(uint64_t);
	struct shared *s = children_memory(size);
	struct study_memory m = {.n_copies = 0};
	int r;

	m.samples = calloc(n, sizeof(uint64_t));
	if (!s || !m.samples) {
		snprintf(error, error_size, "out of memory");
		children_memory_free(s, size);
		free(m.samples);
		return -ENOMEM;
	}
	s->o = *o;
	r = children_run(1, memory_main, s, o->limit, error, error_size);
	if (r < 0) {
		free(m.samples);
	} else {
		memcpy(m.samples, s->samples, n * sizeof(uint64_t));
		memcpy(m.has, s->has, sizeof(m.has));
		memcpy(m.copies, s->copies, sizeof(m.copies));
		m.n_copies = s->n_copies;
		for (int walk = 0; walk < STUDY_WALKS; walk++) {
			for (int kind = 0; kind < STUDY_MEMORIES; kind++) {
				struct study_times *t = &m.block[walk][kind];

				t->list = samples_of(m.samples, o, walk, kind);
				t->n = m.has[kind] ? n_samples(o) : 0;
				study_sort(t);
			}
		}
		*ret = m;
	}
	children_memory_free(s, size);
	return r;
}

void study_memory_deinit(struct study_memory *m) {
	free(m->samples);
	*m = (struct study_memory){0};
}
