/*
 * test-corpus.c: every kernel of a file of the corpus is refused for the expected reason, or its
 * twin does what it does (tests/func/twin/trial.h). A kernel that is not in the table fails too.
 *
 * usage: test-corpus FILE [ROUNDS [SEED]]: FILE as in ptx/, without its ending; so many launches of
 * each kernel. A failure prints the seed that repeats it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/apps/corpus/corpus.h"
#include "tests/func/twin/trial.h"

#define ROUNDS_DEFAULT 12
#define SEED_DEFAULT   0xC0FFEE

static const char debug_ending[] = "-debug";

struct run {
	const char *name; /* "shape-debug" */
	char file[64];	  /* "shape-debug.ptx" */
	char source[64];  /* "shape" */
	bool debug;
	char *ptx;		 /* owned */
	struct transform *twins; /* owned */
	unsigned long rounds;
	uint64_t seed;
	unsigned long runs, failed;
	unsigned confinable, refused;
};

static const struct corpus_kernel *find(const char *source, const char *kernel) {
	for (size_t i = 0; i < corpus_n; i++) {
		if (!strcmp(corpus[i].file, source) && !strcmp(corpus[i].kernel, kernel)) {
			return &corpus[i];
		}
	}
	return NULL;
}

/* Whether the verdict is the expected one. */
static bool judge(const struct run *r, const struct corpus_kernel *k,
		  const struct twin_kernel *verdict) {
	const char *reason = r->debug && k->debug_reason ? k->debug_reason : k->reason;

	if (verdict->confinable ? !reason
				: reason && !strncmp(verdict->reason, reason, strlen(reason))) {
		return true;
	}
	printf("%s of %s: expected '%s', not '%s'%s%s\n", k->kernel, r->file,
	       reason ? reason : "a twin", verdict->confinable ? "a twin" : verdict->reason,
	       verdict->instruction ? ": " : "", verdict->instruction ? verdict->instruction : "");
	return false;
}

static void run_kernel(struct run *r, const struct twin_kernel *verdict) {
	const struct corpus_kernel *k = find(r->source, verdict->name);

	if (!k) {
		printf("%s of %s is not in the table\n", verdict->name, r->file);
		r->failed++;
		return;
	}
	if (!judge(r, k, verdict)) {
		r->failed++;
	}
	if (!verdict->confinable) {
		r->refused++;
		return;
	}
	r->confinable++;
	for (unsigned long n = 0; n < r->rounds && !k->verdict_only; n++) {
		uint64_t seed = r->seed + n;
		struct sample s;

		corpus_sample(&s, k, r->file, &seed);
		/* Other blocks are launched as they are. */
		if (s.block[0] % verdict->block_multiple == 0) {
			r->failed += !trial_run(&s, r->ptx, r->twins, seed, r->seed + n);
			r->runs++;
		}
		sample_deinit(&s);
	}
}

/* Kernels of the table that the file lacks. */
static void find_missing(struct run *r) {
	for (size_t i = 0; i < corpus_n; i++) {
		if (!strcmp(corpus[i].file, r->source) && !trial_find(r->twins, corpus[i].kernel)) {
			printf("%s is not in %s\n", corpus[i].kernel, r->file);
			r->failed++;
		}
	}
}

static int run(struct run *r) {
	size_t n = strlen(r->name), ending = sizeof(debug_ending) - 1;
	char text[256] = "";

	snprintf(r->file, sizeof(r->file), "%s.ptx", r->name);
	r->debug = n > ending && !strcmp(r->name + n - ending, debug_ending);
	snprintf(r->source, sizeof(r->source), "%.*s", (int)(r->debug ? n - ending : n), r->name);
	r->ptx = sample_read_ptx(r->file);
	if (transform_new(&r->twins, r->ptx, strlen(r->ptx), text, sizeof(text)) < 0) {
		printf("%s is not transformed: %s\n", r->file, text);
		free(r->ptx);
		return 1;
	}
	for (size_t i = 0; i < r->twins->n_kernels; i++) {
		run_kernel(r, &r->twins->kernels[i]);
	}
	find_missing(r);
	printf("%s: %u kernels with twins, %u refused, %lu launches, %lu failed\n", r->name,
	       r->confinable, r->refused, r->runs, r->failed);
	transform_free(r->twins);
	free(r->ptx);
	return r->failed ? 1 : 0;
}

int main(int argc, char **argv) {
	struct run r = {
		.name = argc > 1 ? argv[1] : NULL,
		.rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : ROUNDS_DEFAULT,
		.seed = argc > 3 ? strtoull(argv[3], NULL, 0) : SEED_DEFAULT,
	};

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s FILE [ROUNDS [SEED]]\n", argv[0]);
		return 2;
	}
	return run(&r);
}
