/*
 * common.h: what all sample programs share, whichever way they reach the GPU: options, lanes
 * (threads), pacing, random input, comparison, and the summary line.
 *
 * A program fills in one struct app and hands over to app_main(). It knows nothing of sbeet. C and
 * CUDA C++ alike. Everything here is a test program's helper: out of memory or a failed thread ends
 * the process with a message and exit code 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define APP_SMS_MAX  256
#define APP_SETS_MAX 16

/* What the user asked for, see `PROGRAM --help`. */
struct app_options {
	unsigned frames;
	unsigned size;
	unsigned lanes;
	unsigned launches; /* a frame */
	unsigned rounds;   /* arithmetic a thread */
	unsigned gpu;
	uint64_t period_ns; /* 0: frames follow each other at once */
	bool align;	    /* frames begin at multiples of it, as app_now_ns() counts */
	uint64_t seed;
	bool json;
	bool verbose;
};

/* Blocks that a frame ran on each SM, for programs that look. */
struct app_sms {
	unsigned blocks[APP_SMS_MAX];
};

/* One thread of the program with what it has done so far. */
struct app_lane {
	const struct app_options *options;
	unsigned index;
	unsigned frame; /* the one that runs, from 0 */
	uint64_t frames;
	uint64_t launches;
	uint64_t blocks;
	uint64_t late;	     /* frames that began after their time */
	uint64_t longest_ns; /* that a frame took, its check included */
	uint64_t wrong;	     /* elements that were not what the CPU says */
	uint64_t gpu_ns; /* from the first launch of a frame to the end of its last, summed up */
	unsigned n_sets; /* distinct sets of SMs that a frame ran on; the last one collects the rest
			  */
	struct {
		struct app_sms sms;
		uint64_t frames;
	} sets[APP_SETS_MAX];
	void *own; /* the program's */
};

struct app {
	const char *name;
	const char *summary;
	const char *size_meaning;
	unsigned size_default, size_min, size_max;
	unsigned lanes_default;	   /* 0: one lane, no option --lanes */
	unsigned launches_default; /* 0: no option --launches */
	unsigned rounds_default;   /* 0: no option --rounds */

	void (*open)(const struct app_options *options); /* once, in the main thread */
	void (*begin)(struct app_lane *lane);		 /* each lane in its thread; may be NULL */
	void (*frame)(struct app_lane *lane, uint64_t seed);
	void (*end)(struct app_lane *lane); /* may be NULL */
	uint64_t (*check)(void); /* after all lanes: what is wrong that no lane could see; may be
				  * NULL */
	void (*close)(void);
};

/* Return: the exit code: 0 all frames right, 1 something failed, 2 usage. */
int app_main(const struct app *app, int argc, char **argv);

/* Compares bit for bit; counts what differs in lane->wrong and tells the first on stderr. */
void app_compare(struct app_lane *lane, const char *what, const void *want, const void *got,
		 size_t n, size_t element_size);

/* Adds a frame's blocks per SM to the lane's sets. */
void app_count_sms(struct app_lane *lane, const struct app_sms *sms);

/* Zeroed memory, never NULL; free() it. */
void *app_alloc(size_t n, size_t element_size);

uint64_t app_now_ns(void); /* CLOCK_MONOTONIC */
void app_pause_ns(uint64_t ns);

/* Deterministic random numbers (SplitMix64): the same seed, the same sequence, on any machine. */
struct app_random {
	uint64_t state;
};

uint32_t app_random_u32(struct app_random *r);
float app_random_unit(struct app_random *r); /* in [0, 1), 24 bits */
void app_random_floats(struct app_random *r, float *values, size_t n);
void app_random_bytes(struct app_random *r, unsigned char *values, size_t n);

#ifdef __cplusplus
}
#endif
