/*
 * study-sharing.c: 1 to 4 programs on one GPU, each with what Stereo Disparity does in the paper:
 * two colour images of 640x533 in, one kernel of blocks of 256 threads that compute for about 70
 * us, a grey image out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examine/children.h"
#include "client/examine/driver.h"
#include "client/examine/study.h"

#define BYTES_IN   (2 * 640 * 533 * 4)
#define BYTES_OUT  (640 * 533)
#define THREADS	   256
#define BLOCK_TIME (70 * NSEC_PER_USEC)
#define ROUNDS_MIN \
	64	 /* on a very slow GPU: what a block's two readings of the clock cost is little */
#define WAVES 4	 /* of blocks that all SMs hold */
#define KEPT  50 /* runs of which the blocks are kept */

struct shared {
	struct children_gate gate;
	struct study_options o;
	atomic_uint n_done;
	unsigned n, n_blocks, kept;
	uint64_t rounds;
	uint64_t *total, *kernel;	 /* [program * runs + run] */
	struct experiment_block *blocks; /* [(program * kept + run) * n_blocks + block] */
};

struct program {
	struct driver d;
	struct driver_stream *stream;
	driver_memory data, records;
	void *host;
};

static int prepare(struct program *p, const struct shared *s) {
	struct driver *d = &p->d;
	int r;

	if ((r = driver_check(d, d->alloc(&p->data, BYTES_IN), "allocating memory")) < 0 ||
	    (r = driver_check(d, d->alloc_host(&p->host, BYTES_IN, DRIVER_PORTABLE),
			      "allocating pinned memory")) < 0 ||
	    (r = driver_check(d,
			      d->alloc(&p->records, s->n_blocks * sizeof(struct experiment_block)),
			      "allocating memory")) < 0) {
		return r;
	}
	return driver_check(d, d->stream(&p->stream, 0), "making a stream");
}

static int step(struct program *p, const struct shared *s, uint64_t *ret_total,
		uint64_t *ret_kernel) {
	struct driver *d = &p->d;
	nsec_t began = nsec_now(), launched, ended;
	int r = driver_check(d, d->copy_in(p->data, p->host, BYTES_IN, p->stream), "copying");

	r = r < 0 ? r : driver_check(d, d->stream_wait(p->stream), "copying");
	launched = nsec_now();
	r = r < 0 ? r
		  : driver_launch(d, d->count, s->n_blocks, THREADS, 0, p->stream, p->records,
				  s->rounds, 0, 0);
	r = r < 0 ? r : driver_check(d, d->stream_wait(p->stream), "waiting for a kernel");
	ended = nsec_now();
	r = r < 0 ? r
		  : driver_check(d, d->copy_out(p->host, p->data, BYTES_OUT, p->stream), "copying");
	r = r < 0 ? r : driver_check(d, d->stream_wait(p->stream), "copying");
	*ret_kernel = ended - launched;
	*ret_total = nsec_now() - began;
	return r;
}

static int program_main(void *userdata, unsigned index, char *error, size_t error_size) {
	struct shared *s = userdata;
	struct program p;
	uint64_t total, kernel;
	int r = driver_open(&p.d, s->o.gpu, error, error_size);

	if (r < 0 || (r = prepare(&p, s)) < 0 || (r = step(&p, s, &total, &kernel)) < 0) {
		return r;
	}
	children_meet(&s->gate, s->n);
	/* Whoever is done goes on until the others are. */
	for (unsigned run = 0; r == 0 && s->n_done < s->n; run++) {
		r = step(&p, s, &total, &kernel);
		if (r < 0 || run >= s->o.runs) {
			continue;
		}
		s->total[index * s->o.runs + run] = total;
		s->kernel[index * s->o.runs + run] = kernel;
		if (run < s->kept) {
			size_t at = (size_t)(index * s->kept + run) * s->n_blocks;

			r = driver_check(&p.d,
					 p.d.copy_out(s->blocks + at, p.records,
						      s->n_blocks * sizeof(struct experiment_block),
						      p.stream),
					 "copying results");
			r = r < 0 ? r
				  : driver_check(&p.d, p.d.stream_wait(p.stream),
						 "copying results");
		}
		if (run + 1 == s->o.runs) {
			s->n_done++;
		}
	}
	return r;
}

static struct study_times times_of(uint64_t **to, const uint64_t *from, size_t n) {
	struct study_times t = {.list = *to, .n = n};

	memcpy(t.list, from, n * sizeof(*from));
	study_sort(&t);
	*to += n;
	return t;
}

/* Blocks that were written, for a program may have been done before another kept all of its. */
static struct study_times block_times(uint64_t **to, const struct experiment_block *blocks,
				      size_t n) {
	struct study_times t = {.list = *to, .n = 0};

	for (size_t i = 0; i < n; i++) {
		if (blocks[i].end > blocks[i].start) {
			t.list[t.n++] = blocks[i].end - blocks[i].start;
		}
	}
	study_sort(&t);
	*to += n;
	return t;
}

static int run_programs(struct study_shared *ret, const struct shared *like, uint64_t **samples,
			char *error, size_t error_size) {
	size_t n_times = (size_t)like->n * like->o.runs;
	size_t n_blocks = (size_t)like->n * like->kept * like->n_blocks;
	size_t size = sizeof(*like) + 2 * n_times * sizeof(uint64_t) +
		      n_blocks * sizeof(struct experiment_block);
	struct shared *s = children_memory(size);
	int r;

	if (!s) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	*s = *like;
	s->total = (uint64_t *)(s + 1);
	s->kernel = s->total + n_times;
	s->blocks = (struct experiment_block *)(s->kernel + n_times);
	r = children_run(s->n, program_main, s, s->o.limit, error, error_size);
	if (r == 0) {
		ret->total = times_of(samples, s->total, n_times);
		ret->kernel = times_of(samples, s->kernel, n_times);
		ret->block = block_times(samples, s->blocks, n_blocks);
		study_overlap(s->blocks, s->n, (size_t)s->kept * s->n_blocks, THREADS,
			      &ret->overlap, &ret->threads);
	}
	children_memory_free(s, size);
	return r;
}

int study_sharing(struct study_sharing *ret, const struct study_options *o,
		  const struct experiment_gpu *gpu, char *error, size_t error_size) {
	struct shared like = {.o = *o, .kept = o->runs < KEPT ? o->runs : KEPT};
	struct study_sharing s = {.samples = NULL};
	uint64_t *samples;
	size_t n = 0;
	int r = 0;

	like.n_blocks = WAVES * gpu->sms * (gpu->sm_threads / THREADS);
	like.rounds = (uint64_t)(gpu->rounds_per_s * (double)BLOCK_TIME / 1e9);
	like.rounds = like.rounds < ROUNDS_MIN ? ROUNDS_MIN : like.rounds;
	for (unsigned i = 1; i <= STUDY_PROGRAMS; i++) {
		n += i * (2 * (size_t)o->runs + (size_t)like.kept * like.n_blocks);
	}
	samples = s.samples = calloc(n, sizeof(*samples));
	if (!samples) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; r == 0 && i < STUDY_PROGRAMS; i++) {
		like.n = i + 1;
		s.with[i].holds = gpu->sms * gpu->sm_threads;
		r = run_programs(&s.with[i], &like, &samples, error, error_size);
	}
	if (r < 0) {
		free(s.samples);
		return r;
	}
	*ret = s;
	return 0;
}

void study_sharing_deinit(struct study_sharing *s) {
	free(s->samples);
	*s = (struct study_sharing){0};
}
