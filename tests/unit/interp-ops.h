/*
 * interp-ops.h: runs one instruction on all combinations of edge values, against a host function.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint64_t (*ops_want_fn)(uint64_t a, uint64_t b, uint64_t c);

struct ops_case {
	const char *insn; /* "add.s32 d, a, b;": registers a, b, c, d and predicates p, q */
	uint8_t bits[4];  /* widths of a, b, c and d; 0 where there is none */
	ops_want_fn want; /* a, b and c come zero-extended from their widths; so is the result */
	uint64_t ulps;	  /* of an approximation: how far the result's bits may be off */
};

/* Edge values, as bits: integers, or floating point of the width. */
struct ops_values {
	const uint64_t *a, *b, *c;
	size_t n_a, n_b, n_c;
};

/* Fails the test on the first difference, telling instruction and operands. */
void ops_run(const struct ops_case *cases, size_t n, const struct ops_values *v);
