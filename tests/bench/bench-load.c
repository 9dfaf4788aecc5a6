/*
 * bench-load.c: sbeetd under many programs: latency over their number, and a given rate.
 *
 * There is one daemon for each number of programs, all at the same time, and they are measured in
 * turns, so that what else the machine does hits all alike; compare the ratios, not the times.
 *  - "quiet": one program after the other asks, is granted and ends; the others are connected. The
 *    time from request to grant, as ratio to that with one program.
 *  - "full": every program has two jobs waiting all the time. Time per grant, likewise; the time
 *    that a job waits grows with the number of those before it, so it is told per program.
 *  - "rate": 1000 programs ask 20,000 times a second together.
 * Each grant is checked on the way: see load.h. Prints JSON lines.
 *
 * Usage: bench-load [check]      check: correctness alone, and nothing about time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define TURNS	    10
#define QUIET	    1000 /* requests a turn */
#define FULL	    10000
#define RATE	    20000
#define RATE_S	    5
#define DESCRIPTORS 8192
#define SKIPPED	    77

static const size_t counts[] = {1, 10, 100, 300, 1000};
#define N_COUNTS (sizeof(counts) / sizeof(*counts))

static const char *const args[] = {"--gpus",	  "80",	   "--sharing", "mps",
				   "--log-level", "error", NULL};

struct row {
	struct load load;
	nsec_t quiet[TURNS * QUIET], full[TURNS * FULL], pressed;
};

static nsec_t *need_times(size_t n) {
	nsec_t *times = calloc(n, sizeof(*times));

	if (!times) {
		bench_die("start");
	}
	return times;
}

static void measure(struct row *rows) {
	for (size_t turn = 0; turn < TURNS; turn++) {
		for (size_t i = 0; i < N_COUNTS; i++) {
			nsec_t start;

			load_stroll(&rows[i].load, QUIET, rows[i].quiet + turn * QUIET);
			start = nsec_now();
			load_press(&rows[i].load, FULL, rows[i].full + turn * FULL);
			rows[i].pressed += nsec_now() - start;
		}
	}
}

static void print_row(struct row *row, struct row *one) {
	nsec_t p50 = bench_quantile(row->quiet, TURNS * QUIET, 50);
	nsec_t p99 = bench_quantile(row->quiet, TURNS * QUIET, 99);
	double per_grant = (double)row->pressed / (TURNS * FULL);
	double n = (double)row->load.n_clients;

	printf("{\"bench\":\"load\",\"sessions\":%zu,\"quiet_p50_us\":%.1f,\"quiet_p99_us\":%.1f,"
	       "\"p50_ratio\":%.2f,\"p99_ratio\":%.2f,\"full_grants_per_s\":%.0f,"
	       "\"full_time_ratio\":%.2f,\"full_p50_us_per_session\":%.2f,"
	       "\"full_p99_us_per_session\":%.2f}\n",
	       row->load.n_clients, (double)p50 / 1e3, (double)p99 / 1e3,
	       (double)p50 / (double)bench_quantile(one->quiet, TURNS * QUIET, 50),
	       (double)p99 / (double)bench_quantile(one->quiet, TURNS * QUIET, 99), 1e9 / per_grant,
	       (double)row->pressed / (double)one->pressed,
	       (double)bench_quantile(row->full, TURNS * FULL, 50) / 1e3 / n,
	       (double)bench_quantile(row->full, TURNS * FULL, 99) / 1e3 / n);
}

static void curve(void) {
	struct row *rows = calloc(N_COUNTS, sizeof(*rows));

	if (!rows) {
		bench_die("start");
	}
	for (size_t i = 0; i < N_COUNTS; i++) {
		load_init(&rows[i].load, args, counts[i], 0, TURNS * (QUIET + FULL), true);
	}
	measure(rows);
	for (size_t i = 0; i < N_COUNTS; i++) {
		print_row(&rows[i], &rows[0]);
		load_deinit(&rows[i].load);
	}
	free(rows);
}

static void rate(void) {
	size_t n = RATE * RATE_S;
	nsec_t *times = need_times(n), took;
	struct load load;

	load_init(&load, args, 1000, 0, n, true);
	took = load_pace(&load, NSEC_PER_SEC / RATE, n, times);
	load_deinit(&load);
	printf("{\"bench\":\"rate\",\"sessions\":1000,\"asked_per_s\":%d,\"granted_per_s\":%.0f,"
	       "\"requests\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
	       RATE, (double)n * 1e9 / (double)took, n, (double)bench_quantile(times, n, 50) / 1e3,
	       (double)bench_quantile(times, n, 99) / 1e3);
	free(times);
}

/* Under two policies: one splits the GPU, one does not. */
static void check(void) {
	static const char *const policies[] = {"even", "fcfs"};
	nsec_t *times = need_times(10000);

	for (int i = 0; i < 2; i++) {
		const char *const with[] = {"--gpus",	"80",	     "--sharing", "mps",
					    "--policy", policies[i], NULL};
		struct load load;

		load_init(&load, with, 1000, 0, 16000, true);
		load_stroll(&load, 2000, times);
		load_press(&load, 10000, times);
		load_pace(&load, NSEC_PER_SEC / RATE, 4000, times);
		load_deinit(&load);
	}
	free(times);
}

int main(int argc, char **argv) {
	if (!load_raise_limit(DESCRIPTORS)) {
		fprintf(stderr, "bench-load: %d open files are too many here\n", DESCRIPTORS);
		return SKIPPED;
	}
	if (argc > 1 && strcmp(argv[1], "check") == 0) {
		check();
		return 0;
	}
	curve();
	fflush(stdout);
	rate();
	return 0;
}
