/* The kernel in the images that test-fatbin reads. */
extern "C" __global__ void scale(float *v, float by, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		v[i] *= by;
	}
}
