/* A program as a user may write one. Exit code: 3 if anything is wrong; an argument makes one of
 * the expected numbers wrong. */
#include <cstdio>

static __global__ void scale(float *x, float factor, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		x[i] *= factor;
	}
}

int main(int argc, char **argv) {
	const int n = 10000;
	static float x[n];
	cudaError_t error;
	float *on_gpu;
	int wrong = 0;

	(void)argv;
	for (int i = 0; i < n; i++) {
		x[i] = i;
	}
	cudaMalloc(&on_gpu, sizeof(x));
	cudaMemcpy(on_gpu, x, sizeof(x), cudaMemcpyHostToDevice);
	scale<<<(n + 255) / 256, 256>>>(on_gpu, 2, n);
	cudaMemcpy(x, on_gpu, sizeof(x), cudaMemcpyDeviceToHost);
	error = cudaDeviceSynchronize();
	for (int i = 0; i < n; i++) {
		wrong += x[i] != 2 * i + (argc > 1 && i == 7);
	}
	printf("%s, %d wrong\n", cudaGetErrorString(error), wrong);
	return wrong ? 3 : 0;
}
