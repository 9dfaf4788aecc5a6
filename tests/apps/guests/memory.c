/*
 * memory.c: memory of every kind, copies of every kind, and memory that processes share.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

/* ---- copies ---- */

static void fill(unsigned *x, unsigned n, unsigned from) {
	for (unsigned i = 0; i < n; i++) {
		x[i] = from + i * 7;
	}
}

static void compare(const char *name, const unsigned *x, unsigned n, unsigned from) {
	unsigned wrong = 0;

	for (unsigned i = 0; i < n; i++) {
		wrong += x[i] != from + i * 7;
	}
	TELL("%s: %u of %u wrong\n", name, wrong, n);
}

enum { N = 30000 };
#define BYTES (N * sizeof(unsigned))

/* What is registered must not share pages. */
#define PAGE	    ((size_t)64 << 10)
#define WHOLE_PAGES ((BYTES + PAGE - 1) / PAGE * PAGE)

static void to_and_fro(const char *name, unsigned *out, unsigned *back, CUstream stream) {
	CUdeviceptr a = gpu_alloc(BYTES), b = gpu_alloc(BYTES);

	fill(out, N, 3);
	CU(cuMemcpyHtoDAsync(a, out, BYTES, stream));
	CU(cuMemcpyDtoDAsync(b, a, BYTES, stream));
	CU(cuMemcpyDtoHAsync(back, b, BYTES, stream));
	CU(cuStreamSynchronize(stream));
	compare(name, back, N, 3);
	fill(out, N, 4);
	CU(cuMemcpyHtoD(a, out, BYTES));
	CU(cuMemcpyDtoD(b, a, BYTES));
	CU(cuMemcpyDtoH(back, b, BYTES));
	compare(name, back, N, 4);
	CU(cuMemFree(a));
	CU(cuMemFree(b));
}

static void copies(void) {
	unsigned *a = aligned_alloc(PAGE, WHOLE_PAGES), *b = aligned_alloc(PAGE, WHOLE_PAGES), *c,
		 *d;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuMemAllocHost((void **)&c, BYTES));
	CU(cuMemHostAlloc((void **)&d, BYTES,
			  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED));
	to_and_fro("pageable", a, b, s);
	to_and_fro("pinned", c, d, s);
	to_and_fro("both", a, d, NULL);
	CU(cuMemHostRegister(a, BYTES, 0));
	CU(cuMemHostRegister(b, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
	to_and_fro("registered", a, b, s);
	CU(cuMemHostUnregister(a));
	CU(cuMemHostUnregister(b));
	to_and_fro("pageable again", a, b, CU_STREAM_PER_THREAD);
	TELL_RESULT(cuMemHostUnregister(a));
	CU(cuMemFreeHost(c));
	CU(cuMemFreeHost(d));
}

/* Pageable memory may be used again as soon as the copy has returned. */
static void reused_sources(void) {
	unsigned *a = malloc(BYTES), *b = malloc(BYTES);
	CUdeviceptr p[8];
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (unsigned i = 0; i < 8; i++) {
		p[i] = gpu_alloc(BYTES);
		fill(a, N, i);
		CU(cuMemcpyHtoDAsync(p[i], a, BYTES, s));
		memset(a, 0x5a, BYTES);
	}
	for (unsigned i = 0; i < 8; i++) {
		CU(cuMemcpyDtoHAsync(b, p[i], BYTES, s));
		CU(cuStreamSynchronize(s));
		compare("source", b, N, i);
	}
}

/* Copies that are in order with kernels, in streams that each do both. */
static void copies_and_kernels(void) {
	enum { STREAMS = 3 };
	struct chain c[STREAMS];
	CUstream s[STREAMS];
	unsigned *words, wrong = 0;

	gpu_open();
	CU(cuMemAllocHost((void **)&words, STREAMS * 20 * sizeof(*words)));
	for (unsigned k = 0; k < STREAMS; k++) {
		s[k] = gpu_stream(CU_STREAM_NON_BLOCKING);
		c[k] = chain_new(20000);
	}
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < STREAMS; k++) {
			chain_step(&c[k], s[k]);
			CU(cuMemcpyDtoHAsync(&words[k * 20 + i], c[k].p + 4 * (c[k].n - 1), 4,
					     s[k]));
		}
	}
	for (unsigned k = 0; k < STREAMS; k++) {
		unsigned want = 0;

		chain_tell("kernels", &c[k], s[k]);
		for (unsigned i = 0; i < 20; i++) {
			want = want * 3 + i + 1;
			wrong += words[k * 20 + i] != want;
		}
	}
	TELL("%u words wrong\n", wrong);
}

static void unified_copies(void) {
	unsigned *a, *b = malloc(BYTES);
	CUdeviceptr p;

	gpu_open();
	GPU_NEEDS(cuMemcpy);
	CU(cuMemAllocHost((void **)&a, BYTES));
	p = gpu_alloc(BYTES);
	fill(a, N, 9);
	CU(cuMemcpyAsync(p, (CUdeviceptr)(uintptr_t)a, BYTES, NULL));
	CU(cuMemcpy((CUdeviceptr)(uintptr_t)b, p, BYTES));
	compare("unified", b, N, 9);
	memset(a, 0, BYTES);
	CU(cuMemcpy((CUdeviceptr)(uintptr_t)a, (CUdeviceptr)(uintptr_t)b, BYTES));
	compare("host to host", a, N, 9);
}

static void in_two_dimensions(void) {
	unsigned a[20][30], b[20][30] = {{0}};
	CUdeviceptr p;
	size_t pitch;

	gpu_open();
	GPU_NEEDS_AS(cuMemAllocPitch, "cuMemAllocPitch_v2");
	GPU_NEEDS_AS(cuMemcpy2D, "cuMemcpy2D_v2");
	GPU_NEEDS_AS(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2");
	CU(cuMemAllocPitch(&p, &pitch, sizeof(a[0]), 20, 4));
	fill(&a[0][0], 600, 11);
	CUDA_MEMCPY2D there = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = a,
			       .srcPitch = sizeof(a[0]),
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = p,
			       .dstPitch = pitch,
			       .WidthInBytes = sizeof(a[0]),
			       .Height = 20};
	CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = p,
			      .srcPitch = pitch,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = b,
			      .dstPitch = sizeof(b[0]),
			      .WidthInBytes = sizeof(a[0]),
			      .Height = 20};
	CU(cuMemcpy2D(&there));
	CU(cuMemcpy2DAsync(&back, NULL));
	CU(cuCtxSynchronize());
	compare("in two dimensions", &b[0][0], 600, 11);
}

static void sets(void) {
	unsigned char bytes[64];
	CUdeviceptr p;
	CUstream s;

	gpu_open();
	GPU_NEEDS_AS(cuMemsetD16, "cuMemsetD16_v2");
	GPU_NEEDS_AS(cuMemsetD2D8, "cuMemsetD2D8_v2");
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	p = gpu_alloc(64);
	CU(cuMemsetD8(p, 1, 64));
	CU(cuMemsetD16(p + 8, 0x0203, 4));
	CU(cuMemsetD32(p + 16, 0x04050607, 2));
	CU(cuMemsetD2D8(p + 32, 8, 9, 2, 3));
	CU(cuCtxSynchronize());
	CU(cuMemsetD8Async(p + 60, 8, 4, s));
	CU(cuStreamSynchronize(s));
	CU(cuMemcpyDtoH(bytes, p, 64));
	for (unsigned i = 0; i < 64; i++) {
		TELL("%x%s", bytes[i], i % 16 == 15 ? "\n" : " ");
	}
}

/* ---- allocations ---- */

static void of_streams(void) {
	CUdeviceptr p, q;
	CUstream s[2];
	CUevent e;

	gpu_open();
	s[0] = gpu_stream(CU_STREAM_NON_BLOCKING);
	s[1] = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (unsigned i = 0; i < 10; i++) {
		struct chain c = {.n = 20000};

		CU(cuMemAllocAsync(&c.p, BYTES, s[i % 2]));
		chain_restart(&c, s[i % 2], i);
		chain_step(&c, s[i % 2]);
		CU(cuMemAllocAsync(&q, 1 << 20, s[i % 2]));
		CU(cuEventRecord(e, s[i % 2]));
		CU(cuStreamWaitEvent(s[(i + 1) % 2], e, 0));
		chain_step(&c, s[(i + 1) % 2]);
		chain_tell("of a stream", &c, s[(i + 1) % 2]);
		CU(cuMemFreeAsync(c.p, s[(i + 1) % 2]));
		CU(cuMemFreeAsync(q, s[i % 2]));
	}
	CU(cuMemAllocAsync(&p, 4096, NULL));
	CU(cuMemFree(p));
	CU(cuMemAlloc(&p, 4096));
	TELL_RESULT(cuMemFreeAsync(p, NULL));
	CU(cuCtxSynchronize());
}

static void freed_with_work(void) {
	gpu_open();
	for (unsigned i = 0; i < 10; i++) {
		CUdeviceptr p = gpu_alloc(1 << 16);

		gpu_spin(gpu_stream(CU_STREAM_NON_BLOCKING), p, 8, 1000);
		CU(cuMemFree(p));
	}
	TELL_RESULT(cuCtxSynchronize());
}

static void errors(void) {
	unsigned word;
	CUdeviceptr p;

	gpu_open();
	TELL_RESULT(cuMemAlloc(&p, 0));
	TELL_RESULT(cuMemAlloc(NULL, 16));
	TELL_RESULT(cuMemAlloc(&p, (size_t)1 << 50));
	TELL_RESULT(cuMemFree(0));
	TELL_RESULT(cuMemFree(4096));
	TELL_RESULT(cuMemcpyDtoH(&word, 4096, sizeof(word)));
	TELL_RESULT(cuMemcpyHtoD(4096, &word, sizeof(word)));
	TELL_RESULT(cuMemsetD8(4096, 0, 16));
	p = gpu_alloc(16);
	TELL_RESULT(cuMemcpyDtoH(&word, p, 0));
	TELL_RESULT(cuMemcpyDtoH(NULL, p, 4));
	TELL_RESULT(cuMemcpyDtoH(&word, p, sizeof(word)));
	TELL_RESULT(cuMemFree(p));
	TELL_RESULT(cuMemFree(p));
	TELL_RESULT(cuMemFreeHost(&word));
	TELL_RESULT(cuMemHostRegister(&word, 0, 0));
}

/* What a program takes and gives back is there for it again. */
static void sizes(void) {
	size_t before, after, total, in_between;
	CUdeviceptr p;

	gpu_open();
	for (unsigned i = 0; i < 4; i++) { /* what is made with the first kernels is there then */
		gpu_spin(NULL, gpu_alloc(sizeof(unsigned)), 4, 100);
		CU(cuCtxSynchronize());
	}
	CU(cuMemGetInfo(&before, &total));
	p = gpu_alloc(64 << 20);
	CU(cuMemGetInfo(&in_between, &total));
	CU(cuMemFree(p));
	CU(cuMemGetInfo(&after, &total));
	TELL("taken %zu MiB, back %d\n", (before - in_between) >> 20, before == after);
	for (unsigned i = 0; i < 200; i++) {
		p = gpu_alloc(1 << 20);
		CU(cuMemFree(p));
	}
	CU(cuMemGetInfo(&after, &total));
	TELL("back %d\n", before == after);
}

/* As the runtime of a framework does: all that is free but some, at once. */
static void nearly_all(void) {
	size_t free_bytes, total;
	CUdeviceptr p;

	gpu_open();
	CU(cuMemGetInfo(&free_bytes, &total));
	TELL_RESULT(cuMemAlloc(&p, free_bytes - ((size_t)512 << 20)));
	CU(cuMemsetD32(p, 7, 1000));
	TELL("%u\n", gpu_word(p + 400));
	struct chain c = chain_new(CHAIN_N);

	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, NULL);
	}
	chain_tell("in what is left", &c, NULL);
}

static void pointers(void) {
	unsigned type = 0;
	CUcontext context = NULL;
	CUdeviceptr p, base;
	void *host;
	size_t size;
	int device = -1;

	gpu_open();
	GPU_NEEDS(cuPointerGetAttribute);
	GPU_NEEDS_AS(cuMemGetAddressRange, "cuMemGetAddressRange_v2");
	p = gpu_alloc(100000);
	CU(cuMemAllocHost(&host, 4096));
	CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 400));
	CU(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CU(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	TELL("type %u, context %d, device %d\n", type, context == gpu.context, device);
	CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				 (CUdeviceptr)(uintptr_t)host));
	TELL("type %u\n", type);
	CU(cuMemGetAddressRange(&base, &size, p + 4000));
	TELL("base %d, %zu bytes\n", base == p, size);
	TELL_RESULT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					  (CUdeviceptr)(uintptr_t)&type));
}

/* Memory of the host that kernels write. */
static void mapped(void) {
	volatile unsigned *host;
	struct chain c = {.n = 1000};
	unsigned wrong = 0;
	CUstream s;

	gpu_open();
	GPU_NEEDS_AS(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuMemHostAlloc((void **)&host, 4000, CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&c.p, (void *)host, 0));
	memset((void *)host, 0, 4000);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, s);
	}
	CU(cuStreamSynchronize(s));
	for (unsigned i = 0; i < 1000; i++) {
		wrong += host[i] != c.want;
	}
	TELL("%u wrong\n", wrong);
}

static void managed(void) {
	struct chain c = {.n = 5000};
	unsigned *host, wrong = 0;

	gpu_open();
	GPU_NEEDS(cuMemAllocManaged);
	TELL_RESULT(cuMemAllocManaged(&c.p, 20000, CU_MEM_ATTACH_GLOBAL));
	host = (unsigned *)(uintptr_t)c.p;
	memset(host, 0, 20000);
	for (unsigned i = 0; i < 10; i++) {
		chain_step(&c, NULL);
	}
	CU(cuCtxSynchronize());
	for (unsigned i = 0; i < 5000; i++) {
		wrong += host[i] != c.want;
	}
	TELL("%u wrong\n", wrong);
}

static void prefetched(void) {
	struct chain c = {.n = 5000};
	unsigned *host, wrong = 0;
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		      back = {.type = CU_MEM_LOCATION_TYPE_HOST};
	CUstream s;

	GPU_NEEDS(cuMemAllocManaged);
	CUresult (*prefetch)(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) =
		gpu_function("cuMemPrefetchAsync_v2");
	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuMemAllocManaged(&c.p, 20000, CU_MEM_ATTACH_GLOBAL));
	host = (unsigned *)(uintptr_t)c.p;
	memset(host, 0, 20000);
	for (unsigned i = 0; i < 10; i++) {
		CU(prefetch(c.p, 20000, i % 2 ? back : here, 0, s));
		chain_step(&c, s);
	}
	CU(cuStreamSynchronize(s));
	for (unsigned i = 0; i < 5000; i++) {
		wrong += host[i] != c.want;
	}
	TELL("%u wrong\n", wrong);
}

/* ---- pools ---- */

static void default_pool(void) {
	CUmemoryPool pool;
	cuuint64_t value = 1 << 20;
	struct chain c = {.n = 5000};
	CUstream s;

	GPU_NEEDS(cuDeviceGetDefaultMemPool);
	GPU_NEEDS(cuMemPoolSetAttribute);
	GPU_NEEDS(cuMemPoolTrimTo);
	GPU_NEEDS(cuMemAllocFromPoolAsync);
	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuDeviceGetDefaultMemPool(&pool, gpu.device));
	CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	for (unsigned i = 0; i < 5; i++) {
		CU(cuMemAllocFromPoolAsync(&c.p, 20000, pool, s));
		chain_restart(&c, s, i);
		chain_step(&c, s);
		chain_tell("of the pool", &c, s);
		CU(cuMemFreeAsync(c.p, s));
	}
	CU(cuStreamSynchronize(s));
	CU(cuMemPoolTrimTo(pool, 0));
}

static void own_pool(void) {
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	struct chain c = {.n = 5000};
	CUstream s;

	GPU_NEEDS(cuMemPoolCreate);
	GPU_NEEDS(cuMemPoolDestroy);
	GPU_NEEDS(cuMemAllocFromPoolAsync);
	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuMemPoolCreate(&pool, &properties));
	CU(cuMemAllocFromPoolAsync(&c.p, 20000, pool, s));
	chain_restart(&c, s, 1);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, s);
	}
	chain_tell("of its own pool", &c, s);
	CU(cuMemFreeAsync(c.p, s));
	CU(cuMemPoolDestroy(pool));
	CU(cuStreamSynchronize(s));
}

/* ---- addresses of the program's own choice ---- */

static void reserved(void) {
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle parts[2];
	struct chain c = {.n = 1 << 14};
	size_t size;

	GPU_NEEDS(cuMemGetAllocationGranularity);
	GPU_NEEDS(cuMemAddressReserve);
	GPU_NEEDS(cuMemAddressFree);
	GPU_NEEDS(cuMemCreate);
	GPU_NEEDS(cuMemRelease);
	GPU_NEEDS(cuMemMap);
	GPU_NEEDS(cuMemUnmap);
	GPU_NEEDS(cuMemSetAccess);
	gpu_open();
	CU(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CU(cuMemAddressReserve(&c.p, 2 * size, 0, 0, 0));
	for (unsigned i = 0; i < 2; i++) {
		CU(cuMemCreate(&parts[i], size, &properties, 0));
		CU(cuMemMap(c.p + i * size, size, 0, parts[i], 0));
	}
	CU(cuMemSetAccess(c.p, 2 * size, &access, 1));
	chain_restart(&c, NULL, 3);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, NULL);
	}
	chain_tell("mapped", &c, NULL);
	for (unsigned i = 0; i < 2; i++) {
		CU(cuMemUnmap(c.p + i * size, size));
		CU(cuMemRelease(parts[i]));
	}
	CU(cuMemAddressFree(c.p, 2 * size));
}

/* ---- two GPUs ---- */

static void second_gpu(void) {
	CUcontext contexts[2];
	struct chain c[2];
	CUfunction steps[2];
	int n;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&n));
	if (n < 2) {
		guest_skip("one GPU");
	}
	for (int i = 0; i < 2; i++) {
		CU(cuDevicePrimaryCtxRetain(&contexts[i], i));
		CU(cuCtxSetCurrent(contexts[i]));
		gpu_load();
		steps[i] = gpu.step;
		c[i] = chain_new(CHAIN_N);
	}
	for (unsigned i = 0; i < 40; i++) {
		CU(cuCtxSetCurrent(contexts[i % 2]));
		gpu.step = steps[i % 2];
		chain_step(&c[i % 2], NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		CU(cuCtxSetCurrent(contexts[i]));
		chain_tell("GPU", &c[i], NULL);
	}
}

static void peers(void) {
	CUcontext contexts[2];
	struct chain c;
	CUdeviceptr there;
	unsigned *host = malloc(CHAIN_N * 4), wrong = 0;
	int n, can;

	GPU_NEEDS(cuMemcpyPeer);
	GPU_NEEDS(cuDeviceCanAccessPeer);
	CU(cuInit(0));
	CU(cuDeviceGetCount(&n));
	if (n < 2) {
		guest_skip("one GPU");
	}
	CU(cuDeviceCanAccessPeer(&can, 0, 1));
	TELL("peers: %d\n", can);
	CU(cuDevicePrimaryCtxRetain(&contexts[1], 1));
	CU(cuCtxSetCurrent(contexts[1]));
	there = gpu_alloc(CHAIN_N * 4);
	gpu_open();
	contexts[0] = gpu.context;
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 10; i++) {
		chain_step(&c, NULL);
		CU(cuMemcpyPeer(there, contexts[1], c.p, contexts[0], CHAIN_N * 4));
		CU(cuMemcpyPeer(c.p, contexts[0], there, contexts[1], CHAIN_N * 4));
	}
	CU(cuCtxSetCurrent(contexts[1]));
	CU(cuMemcpyDtoH(host, there, CHAIN_N * 4));
	for (unsigned i = 0; i < CHAIN_N; i++) {
		wrong += host[i] != c.want;
	}
	TELL("%u wrong\n", wrong);
}

/* ---- between processes ---- */

static void between_processes(void) {
	struct {
		CUipcMemHandle handle;
		unsigned want;
	} message;
	int there[2], back[2], pid;
	struct chain c;
	char done;

	GPU_NEEDS(cuIpcGetMemHandle);
	CUresult (*open_memory)(CUdeviceptr *, CUipcMemHandle, unsigned) =
		gpu_function("cuIpcOpenMemHandle_v2");
	GPU_NEEDS(cuIpcCloseMemHandle);
	if (pipe(there) != 0 || pipe(back) != 0) {
		guest_fail("pipe");
	}
	pid = fork();
	if (pid == 0) {
		gpu_open();
		c = (struct chain){.n = CHAIN_N};
		if (read(there[0], &message, sizeof(message)) != sizeof(message)) {
			_exit(3);
		}
		CU(open_memory(&c.p, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
		c.want = message.want;
		for (unsigned i = 0; i < 10; i++) {
			chain_step(&c, NULL);
		}
		chain_tell("child", &c, NULL);
		CU(cuIpcCloseMemHandle(c.p));
		_exit(write(back[1], "x", 1) != 1);
	}
	gpu_open();
	c = chain_new(CHAIN_N);
	chain_step(&c, NULL);
	CU(cuCtxSynchronize());
	message.want = c.want;
	CU(cuIpcGetMemHandle(&message.handle, c.p));
	if (write(there[1], &message, sizeof(message)) != sizeof(message) ||
	    read(back[0], &done, 1) != 1) {
		guest_fail("pipe");
	}
	guest_await_child("child", pid);
	for (unsigned i = 1; i <= 10; i++) {
		c.want = c.want * 3 + i;
	}
	chain_tell("parent", &c, NULL);
}

/* Memory of the host that two processes share, registered in both. */
static void shared_host(void) {
	unsigned *shared =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned *back = malloc(BYTES);
	CUdeviceptr p;
	int pid;

	if (getenv("SIMGPU_DIR")) {
		guest_skip("the simulated GPU registers memory of one process alone");
	}
	pid = fork();
	if (pid == 0) {
		gpu_open();
		CU(cuMemHostRegister(shared, BYTES, 0));
		p = gpu_alloc(BYTES);
		fill(back, N, 21);
		CU(cuMemcpyHtoD(p, back, BYTES));
		CU(cuMemcpyDtoHAsync(shared, p, BYTES, NULL));
		CU(cuCtxSynchronize());
		_exit(0);
	}
	guest_await_child("child", pid);
	gpu_open();
	CU(cuMemHostRegister(shared, BYTES, 0));
	p = gpu_alloc(BYTES);
	CU(cuMemcpyHtoDAsync(p, shared, BYTES, NULL));
	CU(cuMemcpyDtoH(back, p, BYTES));
	compare("shared", back, N, 21);
}

const struct guest guests[] = {
	{"copies", copies},
	{"reused-sources", reused_sources},
	{"copies-and-kernels", copies_and_kernels},
	{"unified-copies", unified_copies},
	{"in-two-dimensions", in_two_dimensions},
	{"sets", sets},
	{"of-streams", of_streams},
	{"freed-with-work", freed_with_work},
	{"errors", errors},
	{"sizes", sizes},
	{"nearly-all", nearly_all},
	{"pointers", pointers},
	{"mapped", mapped},
	{"managed", managed},
	{"prefetched", prefetched},
	{"default-pool", default_pool},
	{"own-pool", own_pool},
	{"reserved", reserved},
	{"second-gpu", second_gpu},
	{"peers", peers},
	{"between-processes", between_processes},
	{"shared-host", shared_host},
	{NULL, NULL},
};
