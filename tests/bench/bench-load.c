/*
 * bench-load.c: sbeetd under many programs: latency over their number, and a given rate.
 *
 * There is one daemon for each number of programs, all at the same time, and they are measured in
 * turns, so that what else the machine does hits all alike; compare the ratios, not the times.
 *  - "quiet": one program after the other asks, is granted and ends; the others are connected. The
 *    time from request to grant, as ratio to that with one program.
 *  - "full": every program has two jobs waiting all the time. Time per grant, likewise; the time
 *    that a job waits grows with the number of those before it, so it is told per program.
 *  - "rate": 1000 programs ask a given number of times a second together, at even distances in
 *time, for some seconds. The processor time of daemon and programs for a grant is told as well: it
 *hardly depends on what else the machine does. Each grant is checked on the way: see load.h. Prints
 *JSON lines.
 *
 *  - "against": two builds of sbeetd, in turns of some milliseconds each. For each number of
 *programs the median over all turns of how many times as long the other build takes as this one.
 *
 * Usage: bench-load [curve | rate [REQUESTS_A_SECOND] | against SBEETD | check]
 *	Without a word: the curve, then the rate. check: correctness alone, and nothing about time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define TURNS	    10
#define QUIET	    1000 /* requests a turn */
#define FULL	    10000
#define RATE	    20000
#define RATE_MAX    1000000
#define RATE_S	    5
#define DESCRIPTORS 8192
#define SKIPPED	    77

static const size_t counts[] = {1, 10, 100, 300, 1000};
#define N_COUNTS (sizeof(counts) / sizeof(*counts))

static const char *const args[] = {"--gpus",	  "80",	   "--sharing", "mps",
				   "--log-level", "error", NULL};

/* Processor time that was used. */
struct cost {
	nsec_t daemon, programs;
};

static struct cost cost_now(const struct load *load) {
	return (struct cost){bench_cpu(load->daemon.pid), bench_cpu(0)};
}

static void cost_add(struct cost *cost, const struct load *load, const struct cost *since) {
	struct cost now = cost_now(load);

	cost->daemon += now.daemon - since->daemon;
	cost->programs += now.programs - since->programs;
}

struct row {
	struct load load;
	nsec_t quiet[TURNS * QUIET], full[TURNS * FULL], pressed;
	struct cost cost; /* of what is pressed */
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
			struct row *row = &rows[i];
			struct cost before;
			nsec_t start;

			load_stroll(&row->load, QUIET, row->quiet + turn * QUIET);
			start = nsec_now();
			before = cost_now(&row->load);
			load_press(&row->load, FULL, row->full + turn * FULL);
			row->pressed += nsec_now() - start;
			cost_add(&row->cost, &row->load, &before);
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
	       "\"full_p99_us_per_session\":%.2f,\"daemon_cpu_us\":%.2f,\"programs_cpu_us\":%.2f}"
	       "\n",
	       row->load.n_clients, (double)p50 / 1e3, (double)p99 / 1e3,
	       (double)p50 / (double)bench_quantile(one->quiet, TURNS * QUIET, 50),
	       (double)p99 / (double)bench_quantile(one->quiet, TURNS * QUIET, 99), 1e9 / per_grant,
	       (double)row->pressed / (double)one->pressed,
	       (double)bench_quantile(row->full, TURNS * FULL, 50) / 1e3 / n,
	       (double)bench_quantile(row->full, TURNS * FULL, 99) / 1e3 / n,
	       (double)row->cost.daemon / 1e3 / (TURNS * FULL),
	       (double)row->cost.programs / 1e3 / (TURNS * FULL));
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

static void rate(unsigned per_second) {
	size_t n = (size_t)per_second * RATE_S;
	nsec_t *times = need_times(n), took;
	struct cost cost = {0}, before;
	struct load load;

	load_init(&load, args, 1000, 0, n, true);
	before = cost_now(&load);
	took = load_pace(&load, NSEC_PER_SEC / per_second, n, times);
	cost_add(&cost, &load, &before);
	load_deinit(&load);
	printf("{\"bench\":\"rate\",\"sessions\":1000,\"asked_per_s\":%u,\"granted_per_s\":%.0f,"
	       "\"requests\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"daemon_cpu_us\":%.2f,"
	       "\"programs_cpu_us\":%.2f}\n",
	       per_second, (double)n * 1e9 / (double)took, n,
	       (double)bench_quantile(times, n, 50) / 1e3,
	       (double)bench_quantile(times, n, 99) / 1e3, (double)cost.daemon / 1e3 / (double)n,
	       (double)cost.programs / 1e3 / (double)n);
	fflush(stdout);
	free(times);
}

/* ---- another build ---- */

#define PAIR_TURNS 40
#define PAIR_QUIET 100
#define PAIR_FULL  2500

/* Of one turn: time and processor time of sbeetd for its grants, and the medians from request to
 * grant. */
struct turn {
	double pressed, cpu, full, quiet;
};

static struct turn take_turn(struct load *load) {
	static nsec_t times[PAIR_FULL];
	nsec_t start, cpu;
	struct turn turn;

	load_stroll(load, PAIR_QUIET, times);
	turn.quiet = (double)bench_quantile(times, PAIR_QUIET, 50);
	cpu = bench_cpu(load->daemon.pid);
	start = nsec_now();
	load_press(load, PAIR_FULL, times);
	turn.pressed = (double)(nsec_now() - start);
	turn.cpu = (double)(bench_cpu(load->daemon.pid) - cpu);
	turn.full = (double)bench_quantile(times, PAIR_FULL, 50);
	return turn;
}

static int compare_ratios(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *ratios) {
	qsort(ratios, PAIR_TURNS, sizeof(*ratios), compare_ratios);
	return ratios[PAIR_TURNS / 2];
}

static void against(const char *other) {
	for (size_t i = 0; i < N_COUNTS; i++) {
		double pressed[PAIR_TURNS], cpu[PAIR_TURNS], full[PAIR_TURNS], quiet[PAIR_TURNS];
		struct load loads[2];

		for (size_t k = 0; k < 2; k++) {
			if (k == 1 && setenv("SBEETD", other, 1) < 0) {
				bench_die("start");
			}
			load_init(&loads[k], args, counts[i], 0,
				  PAIR_TURNS * (PAIR_QUIET + PAIR_FULL), true);
		}
		unsetenv("SBEETD");
		for (size_t turn = 0; turn < PAIR_TURNS; turn++) {
			/* Who comes first changes, too. */
			struct turn a = take_turn(&loads[turn % 2]);
			struct turn b = take_turn(&loads[(turn + 1) % 2]);
			struct turn *ours = turn % 2 ? &b : &a, *others = turn % 2 ? &a : &b;

			pressed[turn] = others->pressed / ours->pressed;
			cpu[turn] = others->cpu / ours->cpu;
			full[turn] = others->full / ours->full;
			quiet[turn] = others->quiet / ours->quiet;
		}
		load_deinit(&loads[0]);
		load_deinit(&loads[1]);
		printf("{\"bench\":\"against\",\"sessions\":%zu,\"turns\":%d,"
		       "\"other_full_time_ratio\":%.2f,\"other_full_p50_ratio\":%.2f,"
		       "\"other_quiet_p50_ratio\":%.2f,\"other_daemon_cpu_ratio\":%.2f}\n",
		       counts[i], PAIR_TURNS, median(pressed), median(full), median(quiet),
		       median(cpu));
		fflush(stdout);
	}
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
	const char *part = argc > 1 ? argv[1] : "";
	int64_t per_second = RATE;
	bool pair = strcmp(part, "against") == 0;

	if (!load_raise_limit(DESCRIPTORS)) {
		fprintf(stderr, "bench-load: %d open files are too many here\n", DESCRIPTORS);
		return SKIPPED;
	}
	if (pair && argc != 3) {
		fprintf(stderr, "bench-load: against needs the path of another sbeetd\n");
		return 2;
	}
	if (pair) {
		against(argv[2]);
		return 0;
	}
	if (argc > 2 && units_parse_int(argv[2], 1, RATE_MAX, &per_second) < 0) {
		fprintf(stderr, "bench-load: '%s' is not a number of requests a second\n", argv[2]);
		return 2;
	}
	if (strcmp(part, "check") == 0) {
		check();
		return 0;
	}
	if (strcmp(part, "rate") != 0) {
		curve();
		fflush(stdout);
	}
	if (strcmp(part, "curve") != 0) {
		rate((unsigned)per_second);
	}
	return 0;
}
