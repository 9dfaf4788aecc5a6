/*
 * order.c: see order.h. The program's own launches and those of a plug-in or of functions that
 * cuGetProcAddress() has found take turns.
 *
 * usage: order own | proc | plug FILE | deep FILE
 *	own: launches all itself. proc: every other one by cuGetProcAddress(). plug: by a plug-in,
 *	which registers itself, or has a function plug_launch(). deep: opened with RTLD_DEEPBIND.
 */
#include "order.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

#define N	 20000
#define THREADS	 128
#define ROUNDS	 6
#define LAUNCHES 12

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry scale(.param .u64 p, .param .u32 n, .param .u32 m)\n{\n"
	".reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %rd<5>;\n"
	"ld.param.u64 %rd1, [p];\nld.param.u32 %r3, [n];\nld.param.u32 %r2, [m];\n"
	"mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\nmov.u32 %r6, %tid.x;\n"
	"mad.lo.s32 %r1, %r4, %r5, %r6;\nsetp.ge.s32 %p, %r1, %r3;\n"
	"@%p bra $end;\ncvta.to.global.u64 %rd2, %rd1;\n"
	"mul.wide.s32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
	"ld.global.u32 %r7, [%rd4];\nmad.lo.s32 %r8, %r7, 3, %r2;\n"
	"st.global.u32 [%rd4], %r8;\n$end:\nret;\n}\n";

static order_launch_fn other;

static CUresult launch_own(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream,
			   void **params) {
	return cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static __typeof__(cuLaunchKernel) *found;

static CUresult launch_found(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream,
			     void **params) {
	return found(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

void order_register(order_launch_fn launch) {
	other = launch;
}

static void open_plug(const char *file, int flags) {
	void *plug = dlopen(file, RTLD_NOW | flags);

	if (!plug) {
		fprintf(stderr, "order: %s\n", dlerror());
		exit(1);
	}
	if (!other) {
		*(void **)&other = dlsym(plug, "plug_launch");
	}
}

/* As the CUDA runtime library finds its functions. */
static void find_launch(void) {
	__typeof__(cuGetProcAddress) *find;

	*(void **)&find = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
	CU(find("cuLaunchKernel", (void **)&found, CUDA_VERSION, 0, NULL));
}

static void choose_other(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "own";

	if (argc > 2) {
		open_plug(argv[2], strcmp(how, "deep") == 0 ? RTLD_DEEPBIND : 0);
	} else if (strcmp(how, "proc") == 0) {
		find_launch();
		other = launch_found;
	} else {
		other = launch_own;
	}
}

/* Return: how many numbers are wrong. */
static unsigned round_of(CUfunction kernel, CUdeviceptr p, CUstream stream) {
	static unsigned out[N];
	unsigned n = N, want = 0, wrong = 0;

	CU(cuMemsetD32Async(p, 0, n, stream));
	for (unsigned i = 0; i < LAUNCHES; i++) {
		unsigned add = i + 1;
		void *params[] = {&p, &n, &add};

		CU((i % 2 ? other : launch_own)(kernel, driver_blocks(N, THREADS), THREADS, stream,
						params));
		want = want * 3 + add;
	}
	CU(cuMemcpyDtoHAsync(out, p, sizeof(out), stream));
	CU(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < N; i++) {
		wrong += out[i] != want;
	}
	return wrong;
}

int main(int argc, char **argv) {
	CUmodule module = driver_open(0, ptx);
	CUfunction kernel = driver_kernel(module, "scale");
	CUdeviceptr p = driver_alloc(N * sizeof(unsigned));
	unsigned wrong = 0;
	CUstream stream;

	choose_other(argc, argv);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < ROUNDS; i++) {
		wrong += round_of(kernel, p, stream);
	}
	CU(cuStreamDestroy(stream));
	printf("{\"launches\":%u,\"wrong\":%u,\"ok\":%s}\n", ROUNDS * LAUNCHES, wrong,
	       wrong ? "false" : "true");
	return wrong != 0;
}
