/*
 * copies.cu: can an urgent copy be kept from waiting for another program's copies?
 *
 * usage: copies bulk PIECE_BYTES HELD SECONDS
 *	Copies 64 MiB to the GPU again and again, at most one ahead, whole (0) or in pieces. HELD 1:
 *a wait for a word in memory stands before each piece (cuStreamWaitValue32), which a thread closes
 *while the urgent program has a copy open. Prints GB/s. usage: copies urgent BYTES BY PERIOD_US
 *SECONDS A copy each period, by the copy engine (BY 0) or by 64 blocks that read pinned memory (1),
 *	announced on the page that both map. Prints p50, p99.
 * usage: copies channels N
 *	N streams; the first waits for a word that nobody sets. On how many of the others do a
 *kernel and a copy end within 100 ms?
 *
 * Random bytes; urgent compares what arrived, at the end.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <string.h>

#include "probe.h"

#define BULK_BYTES  (64u << 20)
#define STREAMS_MAX 64

struct page {
	volatile uint32_t urgent; /* a copy is open */
};

static struct page *page;

__global__ void copy_by_sms(const uint4 *from, uint4 *to, size_t n) {
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x) {
		to[i] = from[i];
	}
}

__global__ void mark(int *done) {
	*done = 1;
}

static void *pinned_random(size_t bytes) {
	uint64_t x = 88172645463325252ull;
	uint64_t *memory;

	CHECK(cudaMallocHost((void **)&memory, bytes));
	for (size_t i = 0; i < bytes / 8; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		memory[i] = x;
	}
	return memory;
}

/* Follows the page: 0 in the gate holds the pieces that have not begun. */
static volatile int stop;

static void *keep_gate(void *userdata) {
	volatile uint32_t *gate = (volatile uint32_t *)userdata;

	while (!stop) {
		*gate = !page->urgent;
	}
	*gate = 1;
	return NULL;
}

static int bulk(size_t piece, bool held, double seconds) {
	char *from = (char *)pinned_random(BULK_BYTES), *to;
	uint32_t *gate;
	CUdeviceptr gate_dev;
	cudaStream_t stream;
	cudaEvent_t event[2];
	pthread_t thread;
	double begin, total = 0;

	piece = piece ? piece : BULK_BYTES;
	CHECK(cudaMalloc((void **)&to, BULK_BYTES));
	CHECK(cudaMallocHost((void **)&gate, sizeof(*gate)));
	*gate = 1;
	CHECK(cuMemHostGetDevicePointer(&gate_dev, gate, 0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
	}
	if (held) {
		CHECK(pthread_create(&thread, NULL, keep_gate, gate));
	}
	begin = now_us();
	for (unsigned long n = 0; now_us() < begin + seconds * 1e6; n++) {
		if (n >= 2) {
			CHECK(cudaEventSynchronize(event[n % 2]));
		}
		for (size_t at = 0; at < BULK_BYTES; at += piece) {
			if (held) {
				CHECK(cuStreamWaitValue32((CUstream)stream, gate_dev, 1,
							  CU_STREAM_WAIT_VALUE_GEQ));
			}
			CHECK(cudaMemcpyAsync(to + at, from + at, piece, cudaMemcpyHostToDevice,
					      stream));
		}
		CHECK(cudaEventRecord(event[n % 2], stream));
		total += BULK_BYTES;
	}
	CHECK(cudaStreamSynchronize(stream));
	printf("bulk piece %zu held %d: %.1f GB/s\n", piece, held,
	       total / (now_us() - begin) / 1e3);
	stop = 1;
	return held ? pthread_join(thread, NULL) : 0;
}

static int urgent(size_t bytes, bool by_sms, double period, double seconds) {
	static double response[100000];
	void *from = pinned_random(bytes), *to, *back = malloc(bytes);
	cudaStream_t stream;
	double begin, release;
	size_t n = 0;

	CHECK(cudaMalloc(&to, bytes));
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -5));
	begin = release = now_us();
	while (release < begin + seconds * 1e6 && n < 100000) {
		double start = sleep_until_us(release);

		page->urgent = 1;
		if (by_sms) {
			copy_by_sms<<<64, 256, 0, stream>>>((uint4 *)from, (uint4 *)to, bytes / 16);
			CHECK(cudaGetLastError());
		} else {
			CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
		}
		CHECK(cudaStreamSynchronize(stream));
		page->urgent = 0;
		if (n++ >= 10) { /* the first ones open what is opened once */
			response[n - 11] = now_us() - start;
		}
		release += period;
		release = release > now_us() ? release : now_us();
	}
	n -= 10;
	CHECK(cudaMemcpy(back, to, bytes, cudaMemcpyDeviceToHost));
	printf("urgent %zu bytes by %s: n %zu p50 %.0f p99 %.0f max %.0f us%s\n", bytes,
	       by_sms ? "SMs" : "engine", n, percentile(response, n, 500),
	       percentile(response, n, 990), percentile(response, n, 1000),
	       memcmp(from, back, bytes) == 0 ? "" : " WRONG");
	return memcmp(from, back, bytes) != 0;
}

static int channels(int n) {
	cudaStream_t stream[STREAMS_MAX];
	cudaEvent_t event[STREAMS_MAX];
	uint32_t *gate;
	CUdeviceptr gate_dev;
	char *from = (char *)pinned_random(4096), *to;
	int *done;

	n = n < STREAMS_MAX ? n : STREAMS_MAX;
	CHECK(cudaMallocHost((void **)&gate, sizeof(*gate)));
	CHECK(cuMemHostGetDevicePointer(&gate_dev, gate, 0));
	CHECK(cudaMalloc((void **)&done, sizeof(*done)));
	CHECK(cudaMalloc((void **)&to, 4096));
	for (int i = 0; i < n; i++) {
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
		mark<<<1, 1, 0, stream[i]>>>(done);
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyAsync(to, from, 4096, cudaMemcpyHostToDevice, stream[i]));
	}
	CHECK(cudaDeviceSynchronize());
	for (int copy = 0; copy < 2; copy++) {
		int through = 0;

		*gate = 0;
		CHECK(cuStreamWaitValue32((CUstream)stream[0], gate_dev, 1,
					  CU_STREAM_WAIT_VALUE_GEQ));
		/* What waits is what the shim would hold: a copy. */
		CHECK(cudaMemcpyAsync(to, from, 4096, cudaMemcpyHostToDevice, stream[0]));
		for (int i = 1; i < n; i++) {
			if (copy) {
				CHECK(cudaMemcpyAsync(to, from, 4096, cudaMemcpyHostToDevice,
						      stream[i]));
			} else {
				mark<<<1, 1, 0, stream[i]>>>(done);
				CHECK(cudaGetLastError());
			}
			CHECK(cudaEventRecord(event[i], stream[i]));
		}
		usleep(100000);
		for (int i = 1; i < n; i++) {
			through += cudaEventQuery(event[i]) == cudaSuccess;
		}
		*(volatile uint32_t *)gate = 1;
		CHECK(cudaDeviceSynchronize());
		printf("%d streams, the first waits: %s ended on %d of the other %d\n", n,
		       copy ? "a copy" : "a kernel", through, n - 1);
	}
	return 0;
}

int main(int argc, char **argv) {
	page = (struct page *)shared_page(4096);
	page->urgent = 0;
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost));
	CHECK(cudaFree(NULL));
	if (argc == 5 && strcmp(argv[1], "bulk") == 0) {
		return bulk(strtoul(argv[2], NULL, 0), atoi(argv[3]) != 0, atof(argv[4]));
	}
	if (argc == 6 && strcmp(argv[1], "urgent") == 0) {
		return urgent(strtoul(argv[2], NULL, 0), atoi(argv[3]) != 0, atof(argv[4]),
			      atof(argv[5]));
	}
	if (argc == 3 && strcmp(argv[1], "channels") == 0) {
		return channels(atoi(argv[2]));
	}
	fprintf(stderr, "usage: see the head of copies.cu\n");
	return 2;
}
