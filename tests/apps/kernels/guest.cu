/*
 * guest.cu: the kernels of the guests: steps that do not commute, work that takes time, variables of a module, and a
 * kernel that waits for the host.
 */

/* What comes out tells how often and in which order steps ran. */
extern "C" __global__ void guest_step(unsigned *x, unsigned n, unsigned add)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		x[i] = x[i] * 3 + add;
	}
}

/* Each block counts in x[0] when it has done its rounds. */
extern "C" __global__ void guest_spin(unsigned *x, unsigned rounds)
{
	volatile unsigned v = threadIdx.x + blockIdx.x;

	for (unsigned i = 0; i < rounds; i++) {
		v = v * 1664525 + 1013904223;
	}
	if (threadIdx.x == 0) {
		atomicAdd(x, 1);
	}
}

extern "C" __device__ unsigned guest_total = 5;
extern "C" __constant__ unsigned guest_factor = 2;

/* Each block adds to a variable of the module. */
extern "C" __global__ void guest_count(unsigned by)
{
	if (threadIdx.x == 0) {
		atomicAdd(&guest_total, by * guest_factor);
	}
}

/* Waits until another sets the flag. */
extern "C" __global__ void guest_await(volatile unsigned *flag, unsigned *x)
{
	if (threadIdx.x == 0) {
		while (*flag == 0) {
		}
		atomicAdd(x, 1);
	}
}

extern "C" __global__ void guest_set(volatile unsigned *flag)
{
	if (threadIdx.x == 0) {
		*flag = 1;
	}
}

/* With shared memory of both kinds. */
extern "C" __global__ void guest_sum(const unsigned *x, unsigned n, unsigned *sum)
{
	__shared__ unsigned few[32];
	extern __shared__ unsigned parts[];

	parts[threadIdx.x] = 0;
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
		parts[threadIdx.x] += x[i];
	}
	__syncthreads();
	if (threadIdx.x < 32) {
		few[threadIdx.x] = 0;
		for (unsigned i = threadIdx.x; i < blockDim.x; i += 32) {
			few[threadIdx.x] += parts[i];
		}
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		for (unsigned i = 0; i < 32; i++) {
			*sum += few[i];
		}
	}
}
