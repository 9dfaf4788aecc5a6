/*
 * waiting.cu: blocks that wait for others of any number, without saying so to the driver. They end on
 * a GPU that holds all of them at once.
 */

/* A barrier of the whole grid, written by hand; each round adds what the block before it had. */
extern "C" __global__ void all_wait(unsigned *x, volatile unsigned *gate, unsigned rounds)
{
	unsigned before = (blockIdx.x + gridDim.x - 1) % gridDim.x;

	for (unsigned i = 0; i < rounds; i++) {
		unsigned v = ((volatile unsigned *)x)[before];

		for (unsigned side = 0; side < 2; side++) {
			__syncthreads();
			if (threadIdx.x == 0) {
				unsigned turn = gate[1];

				if (side) {
					((volatile unsigned *)x)[blockIdx.x] += v;
				}
				__threadfence();
				if (atomicAdd((unsigned *)gate, 1) == gridDim.x - 1) {
					gate[0] = 0;
					__threadfence();
					gate[1] = turn + 1;
				} else {
					while (gate[1] == turn) {
					}
				}
			}
			__syncthreads();
		}
	}
}

/* Each block waits for the one behind it. */
extern "C" __global__ void wait_for_higher(unsigned *x, volatile unsigned *done)
{
	if (threadIdx.x == 0) {
		if (blockIdx.x + 1 < gridDim.x) {
			while (!done[blockIdx.x + 1]) {
			}
			__threadfence();
			x[blockIdx.x] += ((volatile unsigned *)x)[blockIdx.x + 1];
		}
		__threadfence();
		done[blockIdx.x] = 1;
	}
}
