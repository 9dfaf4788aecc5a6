/*
 * gpu.c: see gpu.h. Linked with the driver, as most programs are.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

struct gpu gpu;

void gpu_tell(const char *what, CUresult result) {
	const char *name = NULL;

	cuGetErrorName(result, &name);
	TELL("%s: %s\n", what, name ? name : "?");
}

void gpu_check(CUresult result, const char *call) {
	if (result != CUDA_SUCCESS) {
		gpu_tell(call, result);
		exit(1);
	}
}

void *gpu_function(const char *name) {
	static void *driver;
	void *f;

	if (!driver) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	f = driver ? dlsym(driver, name) : NULL;
	if (!f) {
		TELL("skipped: the driver has no %s\n", name);
		_exit(77);
	}
	return f;
}

void gpu_load(void) {
	CU(cuModuleLoadData(&gpu.module, guest_ptx));
	CU(cuModuleGetFunction(&gpu.step, gpu.module, "guest_step"));
	CU(cuModuleGetFunction(&gpu.spin, gpu.module, "guest_spin"));
	CU(cuModuleGetFunction(&gpu.count, gpu.module, "guest_count"));
	CU(cuModuleGetFunction(&gpu.await, gpu.module, "guest_await"));
	CU(cuModuleGetFunction(&gpu.set, gpu.module, "guest_set"));
	CU(cuModuleGetFunction(&gpu.sum, gpu.module, "guest_sum"));
}

void gpu_open(void) {
	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	CU(cuDevicePrimaryCtxRetain(&gpu.context, gpu.device));
	CU(cuCtxSetCurrent(gpu.context));
	gpu_load();
}

void gpu_enter(void) {
	CU(cuCtxSetCurrent(gpu.context));
}

CUstream gpu_stream(unsigned flags) {
	CUstream s;

	CU(cuStreamCreate(&s, flags));
	return s;
}

CUdeviceptr gpu_alloc(size_t bytes) {
	CUdeviceptr p;

	CU(cuMemAlloc(&p, bytes));
	CU(cuMemsetD8(p, 0, bytes));
	CU(cuCtxSynchronize());
	return p;
}

unsigned gpu_word(CUdeviceptr p) {
	unsigned word;

	CU(cuMemcpyDtoH(&word, p, sizeof(word)));
	return word;
}

void gpu_spin(CUstream stream, CUdeviceptr p, unsigned blocks, unsigned rounds) {
	void *params[] = {&p, &rounds};

	CU(cuLaunchKernel(gpu.spin, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

struct chain chain_new(unsigned n) {
	return (struct chain){.p = gpu_alloc(n * sizeof(unsigned)), .n = n};
}

void chain_next(struct chain *c, struct chain_step *ret) {
	unsigned add = ++c->n_steps;

	c->want = c->want * 3 + add;
	*ret = (struct chain_step){
		.p = c->p, .n = c->n, .add = add, .blocks = (c->n + 127) / 128, .threads = 128};
	ret->params[0] = &ret->p;
	ret->params[1] = &ret->n;
	ret->params[2] = &ret->add;
}

void chain_step(struct chain *c, CUstream stream) {
	CU(CHAIN_LAUNCH(cuLaunchKernel, c, stream));
}

void chain_restart(struct chain *c, CUstream stream, unsigned value) {
	CU(cuMemsetD32Async(c->p, value, c->n, stream));
	c->want = value;
}

void chain_tell(const char *name, struct chain *c, CUstream stream) {
	unsigned wrong = 0, *values = malloc(c->n * sizeof(*values));

	if (!values) {
		guest_fail("no memory");
	}
	CU(cuMemcpyDtoHAsync(values, c->p, c->n * sizeof(*values), stream));
	CU(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < c->n; i++) {
		wrong += values[i] != c->want;
	}
	free(values);
	TELL("%s: %u steps, %u of %u values wrong\n", name, c->n_steps, wrong, c->n);
}
