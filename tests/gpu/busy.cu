/*
 * busy.cu: one kernel that lasts, for those who look at what its program's death does to others:
 *
 *	busy compute SECONDS   arithmetic in registers
 *	busy memory SECONDS    reads and writes 256 MiB all the time
 *	busy idle SECONDS      a context and no kernel
 *	busy fault SECONDS     after this time, a kernel that writes where it may not
 *
 * Prints "running" when the kernel has begun, and at the end "right" after it has compared what the
 * kernel left. Any error of CUDA is told in one line on stderr with the function that returned it,
 * exit code 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define BLOCKS	264
#define THREADS 256
#define WORDS	(64u << 20)

#define CHECK(call)                                                                              \
	do {                                                                                     \
		cudaError_t e_ = (call);                                                         \
		if (e_ != cudaSuccess) {                                                         \
			fprintf(stderr, "busy: %s: %s\n", #call, cudaGetErrorString(e_));        \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

__device__ static unsigned long long now_ns(void)
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* Adds 1 to each word as often as time allows; each thread tells how often. */
__global__ void memory(unsigned *words, unsigned *turns, volatile unsigned *begun,
		       unsigned long long limit_ns)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, n = 0;
	unsigned long long until = now_ns() + limit_ns;

	*begun = 1;
	__threadfence_system();
	do {
		for (unsigned k = i; k < WORDS; k += all) {
			words[k]++;
		}
		n++;
	} while (now_ns() < until);
	turns[i] = n;
}

__global__ void compute(unsigned *turns, volatile unsigned *begun, unsigned long long limit_ns)
{
	unsigned long long until = now_ns() + limit_ns;
	float a = threadIdx.x;

	*begun = 1;
	__threadfence_system();
	while (now_ns() < until) {
		for (int i = 0; i < 1000; i++) {
			a = a * 0.999f + 0.001f;
		}
	}
	turns[blockIdx.x * blockDim.x + threadIdx.x] = a >= 0 ? 1 : 0;
}

__global__ void fault(unsigned *nowhere)
{
	*nowhere = 1;
}

static unsigned *begun;

static void tell_begin(void)
{
	volatile unsigned *seen = begun;

	while (!*seen && cudaStreamQuery(0) == cudaErrorNotReady) {
		usleep(1000);
	}
	puts("running");
	fflush(stdout);
}

static int check(const unsigned *words, const unsigned *turns)
{
	size_t wrong = 0;

	for (size_t k = 0; words && k < WORDS; k++) {
		wrong += words[k] != turns[k % (BLOCKS * THREADS)];
	}
	for (size_t i = 0; i < BLOCKS * THREADS; i++) {
		wrong += turns[i] == 0;
	}
	puts(wrong ? "WRONG" : "right");
	return wrong ? 1 : 0;
}

static int run(bool is_memory, unsigned long long limit_ns)
{
	unsigned *words = NULL, *turns, *host = NULL, *host_turns;

	CHECK(cudaHostAlloc((void **)&begun, sizeof(*begun), cudaHostAllocMapped));
	*begun = 0;
	CHECK(cudaMalloc((void **)&turns, BLOCKS * THREADS * sizeof(unsigned)));
	if (is_memory) {
		CHECK(cudaMalloc((void **)&words, WORDS * sizeof(unsigned)));
		CHECK(cudaMemset(words, 0, WORDS * sizeof(unsigned)));
		memory<<<BLOCKS, THREADS>>>(words, turns, begun, limit_ns);
	} else {
		compute<<<BLOCKS, THREADS>>>(turns, begun, limit_ns);
	}
	CHECK(cudaGetLastError());
	tell_begin();
	CHECK(cudaDeviceSynchronize());
	host_turns = (unsigned *)malloc(BLOCKS * THREADS * sizeof(unsigned));
	CHECK(cudaMemcpy(host_turns, turns, BLOCKS * THREADS * sizeof(unsigned), cudaMemcpyDeviceToHost));
	if (is_memory) {
		host = (unsigned *)malloc(WORDS * sizeof(unsigned));
		CHECK(cudaMemcpy(host, words, WORDS * sizeof(unsigned), cudaMemcpyDeviceToHost));
	}
	return check(host, host_turns);
}

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? atof(argv[2]) : 0;

	if (seconds <= 0) {
		fprintf(stderr, "usage: busy compute|memory|idle|fault SECONDS\n");
		return 2;
	}
	if (strcmp(argv[1], "idle") == 0 || strcmp(argv[1], "fault") == 0) {
		CHECK(cudaFree(0));
		puts("running");
		fflush(stdout);
		usleep((useconds_t)(seconds * 1e6));
		if (strcmp(argv[1], "fault") == 0) {
			fault<<<1, 1>>>((unsigned *)16);
		}
		CHECK(cudaDeviceSynchronize());
		puts("right");
		return 0;
	}
	return run(strcmp(argv[1], "memory") == 0, (unsigned long long)(seconds * 1e9));
}
