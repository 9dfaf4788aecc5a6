/*
 * urgent.c: how late a periodic urgent kernel is beside endless ones of other programs, and what
 * these lose by it. See preempt.sh. Knows nothing of sbeet.
 *
 * usage: urgent rounds US
 *	Prints how many rounds of arithmetic (compute.cu) a kernel of one wave takes that long with.
 * usage: urgent lower PAGE SLOT ROUNDS
 *	Endless kernels of 20 waves, two at a time, until the page says stop. Counts them in SLOT.
 * usage: urgent idle PAGE LOWER SECONDS
 *	Prints the kernels a second that the first LOWER slots complete.
 * usage: urgent jobs PAGE LOWER ROUNDS PERIOD_US SECONDS [WARM]
 *	A kernel of one wave each period; those of the first WARM seconds (0) do not count.
 *	Prints jobs, p50, p99, maximum of their responses in us from the wake-up on, the kernels
 *	a second of the first LOWER slots meanwhile, and the part of the time, in percent, in
 *	which a job was open.
 * usage: urgent stop PAGE
 *
 * PAGE is a file that all share. URGENT_LOG: a file for a line of each job that counts: when it
 * woke up, and its response, in us; CLOCK_MONOTONIC.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/wave.h"

#define SLOTS	 16
#define WAVES	 20
#define JOBS_MAX 200000

struct page {
	volatile uint32_t stop, ready[SLOTS];
	volatile uint64_t done[SLOTS]; /* kernels */
};

static struct {
	struct wave wave;
	CUdeviceptr out;
} my;

static double now_us(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Return: when it woke up. */
static double sleep_until_us(double when) {
	struct timespec t = {.tv_sec = (time_t)(when / 1e6)};

	t.tv_nsec = (long)((when - (double)t.tv_sec * 1e6) * 1e3);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	return now_us();
}

static struct page *map_page(const char *path) {
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct page *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*page)) == 0) {
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (page == MAP_FAILED) {
		fprintf(stderr, "urgent: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(fd);
	return page;
}

static void start(void) {
	wave_open(&my.wave);
	my.out = driver_alloc(WAVES * wave_bytes(&my.wave));
}

static void launch(unsigned waves, unsigned rounds) {
	wave_launch(&my.wave, my.out, waves, rounds);
}

/* One wave, the fastest of some. */
static double kernel_us(unsigned rounds) {
	double best = 1e30, began, took;

	for (int i = 0; i < 20; i++) {
		began = now_us();
		launch(1, rounds);
		CU(cuStreamSynchronize(my.wave.stream));
		took = now_us() - began;
		best = took < best ? took : best;
	}
	return best;
}

static int find_rounds(double us) {
	double low, high;

	start();
	kernel_us(1000); /* the clock rises */
	low = kernel_us(1000);
	high = kernel_us(101000);
	if (high <= low || us <= low) {
		printf("1000\n");
	} else {
		printf("%.0f\n", 1000 + (us - low) * 100000 / (high - low));
	}
	return 0;
}

static int run_lower(struct page *page, unsigned slot, unsigned rounds) {
	CUevent event[2];

	start();
	for (int i = 0; i < 2; i++) {
		CU(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
		CU(cuEventRecord(event[i], my.wave.stream));
	}
	page->ready[slot] = 1;
	for (unsigned k = 0; !page->stop; k++) {
		CU(cuEventSynchronize(event[k & 1]));
		launch(WAVES, rounds);
		CU(cuEventRecord(event[k & 1], my.wave.stream));
		page->done[slot]++;
	}
	CU(cuStreamSynchronize(my.wave.stream));
	return 0;
}

static uint64_t kernels_done(const struct page *page, unsigned lower) {
	uint64_t n = 0;

	for (unsigned i = 0; i < lower; i++) {
		n += page->done[i];
	}
	return n;
}

static void await_lower(const struct page *page, unsigned lower) {
	double until = now_us() + 30e6;

	for (unsigned i = 0; i < lower; i++) {
		while (!page->ready[i] || page->done[i] < 3) {
			if (now_us() > until) {
				fprintf(stderr, "urgent: program %u does not start\n", i);
				exit(1);
			}
			usleep(1000);
		}
	}
}

static int show_idle(const struct page *page, unsigned lower, double seconds) {
	double began;
	uint64_t done;

	await_lower(page, lower);
	began = now_us();
	done = kernels_done(page, lower);
	sleep_until_us(began + seconds * 1e6);
	printf("%.1f\n", (double)(kernels_done(page, lower) - done) / (now_us() - began) * 1e6);
	return 0;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void log_jobs(const char *path, const double *woke, const double *response, size_t n) {
	FILE *file = path && *path ? fopen(path, "w") : NULL;

	for (size_t i = 0; file && i < n; i++) {
		fprintf(file, "%.1f %.1f\n", woke[i], response[i]);
	}
	if (file) {
		fclose(file);
	}
}

static int run_jobs(const struct page *page, unsigned lower, unsigned rounds, double period,
		    double seconds, double warm) {
	static double woke[JOBS_MAX], response[JOBS_MAX];
	double begin, next, open = 0;
	uint64_t done = 0;
	size_t n = 0;

	start();
	for (int i = 0; i < 5; i++) {
		launch(1, rounds);
		CU(cuStreamSynchronize(my.wave.stream));
	}
	await_lower(page, lower);
	next = now_us() + period;
	begin = next + warm * 1e6;
	while (next < begin + seconds * 1e6 && n < JOBS_MAX) {
		double began = sleep_until_us(next);

		if (n == 0 && began >= begin) {
			begin = began;
			done = kernels_done(page, lower);
		}
		launch(1, rounds);
		CU(cuStreamSynchronize(my.wave.stream));
		response[n] = now_us() - began;
		woke[n] = began;
		if (began >= begin) {
			open += response[n++];
		}
		for (double now = now_us(); next <= now; next += period) {
		}
	}
	if (n == 0) {
		fprintf(stderr, "urgent: no job ended in time\n");
		return 1;
	}
	seconds = (now_us() - begin) / 1e6;
	done = kernels_done(page, lower) - done;
	log_jobs(getenv("URGENT_LOG"), woke, response, n);
	qsort(response, n, sizeof(*response), compare);
	printf("%zu %.0f %.0f %.0f %.1f %.1f\n", n, response[(n - 1) * 500 / 1000],
	       response[(n - 1) * 990 / 1000], response[n - 1], (double)done / seconds,
	       open / seconds / 1e4);
	return 0;
}

int main(int argc, char **argv) {
	struct page *page;

	if (argc == 3 && strcmp(argv[1], "rounds") == 0) {
		return find_rounds(atof(argv[2]));
	}
	if (argc < 3) {
		fprintf(stderr, "usage: see the beginning of tests/gpu/urgent.c\n");
		return 2;
	}
	page = map_page(argv[2]);
	if (argc == 5 && strcmp(argv[1], "lower") == 0) {
		return run_lower(page, (unsigned)atoi(argv[3]) % SLOTS, (unsigned)atoi(argv[4]));
	}
	if (argc == 5 && strcmp(argv[1], "idle") == 0) {
		return show_idle(page, (unsigned)atoi(argv[3]), atof(argv[4]));
	}
	if ((argc == 7 || argc == 8) && strcmp(argv[1], "jobs") == 0) {
		return run_jobs(page, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]),
				atof(argv[5]), atof(argv[6]), argc == 8 ? atof(argv[7]) : 0);
	}
	page->stop = 1;
	return 0;
}
