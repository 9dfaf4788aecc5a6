/*
 * vectors.h: two vectors and their sum, as several sample programs compute it in ways of their own.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct app_lane;

struct vectors {
	size_t n;
	float *a, *b, *c, *want; /* owned */
	CUmodule module;
	CUfunction kernel; /* c = a + b, see ../ptx/vecadd.ptx */
	CUdeviceptr dev_a, dev_b, dev_c;
};

/* Opens the GPU by driver_open(). */
void vectors_open(struct vectors *v, unsigned gpu, size_t n);

/* New numbers, the same for the same seed, in `a` and `b`; their sum in `want`. */
void vectors_draw(struct vectors *v, uint64_t seed);

/* Adds on the default stream, with blocking copies, and compares. */
void vectors_add(struct vectors *v, struct app_lane *lane);

/* Compares `c` with what is wanted. */
void vectors_compare(struct vectors *v, struct app_lane *lane);

void vectors_close(struct vectors *v);
