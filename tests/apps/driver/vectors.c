/* vectors.c: see vectors.h. */
#include "vectors.h"

#include <stdlib.h>

#include "common.h"
#include "driver.h"
#include "reference.h"

extern const char vecadd_ptx[];

void vectors_open(struct vectors *v, unsigned gpu, size_t n) {
	v->n = n;
	v->a = app_alloc(n, sizeof(float));
	v->b = app_alloc(n, sizeof(float));
	v->c = app_alloc(n, sizeof(float));
	v->want = app_alloc(n, sizeof(float));
	v->module = driver_open(gpu, vecadd_ptx);
	v->kernel = driver_kernel(v->module, "vecadd");
	v->dev_a = driver_alloc(n * sizeof(float));
	v->dev_b = driver_alloc(n * sizeof(float));
	v->dev_c = driver_alloc(n * sizeof(float));
}

void vectors_draw(struct vectors *v, uint64_t seed) {
	struct app_random random = {seed};

	app_random_floats(&random, v->a, v->n);
	app_random_floats(&random, v->b, v->n);
	reference_vecadd(v->a, v->b, v->want, v->n);
}

void vectors_add(struct vectors *v, struct app_lane *lane) {
	unsigned n = (unsigned)v->n;
	void *params[] = {&v->dev_a, &v->dev_b, &v->dev_c, &n};

	CU(cuMemcpyHtoD(v->dev_a, v->a, v->n * sizeof(float)));
	CU(cuMemcpyHtoD(v->dev_b, v->b, v->n * sizeof(float)));
	CU(cuLaunchKernel(v->kernel, driver_blocks(v->n, VECADD_BLOCK), 1, 1, VECADD_BLOCK, 1, 1, 0,
			  NULL, params, NULL));
	lane->launches++;
	CU(cuMemcpyDtoH(v->c, v->dev_c, v->n * sizeof(float)));
	vectors_compare(v, lane);
}

void vectors_compare(struct vectors *v, struct app_lane *lane) {
	app_compare(lane, "sum", v->want, v->c, v->n, sizeof(float));
}

void vectors_close(struct vectors *v) {
	driver_free(v->dev_c);
	driver_free(v->dev_b);
	driver_free(v->dev_a);
	driver_close(v->module);
	free(v->want);
	free(v->c);
	free(v->b);
	free(v->a);
}
