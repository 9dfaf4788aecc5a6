/*
 * dependent.cu: programs that let dependents begin, in this module, with kernels of another (dependent-other.cu), and
 * exchanges between streams. Nothing promises that kernels run beside each other; programs are written so all the
 * same, and run.
 */
#include <unistd.h>

#include "cuda-guest.h"
#include "dependent.h"

static int n_sms;
static cudaStream_t a, b;
static volatile unsigned *flag; /* the host's */

/* Lets dependents begin, then waits for another stream for 3 s at most. */
static __global__ void wait_for_flag(volatile unsigned *flag, unsigned *lost) {
	unsigned long long from = now_ns();

	let_dependents_begin();
	while (!*flag) {
		if (now_ns() - from > 3000000000ull) {
			atomicAdd(lost, 1);
			return;
		}
	}
}

static __global__ void set_flag(volatile unsigned *flag) {
	extern __shared__ unsigned room[];

	room[threadIdx.x] = 1;
	if (threadIdx.x == 0) {
		*flag = room[0];
		__threadfence_system();
	}
}

/* Fills an SM with each block. */
static __global__ void fill(unsigned *x) {
	extern __shared__ unsigned room[];
	unsigned long long from = now_ns();

	room[threadIdx.x] = 1;
	while (now_ns() - from < 1000) {
	}
	x[threadIdx.x] = room[threadIdx.x];
}

static const size_t most = 200 << 10;

static unsigned *begin(void) {
	cudaDeviceProp p;
	unsigned *lost;

	RT(cudaGetDeviceProperties(&p, 0));
	n_sms = p.multiProcessorCount;
	RT(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	RT(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	RT(cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped));
	RT(cudaMalloc(&lost, 4096));
	RT(cudaMemset(lost, 0, 4096));
	RT(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
	RT(cudaFuncSetAttribute(set_flag, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
	*flag = 1;
	wait_for_flag<<<1, 1, 0, a>>>(flag, lost);
	set_flag<<<1, 32, most, b>>>(flag);
	fill<<<1, 1024, most, a>>>(lost + 512);
	other_fill(a, lost + 512, 1);
	RT(cudaDeviceSynchronize()); /* all are loaded */
	return lost;
}

static void end(const char *name, unsigned *lost) {
	unsigned n;

	RT(cudaDeviceSynchronize());
	RT(cudaMemcpy(&n, lost, sizeof(n), cudaMemcpyDefault));
	TELL("%s: %u lost\n", name, n);
}

static void exchange(const char *name, bool other, size_t shared) {
	unsigned *lost = begin();

	for (int i = 0; i < 5; i++) {
		*flag = 0;
		wait_for_flag<<<1, 1, 0, a>>>(flag, lost);
		if (other) {
			other_fill(a, lost + 512, 8 * n_sms);
		} else {
			fill<<<8 * n_sms, 1024, most, a>>>(lost + 512);
		}
		usleep(20000); /* what comes next in that stream is where it is */
		set_flag<<<1, 32, shared, b>>>(flag);
		RT(cudaGetLastError());
		RT(cudaDeviceSynchronize());
	}
	end(name, lost);
}

static void same_module(void) {
	exchange("the same module", false, most);
}

static void another_module(void) {
	exchange("another module", true, most);
}

static void another_module_large(void) {
	exchange("another module, little room", true, 32);
}

/* Launched as dependent ones by the program itself, with griddepcontrol in both. */
static void own(void) {
	unsigned *x, *host = (unsigned *)malloc(4096 * 4), want = 0, wrong = 0;

	begin();
	RT(cudaMalloc(&x, 4096 * 4));
	RT(cudaMemset(x, 0, 4096 * 4));
	RT(cudaDeviceSynchronize());
	for (unsigned i = 1; i <= 200; i++) {
		other_step(a, x, 4096, i, i % 3 != 0);
		want = want * 3 + i;
	}
	RT(cudaMemcpyAsync(host, x, 4096 * 4, cudaMemcpyDefault, a));
	RT(cudaStreamSynchronize(a));
	for (unsigned i = 0; i < 4096; i++) {
		wrong += host[i] != want;
	}
	TELL("own: %u of 4096 values wrong\n", wrong);
}

extern "C" const struct guest guests[] = {
	{"same-module", same_module},
	{"another-module", another_module},
	{"another-module-large", another_module_large},
	{"own", own},
	{NULL, NULL},
};
