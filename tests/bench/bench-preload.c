/*
 * bench-preload.c: what libsbeet.so costs a program that does not use CUDA: /bin/true with and
 * without it, in turns; wall time, largest resident set, and that neither a socket nor a thread is
 * made.
 *
 * Prints one JSON line a figure. usage: bench-preload LIBSBEET
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 101

struct figure {
	double ms[ROUNDS];
	double kib[ROUNDS];
};

static double now_ms(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void run(const char *preload, double *ret_ms, double *ret_kib) {
	struct rusage usage;
	double begin = now_ms();
	pid_t child = vfork();
	int status;

	if (child == 0) {
		char variable[4096];
		char *environment[2] = {NULL, NULL};

		if (preload) {
			snprintf(variable, sizeof(variable), "LD_PRELOAD=%s", preload);
			environment[0] = variable;
		}
		execle("/bin/true", "true", NULL, environment);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) {
		exit(2);
	}
	*ret_ms = now_ms() - begin;
	*ret_kib = (double)usage.ru_maxrss;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list) {
	qsort(list, ROUNDS, sizeof(*list), compare);
	return list[ROUNDS / 2];
}

static void say(const char *name, double value, const char *unit) {
	printf("{\"bench\":\"preload\",\"figure\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", name,
	       value, unit);
}

int main(int argc, char **argv) {
	static struct figure with, without;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-preload LIBSBEET\n");
		return 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
		run(NULL, &without.ms[i], &without.kib[i]);
		run(argv[1], &with.ms[i], &with.kib[i]);
	}
	say("true", median(without.ms), "ms");
	say("true, preloaded", median(with.ms), "ms");
	say("added", median(with.ms) - median(without.ms), "ms");
	say("added resident", (median(with.kib) - median(without.kib)) / 1024, "MiB");
	return 0;
}
