/*
 * copy-back.cu: what copies cost beside those of others, by the copy engine and by a kernel; and
 * what an event costs that is recorded in front of a job whose stream copied back before.
 *
 * `mps.sh FOLDER copy-back` runs all of it.
 *
 * usage: copy-back jobs N
 *	N jobs of an empty kernel and a copy, for each direction and size: by the engine (0), and by
 *	kernels of so many blocks; p50, p90 and p99 of the whole job, in us.
 * usage: copy-back events N
 *	N jobs that copy 1 MiB to the GPU, launch an empty kernel and copy 1 KiB back, by the engine
 *	and by a kernel, without an event in front and with one; p50 and p90.
 * usage: copy-back load back | to | spin
 *	Copies 16 MiB, or fills all SMs with blocks of 0.15 ms, again and again with pauses of
 *	0.2 ms, at the lowest level, until it is killed.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "probe.h"

#define MIB	   ((size_t)1 << 20)
#define THREADS	   512
#define PAUSE_US   200.0
#define SPIN_TICKS 300000

static unsigned char *host, *device;
static cudaStream_t stream;

__global__ void copy(uint4 *to, const uint4 *from, size_t n) {
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		to[i] = from[i];
	}
}

__global__ void empty(void) {
}

__global__ void spin(long long ticks) {
	long long began = clock64();

	while (clock64() - began < ticks) {
	}
}

static void copy_by(int blocks, bool to_gpu, size_t n) {
	void *to = to_gpu ? device : host, *from = to_gpu ? host : device;

	if (blocks == 0) {
		CHECK(cudaMemcpyAsync(to, from, n,
				      to_gpu ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
				      stream));
		return;
	}
	copy<<<blocks, THREADS, 0, stream>>>((uint4 *)to, (const uint4 *)from, n / sizeof(uint4));
	CHECK(cudaGetLastError());
}

static void wait_a_little(void) {
	sleep_until_us(now_us() + 300 + rand() % 400);
}

static void load(const char *what) {
	for (;;) {
		double until;

		if (strcmp(what, "spin") == 0) {
			for (int i = 0; i < 3; i++) {
				spin<<<1320, 256, 0, stream>>>(SPIN_TICKS);
			}
			CHECK(cudaGetLastError());
		} else {
			copy_by(0, strcmp(what, "to") == 0, 16 * MIB);
		}
		CHECK(cudaStreamSynchronize(stream));
		until = now_us() + PAUSE_US;
		while (now_us() < until) {
		}
	}
}

static void jobs(size_t n, double *us) {
	static const size_t sizes[] = {1024, 64 << 10, 256 << 10, MIB, 4 * MIB};
	static const int blocks[] = {0, 1, 4, 16, 32, 64};

	for (int to_gpu = 0; to_gpu < 2; to_gpu++) {
		for (size_t bytes : sizes) {
			printf("  %s %7zu:", to_gpu ? "to" : "back", bytes);
			for (int b : blocks) {
				if (b > 1 && b * THREADS * sizeof(uint4) > 2 * bytes) {
					continue;
				}
				for (size_t i = 0; i < n; i++) {
					double began;

					wait_a_little();
					began = now_us();
					empty<<<132, 256, 0, stream>>>();
					copy_by(b, to_gpu, bytes);
					CHECK(cudaStreamSynchronize(stream));
					us[i] = now_us() - began;
				}
				printf("  %d: %.0f %.0f %.0f", b, percentile(us, n, 500),
				       percentile(us, n, 900), percentile(us, n, 990));
			}
			puts("");
		}
	}
}

static void events(size_t n, double *us) {
	cudaEvent_t event;

	CHECK(cudaEventCreate(&event));
	for (int way = 0; way < 4; way++) {
		bool marked = way % 2;
		int blocks = way / 2;

		for (size_t i = 0; i < n; i++) {
			double began;

			wait_a_little();
			began = now_us();
			if (marked) {
				CHECK(cudaEventRecord(event, stream));
			}
			copy_by(0, true, MIB);
			empty<<<132, 256, 0, stream>>>();
			copy_by(blocks, false, 1024);
			CHECK(cudaStreamSynchronize(stream));
			us[i] = now_us() - began;
		}
		printf("  back by %s, %s: %.0f %.0f\n", blocks ? "a kernel" : "the engine",
		       marked ? "an event first" : "no event", percentile(us, n, 500),
		       percentile(us, n, 900));
	}
}

int main(int argc, char **argv) {
	bool others = argc == 3 && strcmp(argv[1], "load") == 0;
	size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	int lowest, highest;
	double *us;

	if (argc != 3 || (!others && n == 0)) {
		fprintf(stderr, "usage: copy-back jobs N | events N | load back|to|spin\n");
		return 2;
	}
	CHECK(cudaMallocHost((void **)&host, 16 * MIB));
	CHECK(cudaMalloc((void **)&device, 16 * MIB));
	memset(host, 1, 16 * MIB);
	CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
					   others ? lowest : highest));
	if (others) {
		load(argv[2]);
	}
	us = (double *)malloc(n * sizeof(*us));
	if (!us) {
		return 1;
	}
	if (strcmp(argv[1], "jobs") == 0) {
		jobs(n, us);
	} else {
		events(n, us);
	}
	free(us);
	return 0;
}
