/*
 * kills.c: kills programs, and looks at what their neighbours and the GPU's memory do then. See
 * kills.sh. Has a context of its own, without work.
 *
 * usage: kills PROGRESS...
 *	PROGRESS: files with an 8-byte counter each, of programs that must go on.
 * Reads lines "PID MIB DELAY_US" until PID is 0: sends SIGKILL after the delay, to a program with
 * so much memory on the GPU. Answers with a line "END MEMORY PROGRESS", ms from the signal until
 * the process has ended (a zombie), until the memory is free, and until each counter has gone on
 * by 2; -1: not within 10 s.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/apps/common.h"
#include "tests/apps/driver/driver.h"

#define COUNTERS_MAX 16
#define LIMIT_NS     10000000000ull

static const volatile uint64_t *counters[COUNTERS_MAX];
static uint64_t before[COUNTERS_MAX];
static int n_counters;
static CUcontext context;

static const volatile uint64_t *map_counter(const char *path) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "kills: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(fd);
	return p;
}

static size_t free_bytes(void) {
	size_t free, total;

	CU(cuMemGetInfo(&free, &total));
	return free;
}

static bool has_ended(int pid) {
	char path[64], text[512], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0) {
		close(fd);
	}
	if (n <= 0) {
		return true;
	}
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && (state[2] == 'Z' || state[2] == 'X');
}

static bool all_go_on(void) {
	for (int i = 0; i < n_counters; i++) {
		if (*counters[i] < before[i] + 2) {
			return false;
		}
	}
	return true;
}

static void kill_one(int pid, size_t bytes) {
	size_t wanted = free_bytes() + bytes / 10 * 9;
	double ms[3] = {-1, bytes > 0 ? -1 : 0, -1};
	uint64_t began = app_now_ns(), now = began;

	for (int i = 0; i < n_counters; i++) {
		before[i] = *counters[i];
	}
	kill(pid, SIGKILL);
	while ((ms[0] < 0 || ms[1] < 0 || ms[2] < 0) && now - began < LIMIT_NS) {
		bool ended = ms[0] >= 0 || has_ended(pid);
		bool is_free = ms[1] >= 0 || free_bytes() >= wanted;
		bool goes_on = ms[2] >= 0 || all_go_on();

		now = app_now_ns();
		ms[0] = ended && ms[0] < 0 ? (double)(now - began) / 1e6 : ms[0];
		ms[1] = is_free && ms[1] < 0 ? (double)(now - began) / 1e6 : ms[1];
		ms[2] = goes_on && ms[2] < 0 ? (double)(now - began) / 1e6 : ms[2];
		usleep(200);
	}
	printf("%.1f %.1f %.1f\n", ms[0], ms[1], ms[2]);
	fflush(stdout);
}

int main(int argc, char **argv) {
	unsigned mib, delay_us;
	CUdevice device;
	int pid;

	for (int i = 1; i < argc && n_counters < COUNTERS_MAX; i++) {
		counters[n_counters++] = map_counter(argv[i]);
	}
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	while (scanf("%d %u %u", &pid, &mib, &delay_us) == 3 && pid > 0) {
		usleep(delay_us);
		kill_one(pid, (size_t)mib << 20);
	}
	return 0;
}
