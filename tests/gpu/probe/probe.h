/*
 * probe.h: what the probes share: checks of CUDA calls, the clock, percentiles, a page of memory
 * that several processes see. For C and CUDA C++.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Ends the program, with the call, if a call of the runtime or driver API fails. */
#define CHECK(call)                                                                         \
	do {                                                                                \
		int check_code = (int)(call);                                               \
		if (check_code != 0) {                                                      \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, \
				check_code);                                                \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

/* First of all in a kernel that may begin as a dependent one. MACHINE_CODE: left to wait-first.c. */
#ifdef MACHINE_CODE
#define WAIT_FIRST()
#else
#define WAIT_FIRST() asm volatile("griddepcontrol.wait;" ::: "memory")
#endif

static inline double now_us(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Sleeps, as a periodic program does; returns the time of waking up. */
static inline double sleep_until_us(double when) {
	struct timespec t = {(time_t)(when / 1e6), 0};

	t.tv_nsec = (long)((when - (double)t.tv_sec * 1e6) * 1e3);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	return now_us();
}

static inline int compare_doubles(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value that @permille of the @n values do not exceed. Sorts them; 0 if there are none. */
static inline double percentile(double *values, size_t n, unsigned permille) {
	if (n == 0) {
		return 0;
	}
	qsort(values, n, sizeof(*values), compare_doubles);
	return values[(n - 1) * permille / 1000];
}

/* A page that every program of the probe maps; zeros at first. Its path: PROBE_PAGE. */
static inline void *shared_page(size_t size) {
	const char *path = getenv("PROBE_PAGE");
	int fd = open(path ? path : "/dev/shm/sbeet-probe", O_RDWR | O_CREAT, 0600);
	void *page;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
		perror("shared page");
		exit(1);
	}
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror("shared page");
		exit(1);
	}
	close(fd);
	return page;
}
