/* api.c: see api.h. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.h"

int api_setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f) {
		return -1;
	}
	OK(cuInit(0));
	OK(cuCtxCreate_v4(&f->context, NULL, 0, 0));
	OK(cuModuleLoadData(&f->module, kernels_ptx));
	OK(cuModuleGetFunction(&f->add, f->module, "add"));
	OK(cuModuleGetFunction(&f->poke, f->module, "poke"));
	OK(cuModuleGetFunction(&f->wait, f->module, "wait"));
	OK(cuModuleGetFunction(&f->count, f->module, "count"));
	*state = f;
	return 0;
}

int api_teardown(void **state) {
	struct fixture *f = *state;

	OK(cuCtxDestroy(f->context));
	free(f);
	return 0;
}

static struct gate closed; /* words are NULL: none is */

void gate_close(struct gate *g) {
	assert_null(closed.words);
	OK(cuMemHostAlloc((void **)&g->words, 4096, 0));
	memset((void *)g->words, 0, 4096);
	closed = *g;
}

void gate_launch(struct gate *g, CUfunction wait, CUstream stream, unsigned blocks) {
	uint64_t gate = (uintptr_t)g->words, arrived = gate + 4, smids = gate + 8;
	void *params[] = {&gate, &arrived, &smids};

	OK(cuLaunchKernel(wait, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

void gate_open(struct gate *g) {
	__atomic_store_n(g->words, 1, __ATOMIC_SEQ_CST);
	closed.words = NULL;
}

int api_test_teardown(void **state) {
	(void)state;
	if (closed.words) {
		gate_open(&closed);
	}
	return 0;
}

void poke(const struct fixture *f, CUstream stream, CUdeviceptr where, unsigned value) {
	void *params[] = {&where, &value};

	OK(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

void run_add(CUfunction add, CUstream stream, unsigned n, unsigned seed) {
	unsigned *a = malloc(n * 4), *b = malloc(n * 4), *c = calloc(n, 4);
	CUdeviceptr da, db, dc;
	void *params[] = {&da, &db, &dc, &n};

	for (unsigned i = 0; i < n; i++) {
		a[i] = i * 2654435761u + seed;
		b[i] = ~i;
	}
	OK(cuMemAlloc(&da, n * 4));
	OK(cuMemAlloc(&db, n * 4));
	OK(cuMemAlloc(&dc, n * 4));
	OK(cuMemcpyHtoDAsync(da, a, n * 4, stream));
	OK(cuMemcpyHtoDAsync(db, b, n * 4, stream));
	memset(b, 0, n * 4); /* its bytes have been taken at the call */
	OK(cuLaunchKernel(add, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
	OK(cuMemcpyDtoHAsync(c, dc, n * 4, stream)); /* pageable: complete when it returns */
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(c[i], a[i] + ~i);
	}
	OK(cuMemFree(da));
	OK(cuMemFree(db));
	OK(cuMemFree(dc));
	free(a);
	free(b);
	free(c);
}
