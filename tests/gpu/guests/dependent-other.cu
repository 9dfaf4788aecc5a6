/*
 * dependent-other.cu: see dependent.h.
 */
#include "cuda-guest.h"
#include "dependent.h"

static __global__ void __launch_bounds__(1024) fill(unsigned *x) {
	extern __shared__ unsigned room[];

	room[threadIdx.x] = threadIdx.x;
	__syncthreads();
	x[threadIdx.x] = room[1023 - threadIdx.x];
}

void other_fill(cudaStream_t stream, unsigned *x, unsigned blocks) {
	RT(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
	fill<<<blocks, 1024, 100 << 10, stream>>>(x);
	RT(cudaGetLastError());
}

static __global__ void step(unsigned *x, unsigned n, unsigned add) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	let_dependents_begin();
	wait_for_those_before();
	if (i < n) {
		x[i] = x[i] * 3 + add;
	}
}

void other_step(cudaStream_t stream, unsigned *x, unsigned n, unsigned add, bool dependent) {
	cudaLaunchAttribute at[1];
	cudaLaunchConfig_t c = {};

	at[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	at[0].val.programmaticStreamSerializationAllowed = dependent;
	c.gridDim = dim3((n + 127) / 128);
	c.blockDim = dim3(128);
	c.stream = stream;
	c.attrs = at;
	c.numAttrs = 1;
	RT(cudaLaunchKernelEx(&c, step, x, n, add));
}
