/*
 * khz.c: small kernels at a high rate, with the driver's functions: two vectors to the GPU, their
 * sum back, a frame a millisecond. As a program without a deadline: the same without a pause.
 *
 * usage: khz PTX [BLOCKS]     commands and answers as those of frames.py; PTX: vecadd.ptx
 *
 * OWN_PRIORITY=1: on a stream of the highest priority. Compiles as C and as C++.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INPUTS 8
#define BLOCK  256

#define CHECK(call)                                                         \
	do {                                                                \
		CUresult rc_ = (call);                                      \
		if (rc_ != CUDA_SUCCESS) {                                  \
			fprintf(stderr, "%s: error %d\n", #call, (int)rc_); \
			exit(1);                                            \
		}                                                           \
	} while (0)

struct khz {
	CUfunction add;
	CUstream stream;
	CUdeviceptr a, b, c;
	float *in[INPUTS], *out; /* pinned; of 2 * n and n values */
	unsigned n, blocks;
};

/* Of a run, all frames together. */
struct run {
	double *at, *ms;
	size_t n, room, skipped;
	uint64_t result[INPUTS];
	int seen[INPUTS], varies[INPUTS];
};

static double seconds_now(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_until(double when) {
	double left = when - seconds_now() - 1e-4;
	struct timespec t;

	if (left > 1e-4) {
		t.tv_sec = (time_t)left;
		t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
		nanosleep(&t, NULL);
	}
	while (seconds_now() < when) {
	}
}

static char *read_file(const char *path) {
	FILE *f = fopen(path, "rb");
	char *text = (char *)calloc(1, 1 << 20);

	if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
		fprintf(stderr, "cannot read '%s'\n", path);
		exit(1);
	}
	fclose(f);
	return text;
}

static void start(struct khz *k, const char *ptx, unsigned blocks) {
	const char *priority = getenv("OWN_PRIORITY");
	char *text = read_file(ptx);
	CUcontext context;
	CUmodule module;
	CUdevice device;
	uint32_t x = 1;

	k->blocks = blocks;
	k->n = blocks * BLOCK;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&k->add, module, "vecadd"));
	CHECK(cuStreamCreateWithPriority(&k->stream, CU_STREAM_NON_BLOCKING,
					 priority && *priority == '1' ? -5 : 0));
	CHECK(cuMemAlloc(&k->a, k->n * sizeof(float)));
	CHECK(cuMemAlloc(&k->b, k->n * sizeof(float)));
	CHECK(cuMemAlloc(&k->c, k->n * sizeof(float)));
	CHECK(cuMemAllocHost((void **)&k->out, k->n * sizeof(float)));
	for (unsigned i = 0; i < INPUTS; i++) {
		CHECK(cuMemAllocHost((void **)&k->in[i], 2 * k->n * sizeof(float)));
		for (unsigned j = 0; j < 2 * k->n; j++) {
			x = x * 1664525u + 1013904223u;
			k->in[i][j] = (float)(x >> 8);
		}
	}
	free(text);
}

/* Return: a hash of the sums. */
static uint64_t frame(struct khz *k, unsigned i) {
	void *params[] = {&k->a, &k->b, &k->c, &k->n};
	const unsigned char *bytes = (const unsigned char *)k->out;
	size_t n = k->n * sizeof(float);
	uint64_t hash = 0xCBF29CE484222325ull;

	CHECK(cuMemcpyHtoDAsync(k->a, k->in[i], n, k->stream));
	CHECK(cuMemcpyHtoDAsync(k->b, k->in[i] + k->n, n, k->stream));
	CHECK(cuLaunchKernel(k->add, k->blocks, 1, 1, BLOCK, 1, 1, 0, k->stream, params, NULL));
	CHECK(cuMemcpyDtoHAsync(k->out, k->c, n, k->stream));
	CHECK(cuStreamSynchronize(k->stream));
	for (size_t j = 0; j < n; j++) {
		hash = (hash ^ bytes[j]) * 0x100000001B3ull;
	}
	return hash;
}

static void note(struct run *r, unsigned i, uint64_t result) {
	r->varies[i] |= r->seen[i] && r->result[i] != result;
	r->seen[i] = 1;
	r->result[i] = result;
}

static void count(struct run *r, double at, double ms) {
	if (r->n == r->room) {
		r->room = r->room * 2 + 1024;
		r->at = (double *)realloc(r->at, r->room * sizeof(double));
		r->ms = (double *)realloc(r->ms, r->room * sizeof(double));
		if (!r->at || !r->ms) {
			exit(1);
		}
	}
	r->at[r->n] = at;
	r->ms[r->n++] = ms;
}

static void print_results(const struct run *r) {
	const char *comma = "";

	printf("\"results\": {");
	for (unsigned i = 0; i < INPUTS; i++) {
		if (!r->seen[i]) {
			continue;
		}
		if (r->varies[i]) {
			printf("%s\"%u\": \"varies\"", comma, i);
		} else {
			printf("%s\"%u\": \"%012llx\"", comma, i,
			       (unsigned long long)(r->result[i] & 0xffffffffffffull));
		}
		comma = ", ";
	}
	printf("}}\n");
	fflush(stdout);
}

static void print_numbers(const char *name, const double *list, size_t n, int digits) {
	printf("\"%s\": [", name);
	for (size_t i = 0; i < n; i++) {
		printf("%s%.*f", i ? ", " : "", digits, list[i]);
	}
	printf("], ");
}

static void run_frames(struct khz *k, double period, double lead, double seconds) {
	double release = seconds_now() + 0.01, from = release + lead, end = from + seconds;
	struct run r;

	memset(&r, 0, sizeof(r));
	for (unsigned i = 0; release < end; i++) {
		uint64_t result;
		double now;

		pause_until(release);
		result = frame(k, i % INPUTS);
		now = seconds_now();
		note(&r, i % INPUTS, result);
		if (release >= from) {
			count(&r, release - from, (now - release) * 1e3);
		}
		for (release += period; release + period < now && release < end;
		     release += period) {
			r.skipped += release >= from;
		}
	}
	printf("{");
	print_numbers("at", r.at, r.n, 5);
	print_numbers("ms", r.ms, r.n, 4);
	printf("\"skipped\": %zu, ", r.skipped);
	print_results(&r);
	free(r.at);
	free(r.ms);
}

static void run_steps(struct khz *k, double seconds) {
	double begin = seconds_now();
	unsigned n = 0;
	struct run r;

	memset(&r, 0, sizeof(r));
	for (; seconds_now() < begin + seconds; n++) {
		note(&r, n % INPUTS, frame(k, n % INPUTS));
	}
	printf("{\"rate\": %.3f, ", n / (seconds_now() - begin));
	print_results(&r);
}

int main(int argc, char **argv) {
	double period, lead, seconds;
	struct khz k;
	char line[256];

	if (argc < 2) {
		fprintf(stderr, "usage: khz PTX [BLOCKS]\n");
		return 2;
	}
	start(&k, argv[1], argc > 2 ? (unsigned)atoi(argv[2]) : 16);
	for (unsigned i = 0; i < INPUTS; i++) {
		frame(&k, i);
	}
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "frames %lf %lf %lf", &period, &lead, &seconds) == 3) {
			run_frames(&k, period, lead, seconds);
		} else if (sscanf(line, "steps %lf", &seconds) == 1) {
			run_steps(&k, seconds);
		}
	}
	return 0;
}
