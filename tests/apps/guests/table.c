/*
 * table.c: a program with a table of the driver's functions: variables of the functions' own names,
 * filled by dlsym. Linked with -rdynamic, its variables are what others find first. See
 * meson.build: also as a program that is not.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "guest.h"

typedef int function();
#define TABLE                           \
	ENTRY(cuInit)                   \
	ENTRY(cuDeviceGet)              \
	ENTRY(cuDeviceGetCount)         \
	ENTRY(cuDevicePrimaryCtxRetain) \
	ENTRY(cuCtxSetCurrent)          \
	ENTRY(cuCtxGetCurrent)          \
	ENTRY(cuCtxSynchronize)         \
	ENTRY(cuModuleLoadData)         \
	ENTRY(cuModuleGetFunction)      \
	ENTRY(cuMemAlloc_v2)            \
	ENTRY(cuMemsetD32_v2)           \
	ENTRY(cuMemcpyDtoH_v2)          \
	ENTRY(cuStreamCreate)           \
	ENTRY(cuStreamSynchronize)      \
	ENTRY(cuEventCreate)            \
	ENTRY(cuLaunchKernel)           \
	ENTRY(cuGetProcAddress_v2)      \
	ENTRY(cuGetErrorName)

#define ENTRY(name) __attribute__((visibility("default"))) function *name;
TABLE
#undef ENTRY

extern const char guest_ptx[];

static void fill(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver) {
		guest_fail(dlerror());
	}
#define ENTRY(name)                              \
	name = (function *)dlsym(driver, #name); \
	if (!name) {                             \
		guest_fail("no " #name);         \
	}
	TABLE
#undef ENTRY
}

static void tell(const char *what, int result) {
	TELL("%s: %d\n", what, result);
}

static void use(void) {
	void *context = NULL, *module = NULL, *step = NULL, *stream = NULL;
	unsigned long long p = 0;
	unsigned n = 4096, want = 0, word = 0;
	int device = -1, count = -1;

	tell("init", cuInit(0));
	tell("count", cuDeviceGetCount(&count));
	tell("device", cuDeviceGet(&device, 0));
	tell("context", cuDevicePrimaryCtxRetain(&context, device));
	tell("current", cuCtxSetCurrent(context));
	tell("module", cuModuleLoadData(&module, guest_ptx));
	tell("kernel", cuModuleGetFunction(&step, module, "guest_step"));
	tell("memory", cuMemAlloc_v2(&p, (size_t)n * 4));
	tell("set", cuMemsetD32_v2(p, 0, (size_t)n));
	tell("all", cuCtxSynchronize());
	tell("stream", cuStreamCreate(&stream, 1));
	for (unsigned add = 1; add <= 20; add++) {
		void *params[] = {&p, &n, &add};

		want = want * 3 + add;
		if (cuLaunchKernel(step, 32, 1, 1, 128, 1, 1, 0, stream, params, NULL) != 0) {
			guest_fail("launch");
		}
	}
	tell("stream", cuStreamSynchronize(stream));
	tell("all", cuCtxSynchronize());
	tell("copy", cuMemcpyDtoH_v2(&word, p + 400, (size_t)4));
	TELL("right %d\n", word == want);
}

static void filled(void) {
	fill();
	use();
}

static void filled_twice(void) {
	fill();
	fill();
	use();
}

/* Through the driver's own look-up, once that is found. */
static void filled_by_address(void) {
	fill();
	cuLaunchKernel = NULL;
	cuInit = NULL;
	tell("cuInit", cuGetProcAddress_v2("cuInit", &cuInit, 13000, 0ull, NULL));
	tell("cuLaunchKernel",
	     cuGetProcAddress_v2("cuLaunchKernel", &cuLaunchKernel, 13000, 0ull, NULL));
	use();
}

const struct guest guests[] = {
	{"filled", filled},
	{"filled-twice", filled_twice},
	{"filled-by-address", filled_by_address},
	{NULL, NULL},
};
