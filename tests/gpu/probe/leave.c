/*
 * leave.c: preloaded into a CUDA program, sends what it launches into one stream (the one that it
 * gives to leave_adopt()) either to the whole GPU or to the SMs outside the urgent program's set,
 * as leave.h's page says at each launch, and bounds how much of its work is queued.
 *
 * What a kernel takes is measured, alone in its stream, at its first three launches.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "leave.h"
#include "probe.h"

#define RING	4096
#define KERNELS 4096

static struct leave_page *page;
static CUstream adopted, whole, rest, current;
static CUevent order, before, after;

static struct kernel {
	CUfunction function;
	unsigned blocks, n;
	float us;
} kernels[KERNELS];

/* Queued work, in groups with an event each; work since the last event. */
static struct group {
	CUevent event;
	float us;
} ring[RING];
static unsigned oldest, newest;
static float queued_us, group_us;

typedef void *dlsym_fn(void *, const char *);

static void *driver(const char *name) {
	static dlsym_fn *real_dlsym;
	static void *lib;

	if (!lib) {
		lib = dlopen("libcuda.so.1", RTLD_NOW);
		real_dlsym = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	}
	return lib ? real_dlsym(lib, name) : NULL;
}

/* The driver's own function, with its type. */
#define REAL(name)                                                        \
	({                                                                \
		static __typeof__(&name) real_function;                   \
		if (!real_function) {                                     \
			real_function = (__typeof__(&name))driver(#name); \
		}                                                         \
		real_function;                                            \
	})

static CUstream rest_of_gpu(void) {
	CUdevResource all, first, left;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUdevice device;
	CUstream stream;
	unsigned n = 1;

	CHECK(REAL(cuCtxGetDevice)(&device));
	CHECK(REAL(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(REAL(cuDevSmResourceSplitByCount)(&first, &n, &all, &left, 0, LEAVE_SMS));
	CHECK(REAL(cuDevResourceGenerateDesc)(&desc, &left, 1));
	CHECK(REAL(cuGreenCtxCreate)(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(REAL(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	return stream;
}

__attribute__((visibility("default"))) void leave_adopt(CUstream stream) {
	page = shared_page(sizeof(*page));
	CHECK(REAL(cuEventCreate)(&order, CU_EVENT_DISABLE_TIMING));
	CHECK(REAL(cuEventCreate)(&before, CU_EVENT_DEFAULT));
	CHECK(REAL(cuEventCreate)(&after, CU_EVENT_DEFAULT));
	for (unsigned i = 0; i < RING; i++) {
		CHECK(REAL(cuEventCreate)(&ring[i].event, CU_EVENT_DISABLE_TIMING));
	}
	whole = current = stream;
	rest = rest_of_gpu();
	adopted = stream;
}

/* Counts a step; returns whether to go on. */
__attribute__((visibility("default"))) int leave_step(void) {
	page->steps++;
	return !page->stop;
}

/* Where the adopted stream's work goes now. */
static CUstream place(CUstream stream) {
	return adopted && stream == adopted ? current : stream;
}

static void change_place(void) {
	bool leave = page->leave == LEAVE_ALWAYS || (page->leave == LEAVE_WHILE_OPEN && page->open);
	CUstream want = leave ? rest : whole;

	if (want != current) {
		CHECK(REAL(cuEventRecord)(order, current));
		CHECK(REAL(cuStreamWaitEvent)(want, order, 0));
		current = want;
		page->switches++;
	}
}

static void end_group(void) {
	struct group *g = &ring[newest % RING];

	CHECK(REAL(cuEventRecord)(g->event, current));
	g->us = group_us;
	group_us = 0;
	newest++;
}

/* Waits until @us more may be queued. */
static void bound(float us) {
	if (queued_us + us > page->bound_us && group_us > 0) {
		end_group();
	}
	while (oldest != newest && (queued_us + us > page->bound_us || newest - oldest == RING)) {
		struct group *g = &ring[oldest % RING];

		if (REAL(cuEventQuery)(g->event) == CUDA_SUCCESS) {
			queued_us -= g->us;
			oldest++;
		}
	}
	queued_us += us;
	group_us += us;
}

static struct kernel *find(CUfunction f, unsigned blocks) {
	size_t i = ((uintptr_t)f / 16 * 31 + blocks) % KERNELS;

	while (kernels[i].function && (kernels[i].function != f || kernels[i].blocks != blocks)) {
		i = (i + 1) % KERNELS;
	}
	kernels[i].function = f;
	kernels[i].blocks = blocks;
	return &kernels[i];
}

/* What stands around each launch into the adopted stream. */
static CUresult launch(CUfunction f, unsigned blocks, CUresult (*call)(void *), void *userdata) {
	struct kernel *k = find(f, blocks);
	CUresult result;
	float ms;

	page->launches++;
	if (k->n >= 3) {
		change_place();
		if (page->bound_us) {
			bound(k->us);
			result = call(userdata);
			if (group_us * 8 > page->bound_us) {
				end_group();
			}
			return result;
		}
		return call(userdata);
	}
	CHECK(REAL(cuEventRecord)(before, current));
	result = call(userdata);
	CHECK(REAL(cuEventRecord)(after, current));
	CHECK(REAL(cuStreamSynchronize)(current));
	CHECK(REAL(cuEventElapsedTime_v2)(&ms, before, after));
	k->us = k->n++ == 0 || ms * 1000 < k->us ? ms * 1000 : k->us;
	return result;
}

struct plain {
	CUfunction f;
	unsigned n[7];
	void **params, **extra;
};

static CUresult call_plain(void *userdata) {
	struct plain *p = userdata;

	return REAL(cuLaunchKernel)(p->f, p->n[0], p->n[1], p->n[2], p->n[3], p->n[4], p->n[5],
				    p->n[6], current, p->params, p->extra);
}

static CUresult my_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				  unsigned by, unsigned bz, unsigned shared, CUstream stream,
				  void **params, void **extra) {
	struct plain p = {f, {gx, gy, gz, bx, by, bz, shared}, params, extra};

	if (!adopted || stream != adopted) {
		return REAL(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, stream, params,
					    extra);
	}
	return launch(f, gx * gy * gz, call_plain, &p);
}

struct extended {
	CUlaunchConfig config;
	CUfunction f;
	void **params, **extra;
};

static CUresult call_extended(void *userdata) {
	struct extended *e = userdata;

	e->config.hStream = current;
	return REAL(cuLaunchKernelEx)(&e->config, e->f, e->params, e->extra);
}

static CUresult my_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
				    void **extra) {
	struct extended e = {*config, f, params, extra};

	if (!adopted || config->hStream != adopted) {
		return REAL(cuLaunchKernelEx)(config, f, params, extra);
	}
	return launch(f, config->gridDimX * config->gridDimY * config->gridDimZ, call_extended, &e);
}

/* All else that names a stream follows it. NAME, PARAMETERS, ARGUMENTS with place(stream). */
#define FOLLOW(name, parameters, ...)           \
	static CUresult my_##name parameters {  \
		return REAL(name)(__VA_ARGS__); \
	}
FOLLOW(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), to, from, n,
       place(s))
FOLLOW(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream s), to, from, n,
       place(s))
FOLLOW(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream s), to, from, n,
       place(s))
FOLLOW(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), to, from, n,
       place(s))
FOLLOW(cuMemsetD8Async, (CUdeviceptr to, unsigned char v, size_t n, CUstream s), to, v, n, place(s))
FOLLOW(cuMemsetD32Async, (CUdeviceptr to, unsigned v, size_t n, CUstream s), to, v, n, place(s))
FOLLOW(cuEventRecord, (CUevent e, CUstream s), e, place(s))
FOLLOW(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned flags), e, place(s), flags)
FOLLOW(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags), place(s), e, flags)
FOLLOW(cuStreamSynchronize, (CUstream s), place(s))
FOLLOW(cuStreamQuery, (CUstream s), place(s))

static CUresult my_cuGetProcAddress_v2(const char *name, void **function, int version,
				       cuuint64_t flags, CUdriverProcAddressQueryResult *status);

#define ROW(name) \
	{ #name, (void *)my_##name }
static const struct {
	const char *name;
	void *wrapper;
} wrappers[] = {
	ROW(cuLaunchKernel),	     ROW(cuLaunchKernelEx),	ROW(cuMemcpyAsync),
	ROW(cuMemcpyHtoDAsync_v2),   ROW(cuMemcpyDtoHAsync_v2), ROW(cuMemcpyDtoDAsync_v2),
	ROW(cuMemsetD8Async),	     ROW(cuMemsetD32Async),	ROW(cuEventRecord),
	ROW(cuEventRecordWithFlags), ROW(cuStreamWaitEvent),	ROW(cuStreamSynchronize),
	ROW(cuStreamQuery),	     ROW(cuGetProcAddress_v2),
};

/* Ours for the driver's function at @address, else @address. */
static void *wrapped(void *address) {
	for (size_t i = 0; address && i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		if (driver(wrappers[i].name) == address) {
			return wrappers[i].wrapper;
		}
	}
	return address;
}

static CUresult my_cuGetProcAddress_v2(const char *name, void **function, int version,
				       cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
	CUresult result = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);

	if (result == CUDA_SUCCESS && function) {
		*function = wrapped(*function);
	}
	return result;
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) {
	static dlsym_fn *real_dlsym;

	if (!real_dlsym) {
		real_dlsym = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	}
	if (strncmp(name, "cu", 2) != 0) {
		return real_dlsym(handle, name);
	}
	return wrapped(real_dlsym(handle, name));
}
