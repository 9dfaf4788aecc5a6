/*
 * features.cu: kernels that use what the sample programs do not, for the assembler to judge their
 * twins. features.ptx is nvcc -arch=compute_75 -ptx of this file.
 */
#include <cassert>
#include <cstdio>

#include <cooperative_groups.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

__device__ int counter;
__device__ int table[4] = {1, 2, 3, 4};
__device__ int *pointer = &table[1];
__constant__ float weights[16];
__device__ int (*functions[2])(int);

struct shape {
	int a;
	double b;
	char c[3];
};

template <class T>
__global__ void twice(T *x) {
	x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
template __global__ void twice<float>(float *);
template __global__ void twice<double>(double *);

__global__ void say(int n) {
	if (threadIdx.x == 0) {
		printf("hello %d %s %f\n", n, "world", 1.5);
	}
	assert(n < 5);
}

__global__ void through_pointers(int *out, int i) {
	out[threadIdx.x] = functions[i](out[0]);
}

__noinline__ __device__ int recursive(int n, struct shape s) {
	return n <= 1 ? (int)(blockIdx.x + gridDim.y) + s.a
		      : recursive(n - 1, s) + recursive(n - 2, s);
}

__global__ void call_recursive(int *out, struct shape s) {
	out[threadIdx.x] = recursive(out[1], s);
}

__global__ void leave_and_count(float *x, int *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n) {
		return;
	}
	x[i] += weights[i & 15];
	out[0] = __syncthreads_count(x[i] > 0);
	out[1] = __syncthreads_and(x[i] > 1);
	out[2] = __syncthreads_or(x[i] > 2);
	__syncthreads();
	x[i] = x[(i + 1) % n];
	atomicAdd(&counter, table[i & 3]);
	*pointer = 3;
}

__global__ void whole_grid(int *x) {
	cg::this_grid().sync();
	x[0] = 1;
}

__global__ void tiles(int *x) {
	auto t = cg::tiled_partition<16>(cg::this_thread_block());
	int v = x[threadIdx.x];

	for (int i = t.size() / 2; i > 0; i /= 2) {
		v += t.shfl_down(v, i);
	}
	x[threadIdx.x] = v;
	cg::this_thread_block().sync();
}

__global__ void choose(int *x, int y) {
	switch (y) {
	case 0: x[0] = 1; break;
	case 1: x[1] = 3; break;
	case 2: x[2] = 5; break;
	case 3: x[7] = atomicAdd(x, 1); break;
	case 4: x[8] = __popc(y); break;
	case 5: x[5] = __syncthreads_count(y); break;
	case 6: x[5] = clock(); break;
	default: x[3] = __any_sync(~0u, x[3]);
	}
}

__global__ void look_up(cudaTextureObject_t t, float *out, cudaSurfaceObject_t s) {
	out[threadIdx.x] = tex2D<float>(t, threadIdx.x, blockIdx.x) + tex1Dfetch<float>(t, 3);
	surf2Dwrite(1.0f, s, 1, 2);
}

__global__ void inline_assembly(int *out) {
	int r;

	asm volatile("{ .reg .pred p; .reg .b32 a, b<3>; mov.u32 a, %1; setp.lt.u32 p, a, 5;\n"
		     "@p mov.u32 b1, 3; @!p mov.u32 b1, %%ctaid.y; mov.u32 %0, b1; }"
		     : "=r"(r)
		     : "r"(out[1]));
	out[0] = r;
}

__global__ void three_dimensions(int *out) {
	out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = threadIdx.x;
}

__global__ void halves(__half2 *a) {
	a[0] = __hfma2(a[1], a[2], a[3]);
	atomicAdd((float *)a + 9, 1.0f);
}

__global__ void __launch_bounds__(256, 2) bounded(double *x) {
	extern __shared__ double dynamic[];

	dynamic[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = dynamic[255 - threadIdx.x] + sin(x[9]);
	__threadfence();
	__nanosleep(100);
}

__global__ void on_the_heap(int n, char *out) {
	char *p = (char *)malloc(n);
	char local[32];

	p[3] = 1;
	memcpy(out, p, n);
	free(p);
	for (int i = 0; i < 32; i++) {
		local[i] = out[i * n];
	}
	out[0] = local[n];
}
