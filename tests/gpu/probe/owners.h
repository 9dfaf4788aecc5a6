/*
 * owners.h: what the probes of preemption share: up to eight less urgent programs (owners
 * lower), the process that preempts (preempt-loop), a kernel. Each program that includes it is
 * owner 9 itself, or what owners starts.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <libgen.h>
#include <math.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "preempt.h"
#include "probe.h"

#define LOWER  8     /* owners 0 to 7 */
#define SECOND LOWER /* owner 8: urgent, but less than owner 9 */
#define ME     (LOWER + 1)

static struct preempt_page *page;
static char folder[512];
static float *buffer; /* random numbers; results too */
static cudaStream_t stream;
static int wave; /* blocks that fill the GPU: 8 on each SM */

__global__ void multiply(float *buffer, int n, volatile int *started) {
	float x = buffer[threadIdx.x], y = buffer[blockIdx.x & 255], z = 1, w = 2;

	if (started && blockIdx.x == 0 && threadIdx.x == 0) {
		*started = 1;
	}
	for (int i = 0; i < n; i++) {
		x = fmaf(x, 1.0001f, y), y = fmaf(y, 0.999f, x);
		z = fmaf(z, 1.0001f, w), w = fmaf(w, 0.999f, z);
	}
	if (x + y + z + w == 12345.678f) {
		buffer[0] = y;
	}
}

static void launch(int waves, int n, int *started) {
	multiply<<<waves * wave, 256, 0, stream>>>(buffer, n, started);
	CHECK(cudaGetLastError());
}

static void start_cuda(void) {
	float values[256];
	int sms;

	srand48(getpid());
	for (int i = 0; i < 256; i++) {
		values[i] = (float)drand48();
	}
	CHECK(cudaFree(0));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	wave = 8 * sms;
	CHECK(cudaMalloc((void **)&buffer, sizeof(values)));
	CHECK(cudaMemcpy(buffer, values, sizeof(values), cudaMemcpyHostToDevice));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 20; i++) {
		launch(1, 2000, NULL);
	}
	CHECK(cudaStreamSynchronize(stream));
}

static pid_t start(const char *program, const char *a, const char *b, int slot) {
	char path[600], preload[600], number[16];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0) {
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	snprintf(preload, sizeof(preload), "%s/preempt.so", folder);
	snprintf(number, sizeof(number), "%d", slot);
	if (slot >= 0) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("PROBE_SLOT", number, 1);
	}
	execl(path, program, a, b, NULL);
	perror(path);
	_exit(1);
}

static void start_owners(int lower, int second) {
	char number[16];
	double until = now_us() + 20e6;

	for (int i = 0; i < LOWER + 1; i++) {
		if (i < LOWER ? i >= lower : !second) {
			continue;
		}
		snprintf(number, sizeof(number), "%d", i);
		start("owners", i < LOWER ? "lower" : "urgent", number, i);
	}
	for (int i = 0; i < LOWER + 1; i++) {
		struct owner *o = &page->owner[i];

		while ((i < LOWER ? i < lower : second) && !(o->warm && o->ready)) {
			if (now_us() > until) {
				fprintf(stderr, "owner %d did not start: warm %u ready %u\n", i,
					o->warm, o->ready);
				page->stop = 1;
				exit(1);
			}
			usleep(1000);
		}
	}
}

static void set_active(int n) {
	for (int i = 0; i < LOWER; i++) {
		page->owner[i].active = i < n;
	}
	usleep(50000);
}

static pid_t start_loop(const char *interval, const char *threads) {
	pid_t pid;

	page->loops = 1;
	pid = start("preempt-loop", interval, threads, -1);
	usleep(50000);
	return pid;
}

static void end_loop(pid_t pid) {
	page->loops = 0;
	waitpid(pid, NULL, 0);
}

/* @self: argv[0], to find the others beside it. */
static void map_page(const char *self) {
	char path[512];

	page = (struct preempt_page *)shared_page(sizeof(*page));
	snprintf(path, sizeof(path), "%s", self);
	snprintf(folder, sizeof(folder), "%s", dirname(path));
}

static void begin_probe(const char *self) {
	map_page(self);
	memset((void *)page, 0, sizeof(*page));
	page->owner[ME].level = 2;
	start_cuda();
}

static int end_probe(void) {
	page->stop = 1;
	while (wait(NULL) > 0) {
	}
	return 0;
}
