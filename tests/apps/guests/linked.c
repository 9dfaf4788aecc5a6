/*
 * linked.c: a program that is linked with the driver, as most are: each kind of stream, of module
 * and of launch, and what it is told of them.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

/* ---- streams ---- */

static void run_chain(const char *name, CUstream stream) {
	struct chain c = chain_new(CHAIN_N);

	for (unsigned round = 0; round < 4; round++) {
		chain_restart(&c, stream, round);
		for (unsigned i = 0; i < 10; i++) {
			chain_step(&c, stream);
		}
		chain_tell(name, &c, stream);
	}
	CU(cuMemFree(c.p));
}

static void streams(void) {
	CUstream s;
	int least, greatest;

	gpu_open();
	run_chain("default", NULL);
	run_chain("legacy", CU_STREAM_LEGACY);
	run_chain("per thread", CU_STREAM_PER_THREAD);
	run_chain("blocking", gpu_stream(CU_STREAM_DEFAULT));
	run_chain("non-blocking", gpu_stream(CU_STREAM_NON_BLOCKING));
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	TELL("priorities %d to %d\n", least, greatest);
	for (int p = least; p >= greatest; p--) {
		CU(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, p));
		run_chain("priority", s);
	}
}

/* The default stream waits for blocking streams and they for it. */
static void legacy_order(void) {
	CUstream a, b;
	struct chain c;

	gpu_open();
	a = gpu_stream(CU_STREAM_DEFAULT);
	b = gpu_stream(CU_STREAM_DEFAULT);
	c = chain_new(20000);
	for (unsigned i = 0; i < 60; i++) {
		chain_step(&c, i % 2 ? NULL : i % 4 ? a : b);
	}
	chain_tell("through the default stream", &c, NULL);
	for (unsigned i = 0; i < 60; i++) {
		chain_step(&c, i % 2 ? CU_STREAM_PER_THREAD : NULL);
	}
	chain_tell("with the thread's own", &c, CU_STREAM_PER_THREAD);
}

static void event_order(void) {
	CUstream s[4];
	CUevent e;
	struct chain c;

	gpu_open();
	for (unsigned i = 0; i < 4; i++) {
		s[i] = gpu_stream(CU_STREAM_NON_BLOCKING);
	}
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c = chain_new(20000);
	for (unsigned i = 0; i < 80; i++) {
		chain_step(&c, s[i % 4]);
		CU(cuEventRecord(e, s[i % 4]));
		CU(cuStreamWaitEvent(s[(i + 1) % 4], e, 0));
	}
	chain_tell("by events", &c, s[0]);
}

static void stream_answers(void) {
	CUstream s[3];
	unsigned flags;
	int priority;
	CUcontext context;

	gpu_open();
	s[0] = gpu_stream(CU_STREAM_DEFAULT);
	s[1] = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuStreamCreateWithPriority(&s[2], CU_STREAM_NON_BLOCKING, -2));
	for (unsigned i = 0; i < 3; i++) {
		GPU_NEEDS(cuStreamGetFlags);
		GPU_NEEDS(cuStreamGetPriority);
		GPU_NEEDS(cuStreamGetCtx);

		run_chain("runs", s[i]);
		CU(cuStreamGetFlags(s[i], &flags));
		CU(cuStreamGetPriority(s[i], &priority));
		CU(cuStreamGetCtx(s[i], &context));
		TELL("flags %u, priority %d, context %d\n", flags, priority,
		     context == gpu.context);
		TELL_RESULT(cuStreamQuery(s[i]));
	}
	TELL_RESULT(cuStreamQuery(NULL));
	TELL_RESULT(cuStreamQuery(CU_STREAM_PER_THREAD));
	TELL_RESULT(cuStreamWaitEvent(s[0], NULL, 0));
	TELL_RESULT(cuStreamCreate(NULL, 0));
	TELL_RESULT(cuStreamCreate(&s[0], 77));
}

/* A stream that is destroyed while it has work: the work is done all the same. */
static void destroyed_stream(void) {
	CUdeviceptr p;

	gpu_open();
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 20; i++) {
		CUstream s = gpu_stream(i % 2);

		gpu_spin(s, p, 4, 500);
		CU(cuStreamDestroy(s));
	}
	CU(cuCtxSynchronize());
	TELL("%u blocks\n", gpu_word(p));
}

static void many_streams(void) {
	enum { N = 40 };
	CUstream s[N];
	CUdeviceptr p;

	gpu_open();
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < N; i++) {
		s[i] = gpu_stream(i % 2);
		gpu_spin(s[i], p, 2, 200);
	}
	for (unsigned i = 0; i < N; i++) {
		CU(cuStreamSynchronize(s[i]));
		gpu_spin(s[(i * 7) % N], p, 2, 200);
	}
	for (unsigned i = 0; i < N; i++) {
		CU(cuStreamDestroy(s[i]));
	}
	CU(cuCtxSynchronize());
	TELL("%u blocks\n", gpu_word(p));
}

/* ---- exchanges between streams ---- */

/* A kernel waits for one of another stream. */
static void kernel_awaits_kernel(void) {
	CUstream a, b;
	CUdeviceptr flag, count;

	gpu_open();
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	b = gpu_stream(CU_STREAM_NON_BLOCKING);
	flag = gpu_alloc(sizeof(unsigned));
	count = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 5; i++) {
		void *set[] = {&flag}, *await[] = {&flag, &count};

		CU(cuMemsetD32(flag, 0, 1));
		CU(cuCtxSynchronize());
		CU(cuLaunchKernel(gpu.await, 1, 1, 1, 32, 1, 1, 0, a, await, NULL));
		gpu_spin(a, count, 1, 10);
		CU(cuLaunchKernel(gpu.set, 1, 1, 1, 32, 1, 1, 0, b, set, NULL));
		CU(cuStreamSynchronize(a));
	}
	TELL("%u\n", gpu_word(count));
}

/* A kernel waits for the host, which meanwhile uses other streams. */
static void kernel_awaits_host(void) {
	CUstream a, b;
	CUdeviceptr flag, count;
	volatile unsigned *host;
	struct chain c;

	gpu_open();
	GPU_NEEDS_AS(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	b = gpu_stream(CU_STREAM_NON_BLOCKING);
	count = gpu_alloc(sizeof(unsigned));
	c = chain_new(CHAIN_N);
	CU(cuMemHostAlloc((void **)&host, sizeof(*host), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&flag, (void *)host, 0));
	for (unsigned i = 0; i < 5; i++) {
		void *await[] = {&flag, &count};

		*host = 0;
		CU(cuLaunchKernel(gpu.await, 1, 1, 1, 32, 1, 1, 0, a, await, NULL));
		TELL_RESULT(cuStreamQuery(a));
		chain_step(&c, b);
		chain_tell("beside it", &c, b);
		*host = 1;
		CU(cuStreamSynchronize(a));
	}
	TELL("%u\n", gpu_word(count));
}

/* ---- modules ---- */

static void load_options(void) {
	static char log[4096], errors[4096];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_MAX_REGISTERS};
	void *values[] = {log, (void *)sizeof(log), errors, (void *)sizeof(errors), (void *)32};
	CUmodule module;
	CUfunction f;
	int n;

	gpu_open();
	CU(cuModuleLoadDataEx(&module, guest_ptx, 5, options, values));
	CU(cuModuleGetFunction(&f, module, "guest_step"));
	GPU_NEEDS(cuFuncGetAttribute);
	CU(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	TELL("at most 32 registers: %d\n", n <= 32);
	gpu.step = f;
	run_chain("with options", NULL);
	TELL_RESULT(cuModuleLoadDataEx(&module, ".version 7.0\nnonsense", 4, options, values));
	TELL_RESULT(cuModuleLoadDataEx(&module, guest_ptx, 0, NULL, NULL));
	TELL_RESULT(cuModuleLoadData(&module, ""));
	TELL_RESULT(cuModuleLoadData(&module,
				     "\x7f"
				     "ELF"));
	TELL_RESULT(cuModuleLoadData(&module, NULL));
	TELL_RESULT(cuModuleLoad(&module, "/nowhere.ptx"));
	TELL_RESULT(cuModuleGetFunction(&f, gpu.module, "guest_nothing"));
	TELL_RESULT(cuModuleGetFunction(&f, gpu.module, NULL));
}

/* What a program asks of its kernels. */
static void kernel_answers(void) {
	static const char *const names[] = {"guest_step", "guest_spin", "guest_count",
					    "guest_await", "guest_sum"};
	static const struct {
		const char *name;
		CUfunction_attribute which;
	} questions[] = {
		{"threads", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
		{"shared", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
		{"constant", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES},
		{"local", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
		{"registers", CU_FUNC_ATTRIBUTE_NUM_REGS},
		{"ptx", CU_FUNC_ATTRIBUTE_PTX_VERSION},
		{"binary", CU_FUNC_ATTRIBUTE_BINARY_VERSION},
		{"cache", CU_FUNC_ATTRIBUTE_CACHE_MODE_CA},
		{"dynamic", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
		{"carveout", CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT},
	};
	gpu_open();
	GPU_NEEDS(cuFuncGetAttribute);
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			CUfunction f;
			int n;

			CU(cuModuleGetFunction(&f, gpu.module, names[i]));
			for (size_t k = 0; k < sizeof(questions) / sizeof(*questions); k++) {
				CU(cuFuncGetAttribute(&n, questions[k].which, f));
				TELL("%s: %s %d\n", names[i], questions[k].name, n);
			}
			for (int threads = 32; threads <= 1024; threads *= 2) {
				CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, threads,
									       4096));
				TELL("%s: %d blocks of %d\n", names[i], n, threads);
			}
		}
		run_chain("between", NULL);
	}
}

static void kernel_names(void) {
	CUmodule module;
	const char *name;
	CUfunction f[16];
	unsigned n;

	gpu_open();
	GPU_NEEDS(cuFuncGetModule);
	GPU_NEEDS(cuFuncGetName);
	GPU_NEEDS(cuFuncGetParamInfo);
	GPU_NEEDS(cuModuleGetFunctionCount);
	GPU_NEEDS(cuModuleEnumerateFunctions);
	run_chain("first", NULL);
	CU(cuFuncGetModule(&module, gpu.step));
	CU(cuFuncGetName(&name, gpu.step));
	TELL("%s, its module %d\n", name, module == gpu.module);
	for (size_t i = 0, offset, size;
	     cuFuncGetParamInfo(gpu.step, i, &offset, &size) == CUDA_SUCCESS; i++) {
		TELL("parameter %zu: %zu bytes at %zu\n", i, size, offset);
	}
	CU(cuModuleGetFunctionCount(&n, gpu.module));
	TELL("%u kernels\n", n);
	CU(cuModuleEnumerateFunctions(f, n < 16 ? n : 16, gpu.module));
	for (unsigned i = 0; i < n; i++) {
		CU(cuFuncGetName(&name, f[i]));
		TELL("%d ", strncmp(name, "guest_", 6) == 0);
	}
	TELL("\n");
}

/* Variables of a module are the program's, however its kernels are launched. */
static void variables(void) {
	CUdeviceptr total, factor;
	CUmodule other;
	CUfunction count;
	size_t size;
	unsigned by = 3, word = 10;
	void *params[] = {&by};

	gpu_open();
	CU(cuModuleGetGlobal(&total, &size, gpu.module, "guest_total"));
	CU(cuModuleGetGlobal(&factor, NULL, gpu.module, "guest_factor"));
	TELL("%zu bytes, %u\n", size, gpu_word(total));
	CU(cuLaunchKernel(gpu.count, 6, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	TELL("after a kernel: %u\n", gpu_word(total));
	CU(cuMemcpyHtoD(factor, &word, sizeof(word)));
	CU(cuLaunchKernel(gpu.count, 40, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	TELL("with another constant: %u\n", gpu_word(total));
	CU(cuModuleLoadData(&other, guest_ptx));
	CU(cuModuleGetFunction(&count, other, "guest_count"));
	CU(cuLaunchKernel(count, 6, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	TELL("of the same code, loaded again: %u\n", gpu_word(total));
	CU(cuModuleUnload(other));
	CU(cuLaunchKernel(gpu.count, 6, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	TELL("after that is unloaded: %u\n", gpu_word(total));
	TELL_RESULT(cuModuleGetGlobal(&total, &size, gpu.module, "guest_nothing"));
}

static void library(void) {
	CUlibrary l;
	CUkernel k;
	CUdeviceptr total;
	CUmodule module;
	size_t size;
	unsigned by = 2;
	void *params[] = {&by};

	gpu_open();
	GPU_NEEDS(cuLibraryGetGlobal);
	GPU_NEEDS(cuLibraryGetModule);
	CU(cuLibraryLoadData(&l, guest_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&k, l, "guest_count"));
	CU(cuLibraryGetGlobal(&total, &size, l, "guest_total"));
	CU(cuLaunchKernel((CUfunction)k, 8, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL("%zu bytes, %u\n", size, gpu_word(total));
	CU(cuKernelGetFunction(&gpu.count, k));
	CU(cuLaunchKernel(gpu.count, 8, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL("as a function: %u\n", gpu_word(total));
	CU(cuLibraryGetModule(&module, l));
	CU(cuModuleGetFunction(&gpu.count, module, "guest_count"));
	CU(cuLaunchKernel(gpu.count, 8, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL("of its module: %u\n", gpu_word(total));
	CU(cuLibraryUnload(l));
	run_chain("after it", NULL);
}

static void loaded_again(void) {
	gpu_open();
	for (unsigned i = 0; i < 12; i++) {
		struct chain c = chain_new(CHAIN_N);

		chain_step(&c, NULL);
		chain_step(&c, NULL);
		chain_tell("loaded", &c, NULL);
		CU(cuModuleUnload(gpu.module));
		gpu_load();
	}
}

/* ---- launches ---- */

static void launch_errors(void) {
	unsigned n = 1, *nowhere = NULL;
	CUdeviceptr p;
	void *params[] = {&p, &n, &n}, *missing[] = {&p, nowhere, &n};
	size_t size = 16;
	char packed[16] = {0};
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};

	gpu_open();
	p = gpu_alloc(64);
	memcpy(packed, &p, sizeof(p));
	packed[8] = 1;
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 70000, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra));
	TELL_RESULT(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	(void)missing;
	TELL("%u\n", gpu_word(p));
	TELL_RESULT(cuLaunchCooperativeKernel(gpu.step, 1000000, 1, 1, 32, 1, 1, 0, NULL, params));
	TELL_RESULT(cuLaunchKernelEx(NULL, gpu.step, params, NULL));
	TELL("%u\n", gpu_word(p));
}

static void dynamic_shared(void) {
	unsigned n = 3000, *host = malloc(n * sizeof(*host));
	CUdeviceptr x, sum;
	void *params[] = {&x, &n, &sum};

	gpu_open();
	GPU_NEEDS(cuFuncSetAttribute);
	x = gpu_alloc(n * sizeof(unsigned));
	sum = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < n; i++) {
		host[i] = i;
	}
	CU(cuMemcpyHtoD(x, host, n * sizeof(*host)));
	CU(cuLaunchKernel(gpu.sum, 1, 1, 1, 256, 1, 1, 1024, NULL, params, NULL));
	TELL("%u\n", gpu_word(sum));
	TELL_RESULT(cuLaunchKernel(gpu.sum, 1, 1, 1, 256, 1, 1, 60 << 10, NULL, params, NULL));
	CU(cuFuncSetAttribute(gpu.sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 62 << 10));
	TELL_RESULT(cuLaunchKernel(gpu.sum, 1, 1, 1, 256, 1, 1, 60 << 10, NULL, params, NULL));
	TELL("%u\n", gpu_word(sum));
	TELL_RESULT(cuFuncSetAttribute(gpu.sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				       1 << 30));
}

/* The arguments may change as soon as the launch has returned. */
static void reused_arguments(void) {
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 50; i++) {
		struct chain_step step;

		chain_next(&c, &step);
		CU(cuLaunchKernel(gpu.step, step.blocks, 1, 1, step.threads, 1, 1, 0, s,
				  step.params, NULL));
		memset(&step, 0x5a, sizeof(step));
	}
	chain_tell("arguments", &c, s);
}

/* A fault on the GPU: the same error from then on, and the program ends. */
static void fault(void) {
	CUdeviceptr p = 64;
	unsigned n = 32, add = 1;
	void *params[] = {&p, &n, &add};

	gpu_open();
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuCtxSynchronize());
	TELL_RESULT(cuLaunchKernel(gpu.step, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuStreamSynchronize(NULL));
}

/* Calls before there is anything to call for. */
static void too_early(void) {
	CUdevice d;
	CUcontext c = (CUcontext)&d;
	CUdeviceptr p;
	CUmodule m;
	int n = -1;

	TELL_RESULT(cuDeviceGetCount(&n));
	TELL_RESULT(cuDeviceGet(&d, 0));
	TELL_RESULT(cuCtxGetCurrent(&c));
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuInit(1));
	TELL_RESULT(cuInit(0));
	TELL_RESULT(cuInit(0));
	TELL_RESULT(cuDeviceGetCount(&n));
	TELL("%d GPUs\n", n);
	TELL_RESULT(cuDeviceGet(&d, n));
	TELL_RESULT(cuDeviceGet(&d, 0));
	TELL_RESULT(cuCtxGetCurrent(&c));
	TELL("context %d\n", c != NULL);
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuModuleLoadData(&m, guest_ptx));
	TELL_RESULT(cuCtxSynchronize());
	TELL_RESULT(cuStreamSynchronize(NULL));
	TELL_RESULT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* What is linked is what is found. */
static void same_as_found(void) {
	void *h = dlopen("libcuda.so.1", RTLD_NOW);

	TELL("handle %d\n", dlsym(h, "cuLaunchKernel") == (void *)cuLaunchKernel);
	TELL("default %d\n", dlsym(RTLD_DEFAULT, "cuLaunchKernel") == (void *)cuLaunchKernel);
	TELL("next %d\n", dlsym(RTLD_NEXT, "cuLaunchKernel") == (void *)cuLaunchKernel);
	TELL("program %d\n",
	     dlsym(dlopen(NULL, RTLD_NOW), "cuLaunchKernel") == (void *)cuLaunchKernel);
	TELL("default %d\n", dlsym(RTLD_DEFAULT, "cuNothing") != NULL);
	dlclose(h);
	dlclose(h);
	gpu_open();
	run_chain("after dlclose()", NULL);
}

/* One stream, functions linked and found behind all that is preloaded. */
static void linked_and_next(void) {
	__typeof__(cuLaunchKernel) *next = dlsym(RTLD_NEXT, "cuLaunchKernel");
	CUstream s;
	struct chain c;

	gpu_open();
	if (!next) {
		guest_fail("not there");
	}
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(20000);
	for (unsigned i = 0; i < 60; i++) {
		CU(CHAIN_LAUNCH(i % 2 ? next : cuLaunchKernel, &c, s));
	}
	chain_tell("next", &c, s);
}

const struct guest guests[] = {
	{"streams", streams},
	{"legacy-order", legacy_order},
	{"event-order", event_order},
	{"stream-answers", stream_answers},
	{"destroyed-stream", destroyed_stream},
	{"many-streams", many_streams},
	{"kernel-awaits-kernel", kernel_awaits_kernel},
	{"kernel-awaits-host", kernel_awaits_host},
	{"load-options", load_options},
	{"kernel-answers", kernel_answers},
	{"kernel-names", kernel_names},
	{"variables", variables},
	{"library", library},
	{"loaded-again", loaded_again},
	{"launch-errors", launch_errors},
	{"dynamic-shared", dynamic_shared},
	{"reused-arguments", reused_arguments},
	{"fault", fault},
	{"too-early", too_early},
	{"same-as-found", same_as_found},
	{"linked-and-next", linked_and_next},
	{NULL, NULL},
};
