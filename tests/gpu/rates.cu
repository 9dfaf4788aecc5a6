/*
 * rates.cu: kernels whose blocks all take the same time, bound by one thing each.
 */

/*
 * @rounds is a multiple of 40. No step can be computed together with the next one, and the loop is
 * long: one of seven instructions took up to 6 % longer or shorter depending on the place in the text
 * where it happened to stand, in twins and originals alike.
 */
static __device__ unsigned compute(unsigned x, unsigned rounds) {
	for (unsigned r = 0; r < rounds; r += 40) {
#pragma unroll
		for (unsigned i = 0; i < 40; i++) {
			x = x * x + 1013904223u;
		}
	}
	return x;
}

/* Arithmetic only. The store never happens, and the compiler does not know. */
extern "C" __global__ void burn(unsigned *out, unsigned rounds) {
	unsigned x = compute(blockIdx.x * blockDim.x + threadIdx.x, rounds);

	if (rounds == 0xFFFFFFFFu) {
		out[x & 1023] = x;
	}
}

/* The same with shared memory, in which a twin then has its slot. */
extern "C" __global__ void burn_shared(unsigned *out, unsigned rounds) {
	__shared__ unsigned last[8];
	unsigned x = compute(blockIdx.x * blockDim.x + threadIdx.x, rounds);

	if (rounds == 0xFFFFFFFFu) {
		last[threadIdx.x & 7] = x;
		__syncthreads();
		out[x & 1023] = last[x & 7];
	}
}

/* Memory only: 32 KiB a block of 256 threads, of @wrap blocks' memory. */
extern "C" __global__ void copy(uint4 *to, const uint4 *from, unsigned wrap) {
	unsigned long long at = (unsigned long long)(blockIdx.x % wrap) * 2048 + threadIdx.x;

#pragma unroll
	for (unsigned i = 0; i < 8; i++) {
		to[at + i * 256] = from[at + i * 256];
	}
}

/* Counts its runs, and the most blocks that an SM held at once. */
extern "C" __global__ void mark(unsigned *runs, unsigned *live, unsigned *peak, unsigned cycles) {
	__shared__ unsigned sm;
	long long begin = clock64();

	if (threadIdx.x == 0) {
		asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
		sm &= 255;
		atomicAdd(&runs[blockIdx.x], 1u);
		atomicMax(&peak[sm], atomicAdd(&live[sm], 1u) + 1);
	}
	while (clock64() - begin < cycles) {
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicSub(&live[sm], 1u);
	}
}

extern "C" __global__ void nothing(void) {
}
