/*
 * following.c: an example of a program that can run its jobs on several GPUs: it has a context, its
 * kernel and its buffers on each, and computes where sbeetd says.
 *
 * usage: following GPU...	numbers of CUDA devices, the preferred one first
 *
 * A line of input begins a job and adds two vectors in it; the next line ends the job. It prints
 * where each job is, and at the end of its input what it has done.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"
#include "shim/sbeet.h"

#define N     4000
#define BLOCK 256
#define MOST  16

extern const char vecadd_ptx[];

/* What is needed on one GPU. */
static struct place {
	CUcontext context;
	CUfunction kernel;
	CUdeviceptr a, b, c;
} places[MOST];

static float a[N], b[N], c[N];

static void prepare(struct place *p, int gpu) {
	CUmodule module;

	CU(cuDevicePrimaryCtxRetain(&p->context, gpu));
	CU(cuCtxSetCurrent(p->context));
	CU(cuModuleLoadData(&module, vecadd_ptx));
	CU(cuModuleGetFunction(&p->kernel, module, "vecadd"));
	CU(cuMemAlloc(&p->a, sizeof(a)));
	CU(cuMemAlloc(&p->b, sizeof(b)));
	CU(cuMemAlloc(&p->c, sizeof(c)));
}

/* Return: whether the result is right. */
static bool add(struct place *p, unsigned job) {
	unsigned n = N;
	void *params[] = {&p->a, &p->b, &p->c, &n};
	bool ok = true;

	for (unsigned i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)job;
	}
	CU(cuCtxSetCurrent(p->context)); /* in a program of the runtime: cudaSetDevice() */
	CU(cuMemcpyHtoD(p->a, a, sizeof(a)));
	CU(cuMemcpyHtoD(p->b, b, sizeof(b)));
	CU(cuLaunchKernel(p->kernel, driver_blocks(N, BLOCK), 1, 1, BLOCK, 1, 1, 0, NULL, params,
			  NULL));
	CU(cuMemcpyDtoH(c, p->c, sizeof(c)));
	for (unsigned i = 0; i < N; i++) {
		ok &= c[i] == a[i] + b[i];
	}
	return ok;
}

int main(int argc, char **argv) {
	unsigned n = (unsigned)argc - 1, jobs = 0;
	int gpus[MOST], count;
	char line[64];
	bool ok = true;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&count));
	if (n == 0 || n > MOST) {
		fprintf(stderr, "usage: following GPU...\n");
		return 2;
	}
	for (unsigned i = 0; i < n; i++) {
		gpus[i] = atoi(argv[i + 1]);
		if (gpus[i] >= 0 && gpus[i] < count) {
			prepare(&places[gpus[i]], gpus[i]);
		}
	}
	while (fgets(line, sizeof(line), stdin)) {
		int gpu;

		sbeet_job_begin(0);
		gpu = sbeet_job_gpu(gpus, n);
		if (gpu >= 0) {
			ok &= add(&places[gpu], ++jobs);
		}
		printf("job on %d\n", gpu);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin)) {
			break;
		}
		sbeet_job_end();
		printf("ended\n");
		fflush(stdout);
	}
	printf("{\"launches\":%u,\"ok\":%s}\n", jobs, ok ? "true" : "false");
	return ok ? 0 : 1;
}
