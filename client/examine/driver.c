/* driver.c: see driver.h. */
#include "client/examine/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/examine/kernels.h"

/* CUdevice_attribute and CUfunction_attribute, of the driver's stable interface. */
enum {
	SMS = 16,
	INTEGRATED = 18,
	SM_THREADS = 39,
	COPY_ENGINES = 40,
	CC_MAJOR = 75,
	CC_MINOR = 76,
	SM_SHARED = 81,
	BLOCK_SHARED = 8,
	BLOCK_SHARED_OPTIN = 97,
	BLOCK_SHARED_RESERVED = 111,
	FUNCTION_MAX_DYNAMIC_SHARED = 8,
	FUNCTION_CARVEOUT = 9,
};

int driver_check(struct driver *d, int result, const char *what) {
	const char *name = NULL;

	if (result == 0) {
		return 0;
	}
	if (d->error_name(result, &name) != 0 || !name) {
		name = "an unknown error";
	}
	snprintf(d->error, d->error_size, "%s: %s (%d)", what, name, result);
	return -EIO;
}

static int load_functions(struct driver *d) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		snprintf(d->error, d->error_size, "cannot load CUDA's driver: %s", dlerror());
		return -EIO;
	}
#define X(name, symbol, arguments)                                                   \
	*(void **)&d->name = dlsym(library, symbol);                                 \
	if (!d->name) {                                                              \
		snprintf(d->error, d->error_size, "libcuda.so.1 has no %s", symbol); \
		return -EIO;                                                         \
	}
	DRIVER_FUNCTIONS(X)
#undef X
	return 0;
}

/* What this driver does not know of is 0. */
static unsigned attribute(struct driver *d, int which, int device) {
	int value = 0;

	return d->attribute(&value, which, device) == 0 && value > 0 ? (unsigned)value : 0;
}

static int describe(struct driver *d, int device) {
	struct experiment_gpu *gpu = &d->gpu;
	unsigned least, optin;
	size_t memory = 0;

	if (d->device_name(gpu->name, sizeof(gpu->name), device) != 0) {
		snprintf(gpu->name, sizeof(gpu->name), "unknown");
	}
	d->version(&gpu->driver);
	d->device_memory(&memory, device);
	gpu->memory_bytes = memory;
	gpu->cc_major = (int)attribute(d, CC_MAJOR, device);
	gpu->cc_minor = (int)attribute(d, CC_MINOR, device);
	gpu->sms = attribute(d, SMS, device);
	gpu->sm_threads = attribute(d, SM_THREADS, device);
	gpu->sm_shared = attribute(d, SM_SHARED, device);
	least = attribute(d, BLOCK_SHARED, device);
	optin = attribute(d, BLOCK_SHARED_OPTIN, device);
	gpu->block_shared_max = optin > least ? optin : least;
	gpu->block_shared_reserved = attribute(d, BLOCK_SHARED_RESERVED, device);
	gpu->copy_engines = attribute(d, COPY_ENGINES, device);
	gpu->integrated = attribute(d, INTEGRATED, device) != 0;
	if (gpu->sms == 0 || gpu->sm_threads < 64 || gpu->sm_shared < 4096) {
		snprintf(d->error, d->error_size, "the driver tells no SMs of the GPU");
		return -EIO;
	}
	return 0;
}

/* All launches with the most shared memory that an SM can have: kernels that want it divided in
 * another way wait until an SM is empty (H200), whatever the rules say. The walk wants cache. */
static void divide_alike(struct driver *d) {
	d->function_set(d->spin, FUNCTION_CARVEOUT, 100);
	d->function_set(d->count, FUNCTION_CARVEOUT, 100);
}

static int load_kernels(struct driver *d) {
	struct driver_module *module;
	struct {
		const char *name;
		struct driver_function **f;
	} list[] = {{"spin", &d->spin}, {"count", &d->count}, {"walk", &d->walk}};
	int r = driver_check(d, d->load(&module, kernels_ptx), "loading the kernels");

	for (size_t i = 0; r == 0 && i < sizeof(list) / sizeof(list[0]); i++) {
		r = driver_check(d, d->function(list[i].f, module, list[i].name), list[i].name);
		if (r == 0 && d->gpu.block_shared_max > 48 * 1024) {
			r = driver_check(d,
					 d->function_set(*list[i].f, FUNCTION_MAX_DYNAMIC_SHARED,
							 (int)d->gpu.block_shared_max),
					 "asking for shared memory");
		}
	}
	if (r == 0) {
		divide_alike(d);
	}
	return r;
}

int driver_open(struct driver *d, unsigned index, char *error, size_t error_size) {
	int device = 0, n = 0, r;

	*d = (struct driver){.error = error, .error_size = error_size};
	r = load_functions(d);
	if (r < 0 || (r = driver_check(d, d->init(0), "cuInit")) < 0 ||
	    (r = driver_check(d, d->device_count(&n), "cuDeviceGetCount")) < 0) {
		return r;
	}
	if (index >= (unsigned)n) {
		snprintf(error, error_size, "there is no GPU %u: CUDA knows %d", index, n);
		return -EIO;
	}
	if ((r = driver_check(d, d->device(&device, (int)index), "cuDeviceGet")) < 0 ||
	    (r = describe(d, device)) < 0 ||
	    (r = driver_check(d, d->retain(&d->context, device), "making a context")) < 0 ||
	    (r = driver_check(d, d->set_current(d->context), "cuCtxSetCurrent")) < 0 ||
	    (r = driver_check(d, d->priorities(&d->gpu.priority_low, &d->gpu.priority_high),
			      "cuCtxGetStreamPriorityRange")) < 0) {
		return r;
	}
	return load_kernels(d);
}

int driver_launch(struct driver *d, struct driver_function *f, unsigned blocks, unsigned threads,
		  unsigned shared_bytes, struct driver_stream *stream, driver_memory records,
		  uint64_t work, driver_memory data, uint64_t elements) {
	void *arguments[] = {&records, &work, &data, &elements};

	return driver_check(
		d, d->launch(f, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, arguments, NULL),
		"launching a kernel");
}
