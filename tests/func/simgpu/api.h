/*
 * api.h: what the tests of the simulated driver share: a context with the kernels of kernels.h, and
 * a kernel that stays until it is let go. Needs SIMGPU, SIMGPU_DIR and two GPUs (run-api.sh).
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

struct fixture {
	CUcontext context;
	CUmodule module;
	CUfunction add, poke, wait, count;
};

/* Of a group of tests; *state: the fixture. */
int api_setup(void **state);
int api_teardown(void **state);

/* Of each test: a gate that it has left closed, because it has failed, would hold up the next one.
 */
int api_test_teardown(void **state);
#define api_test(f) cmocka_unit_test_teardown(f, api_test_teardown)

/* A kernel that stays until its gate is opened: how the tests hold a stream. One at a time. */
struct gate {
	volatile uint32_t *words; /* pinned: gate, arrived, smids... */
};

void gate_close(struct gate *g);
void gate_launch(struct gate *g, CUfunction wait, CUstream stream, unsigned blocks);
void gate_open(struct gate *g);

/* *where = value, by a kernel. */
void poke(const struct fixture *f, CUstream stream, CUdeviceptr where, unsigned value);

/* Adds two vectors of @n in memory of its own, and checks the sums. */
void run_add(CUfunction add, CUstream stream, unsigned n, unsigned seed);
