/*
 * volume.cu: smooths a 3-D field with a 3-D grid. Its device functions are kept out of line, and one
 * of them reads the block and thread indices itself.
 */
#include "shapes.h"

struct volume_dims {
	unsigned x, y, z;
};

__device__ __noinline__ uint3 volume_cell(void) {
	return make_uint3(blockIdx.x * blockDim.x + threadIdx.x,
			  blockIdx.y * blockDim.y + threadIdx.y,
			  blockIdx.z * blockDim.z + threadIdx.z);
}

/* The field's value at a cell, that of the nearest cell inside for one outside. */
__device__ __noinline__ float volume_at(const float *field, struct volume_dims dims, int x,
					       int y, int z) {
	x = min(max(x, 0), (int)dims.x - 1);
	y = min(max(y, 0), (int)dims.y - 1);
	z = min(max(z, 0), (int)dims.z - 1);
	return field[((unsigned)z * dims.y + (unsigned)y) * dims.x + (unsigned)x];
}

extern "C" __global__ void volume(const float *in, float *out, struct volume_dims dims, float weight,
				  unsigned *block_marks) {
	uint3 cell = volume_cell();
	int x = cell.x, y = cell.y, z = cell.z;

	if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
		/* Counts each block of the grid, to tell one that is lost or run twice. */
		atomicAdd(&block_marks[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
				       blockIdx.x],
			  1u);
	}
	if (cell.x >= dims.x || cell.y >= dims.y || cell.z >= dims.z) {
		return;
	}

	float sum = volume_at(in, dims, x - 1, y, z) + volume_at(in, dims, x + 1, y, z);

	sum += volume_at(in, dims, x, y - 1, z) + volume_at(in, dims, x, y + 1, z);
	sum += volume_at(in, dims, x, y, z - 1) + volume_at(in, dims, x, y, z + 1);
	out[(cell.z * dims.y + cell.y) * dims.x + cell.x] =
		fmaf(weight, sum, volume_at(in, dims, x, y, z));
}
