/*
 * interp-suite.cu: ordinary kernels for the tests of the PTX interpreter (test-interp-kernels.c).
 * interp-suite.sh makes interp-suite.ptx (-O3) and interp-suite-debug.ptx (-G) of it.
 */
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <stdio.h>

#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
	__shared__ float sa[TILE][TILE], sb[TILE][TILE];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		sa[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
		sb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
		__syncthreads();
		for (int i = 0; i < TILE; i++) {
			sum = fmaf(sa[threadIdx.y][i], sb[i][threadIdx.x], sum);
		}
		__syncthreads();
	}
	c[y * n + x] = sum;
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
	__shared__ unsigned local[256];

	for (int i = threadIdx.x; i < 256; i += blockDim.x) {
		local[i] = 0;
	}
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		atomicAdd(&local[in[i]], 1);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x) {
		atomicAdd(&bins[i], local[i]);
	}
}

/* Inclusive prefix sum of one block by shuffles. */
extern "C" __global__ void scan(const int *in, int *out) {
	__shared__ int sums[32];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, v = in[threadIdx.x];

	for (int d = 1; d < 32; d *= 2) {
		int o = __shfl_up_sync(0xffffffff, v, d);
		v += lane >= d ? o : 0;
	}
	if (lane == 31) {
		sums[warp] = v;
	}
	__syncthreads();
	if (warp == 0) {
		int s = lane < blockDim.x / 32 ? sums[lane] : 0;
		for (int d = 1; d < 32; d *= 2) {
			int o = __shfl_up_sync(0xffffffff, s, d);
			s += lane >= d ? o : 0;
		}
		sums[lane] = s;
	}
	__syncthreads();
	out[threadIdx.x] = v + (warp ? sums[warp - 1] : 0);
}

extern "C" __global__ void bitonic(unsigned *data) {
	extern __shared__ unsigned s[];
	unsigned t = threadIdx.x;

	s[t] = data[t];
	__syncthreads();
	for (unsigned k = 2; k <= blockDim.x; k *= 2) {
		for (unsigned j = k / 2; j > 0; j /= 2) {
			unsigned o = t ^ j;

			if (o > t && ((t & k) == 0) == (s[t] > s[o])) {
				unsigned v = s[t];
				s[t] = s[o];
				s[o] = v;
			}
			__syncthreads();
		}
	}
	data[t] = s[t];
}

extern "C" __global__ void math(const double *in, double *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		double v = in[i];
		float f = (float)v;

		out[8 * i] = sin(v) + exp(-v);
		out[8 * i + 1] = log(v) * sqrt(v);
		out[8 * i + 2] = pow(v, 1.7) / cbrt(v);
		out[8 * i + 3] = atan2(v, 2.0) + fmod(v, 0.7);
		out[8 * i + 4] = sinf(f) + expf(-f);
		out[8 * i + 5] = logf(f) * rsqrtf(f);
		out[8 * i + 6] = powf(f, 1.7f) / f;
		out[8 * i + 7] = tanhf(f) + erff(f);
	}
}

__device__ __noinline__ unsigned long long power(unsigned long long base, unsigned n, unsigned long long mod) {
	if (n == 0) {
		return 1;
	}
	unsigned long long half = power(base, n / 2, mod);
	half = half * half % mod;
	return n % 2 ? half * base % mod : half;
}

struct shape {
	int kind;
	short w, h;
	long long weight;
	double factor[3];
};

__device__ __noinline__ double area(struct shape s) {
	switch (s.kind) {
	case 0:
		return s.w * s.h * s.factor[0];
	case 1:
		return s.w * 3.5 + s.weight;
	case 2:
		return s.h / 2 - s.factor[1];
	case 3:
		return (double)(s.weight % 7) * s.factor[2];
	case 4:
		return s.weight / (s.w | 1);
	default:
		return -1;
	}
}

typedef int (*op_t)(int, int);
__device__ int op_add(int a, int b) {
	return a + b;
}
__device__ int op_mul(int a, int b) {
	return a * b;
}
__device__ op_t ops[2] = {op_add, op_mul};

extern "C" __global__ void calls(struct shape base, unsigned long long *powers, double *areas, int *results) {
	unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
	int stack[16];

	powers[t] = power(t + 3, t % 61, 1000000007ull);
	base.kind = t % 6;
	base.w += t;
	base.weight *= t;
	areas[t] = area(base);
	for (int i = 0; i < 16; i++) {
		stack[(i * 7 + t) % 16] = i * t;
	}
	results[t] = ops[t % 2](stack[t % 16], stack[(t * 5) % 16]);
}

extern "C" __global__ void halves(const float *in, __half2 *out, int n) {
	int i = threadIdx.x;

	if (i < n) {
		__half2 v = __floats2half2_rn(in[2 * i], in[2 * i + 1]);
		out[i] = __hfma2(v, __float2half2_rn(1.5f), __float2half2_rn(-0.25f));
	}
}

extern "C" __global__ void groups(const int *in, int *out) {
	namespace cg = cooperative_groups;
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
	int v = in[block.thread_rank()];

	for (int d = tile.size() / 2; d > 0; d /= 2) {
		v += tile.shfl_down(v, d);
	}
	if (tile.thread_rank() == 0) {
		cg::coalesced_group active = cg::coalesced_threads();
		out[block.thread_rank() / 8] = v + 1000 * active.size();
	}
	block.sync();
}

extern "C" __global__ void say(int n) {
	if (threadIdx.x < 2) {
		printf("thread %d of %s: %5.2f %x %lld%%\n", threadIdx.x, "say", 1.5 * n, n, 1ll << 40);
	}
}

extern "C" __global__ void collatz(const unsigned *in, unsigned *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n) {
		return;
	}
	unsigned long long v = in[i];
	unsigned steps = 0;

	while (v > 1) {
		v = v & 1 ? 3 * v + 1 : v / 2;
		steps++;
	}
	out[i] = steps;
}
