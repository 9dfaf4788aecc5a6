/*
 * corpus.h: kernels written to break twins (kernels/), with what is expected of each: to be right,
 * or to be refused for one reason.
 */
#pragma once

#include <stddef.h>

#include "tests/func/twin/sample.h"

/* Sizes and numbers of threads that a kernel can take. */
enum corpus_shape {
	CORPUS_ANY,	   /* up to three dimensions, odd numbers too */
	CORPUS_LINE,	   /* blocks and grid of one dimension */
	CORPUS_WARPS,	   /* one dimension, whole warps */
	CORPUS_THREADS_64, /* blocks of so many threads, in one dimension */
	CORPUS_THREADS_128,
};

struct corpus_kernel {
	const char *file;   /* ptx/FILE.ptx, of kernels/FILE.cu unless written by hand */
	const char *kernel; /* mangled */
	enum corpus_shape shape;
	/*
	 * A letter for each argument:
	 *	i	buffer of random words
	 *	o	buffer of 16 bytes a thread, zeros
	 *	c	8 KiB of zeros, to be compared too
	 *	v	like o, not to be compared
	 *	m	buffer of a count of its runs for each block
	 *	n, k	u32: below 4096; below 8
	 *	t	u32: up to the number of threads and some more
	 *	b, h, q	random u8, u16, u64
	 *	L, S	structs by value of 3600 and 32 bytes
	 */
	const char *arguments;
	const char *reason;	  /* how the refusal begins; NULL: it has a twin */
	const char *debug_reason; /* the same for FILE-debug.ptx, if that differs */
	bool dynamic_shared;	  /* a word for each thread */
	bool verdict_only;	  /* the interpreter can't run it */
	bool interpreter_only;	  /* a GPU hangs in it, or its compiler does not take the file */
	bool undefined;		  /* see struct sample */
};

extern const struct corpus_kernel corpus[];
extern const size_t corpus_n;

/* Launch of @k, from the file @file, with what @seed says. */
void corpus_sample(struct sample *s, const struct corpus_kernel *k, const char *file,
		   uint64_t *seed);
