/*
 * bench-launch.c: what a launch inside an open job, confined or not, costs with libsbeet.so in
 * front of a driver whose launch does nothing, against that driver alone; and proof that this path
 * makes no system call.
 *
 * Prints one JSON line a figure. The same run launches through the wrapper and by the driver's own
 * address in turns and takes medians, so that a noisy machine troubles both alike. Exit status 1 if
 * a system call was made. Run with libsbeet.so preloaded and a running daemon (see meson.build).
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake/fake.h"

#define ROUNDS	 401
#define LAUNCHES 500 /* a ring has room for more: the tracker drains between rounds */

typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
			      unsigned, unsigned, CUstream, void **, void **);

static double now_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void launch_all(launch_fn f) {
	for (int i = 0; i < LAUNCHES; i++) {
		if (f(FAKE_KERNEL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS) {
			exit(2);
		}
	}
}

/* Nanoseconds a launch. */
static double round_of(launch_fn f) {
	double begin = now_ns();

	launch_all(f);
	return (now_ns() - begin) / LAUNCHES;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list) {
	qsort(list, ROUNDS, sizeof(*list), compare);
	return list[ROUNDS / 2];
}

static void pause_for(long ns) {
	const struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

/* From here on this thread may write and end; anything else kills it with SIGSYS. */
static int forbid_system_calls(void) {
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		return -errno;
	}
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static void say(const char *name, double value, const char *unit) {
	char line[256];
	int n = snprintf(
		line, sizeof(line),
		"{\"bench\":\"launch\",\"figure\":\"%s\",\"value\":%.1f,\"unit\":\"%s\"}\n", name,
		value, unit);

	if (write(STDOUT_FILENO, line, (size_t)n) != n) {
		_exit(3);
	}
}

/* @what: how the launches of this comparison run. */
static void compare_with(launch_fn bare, const char *what) {
	static double with[ROUNDS], without[ROUNDS];
	char name[64];

	for (int i = 0; i < ROUNDS; i++) {
		pause_for(2000000); /* outside both measures: the ring is drained */
		/* After a pause caches are cold: the first round does not count. */
		round_of(cuLaunchKernel);
		with[i] = round_of(cuLaunchKernel);
		without[i] = round_of(bare);
	}
	snprintf(name, sizeof(name), "%s, bare", what);
	say(name, median(without), "ns");
	snprintf(name, sizeof(name), "%s, added", what);
	say(name, median(with) - median(without), "ns");
}

static _Atomic bool over;

/* Launches without a pause, in the same job. */
static void *launch_beside(void *context) {
	if (cuCtxSetCurrent(context) != CUDA_SUCCESS) {
		exit(2);
	}
	while (!over) {
		launch_all(cuLaunchKernel);
	}
	return NULL;
}

static void compare_beside(launch_fn bare, CUcontext context) {
	pthread_t thread;

	if (pthread_create(&thread, NULL, launch_beside, context) != 0) {
		exit(2);
	}
	compare_with(bare, "beside another thread");
	over = true;
	pthread_join(thread, NULL);
}

/* The job that is open ends, and the next one is of a kernel that can be confined. */
static void open_confined_job(void) {
	static const char text[] =
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry nothing() { ret; }\n";
	CUfunction function;
	CUmodule module;

	fake_hold(false);
	if (cuCtxSynchronize() != CUDA_SUCCESS || cuModuleLoadData(&module, text) != CUDA_SUCCESS ||
	    cuModuleGetFunction(&function, module, "nothing") != CUDA_SUCCESS) {
		exit(2);
	}
	fake_hold(true);
	round_of(cuLaunchKernel);
	if (fake_twin_launches() != LAUNCHES) {
		say("confined launches, of 500", fake_twin_launches(), "");
		exit(1);
	}
}

/* While operations keep coming the tracker leaves the driver alone. */
static void check_questions(void) {
	unsigned before = fake_questions();
	double begin = now_ns();

	while (now_ns() - begin < 50e6) {
		launch_all(cuLaunchKernel);
	}
	say("questions to the driver in 50 ms of launches", fake_questions() - before, "");
}

int main(void) {
	launch_fn bare = NULL;
	CUcontext context;
	int r;

	/* The driver's own address, past the shim. */
	if (fake_find("cuLaunchKernel", (void **)&bare, 13000, 0) != CUDA_SUCCESS ||
	    cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    cuCtxSetCurrent(context) != CUDA_SUCCESS) {
		return 2;
	}
	fake_hold(true); /* the job stays open */
	round_of(cuLaunchKernel);
	compare_with(bare, "whole GPU");
	compare_beside(bare, context);
	open_confined_job();
	compare_with(bare, "confined");
	check_questions();

	pause_for(5000000);
	r = forbid_system_calls();
	if (r < 0) {
		say("system calls not checked, no seccomp here, errno", -r, "");
		return 0;
	}
	round_of(cuLaunchKernel); /* killed by SIGSYS if it makes one */
	say("system calls in 500 confined launches", 0, "");
	_exit(0);
}
