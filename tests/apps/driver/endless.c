/*
 * endless.c: one job that goes on until a file is there: steps that don't commute, each launched
 * behind the one before, so that any that is lost, repeated or out of order shows in the result.
 * For jobs that are stopped and go on.
 *
 * usage: endless FILE job | segments | unmarked
 *	job		one marked job
 *	segments	the same; each time round the loop is a segment of it
 *	unmarked	no marks: a wait ends each job
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "shim/sbeet.h"

extern const char order_ptx[];

#define THREADS 32u
#define STEPS	4u  /* each time round */
#define ROUNDS	50u /* each step */

static struct {
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr x;
	unsigned want[THREADS];
	unsigned long long launches;
} my;

static void step(unsigned n) {
	unsigned a = 2 * n + 3, c = n * 7 + 1, rounds = ROUNDS;
	void *params[] = {&my.x, &a, &c, &rounds};

	CU(cuLaunchKernel(my.kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned k = 0; k < ROUNDS; k++) {
			my.want[i] = my.want[i] * a + c;
		}
	}
	my.launches++;
}

static void once_round(bool segments) {
	if (segments) {
		sbeet_segment_begin();
	}
	for (unsigned i = 0; i < STEPS; i++) {
		step((unsigned)my.launches);
	}
	CU(cuStreamSynchronize(NULL));
	if (segments) {
		sbeet_segment_end();
	}
	if (my.launches == STEPS || my.launches == 2 * STEPS) {
		puts(my.launches == STEPS ? "begun" : "goes on");
		fflush(stdout);
	}
}

int main(int argc, char **argv) {
	bool segments, marked;
	unsigned got[THREADS];
	bool ok;

	if (argc != 3 || (strcmp(argv[2], "job") != 0 && strcmp(argv[2], "segments") != 0 &&
			  strcmp(argv[2], "unmarked") != 0)) {
		fprintf(stderr, "usage: endless FILE job | segments | unmarked\n");
		return 2;
	}
	segments = strcmp(argv[2], "segments") == 0;
	marked = strcmp(argv[2], "unmarked") != 0;
	my.module = driver_open(0, order_ptx);
	my.kernel = driver_kernel(my.module, "order_step");
	my.x = driver_alloc(sizeof(my.want));
	CU(cuMemcpyHtoD(my.x, my.want, sizeof(my.want)));
	if (marked) {
		sbeet_job_begin(0);
	}
	do {
		once_round(segments);
	} while (access(argv[1], F_OK) != 0);
	if (marked) {
		sbeet_job_end();
	}
	CU(cuMemcpyDtoH(got, my.x, sizeof(got)));
	ok = memcmp(got, my.want, sizeof(got)) == 0;
	printf("endless: {\"ok\":%s,\"launches\":%llu}\n", ok ? "true" : "false", my.launches);
	driver_free(my.x);
	driver_close(my.module);
	return ok ? 0 : 1;
}
