/*
 * owners.cu: how late is an urgent job beside 1, 2, 4, 8 less urgent owners that are preempted
 * again and again? What becomes of two urgent owners of different level?
 *
 * usage: owners table | levels		(without MPS; preempt.so and preempt-loop beside it)
 * usage: owners lower SLOT, owners urgent SLOT	started by these: endless kernels of 20 waves; a
 *	kernel of 4 ms each 20 ms
 *
 * Urgent jobs: a kernel of one wave, short (79 us) each 2.5 ms, long (4 ms) each 16 ms.
 */
#include "owners.h"

static int run_lower(struct owner *me) {
	cudaEvent_t event[2];

	for (int i = 0; i < 2; i++) {
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
		CHECK(cudaEventRecord(event[i], stream));
	}
	me->warm = 1;
	for (unsigned k = 0; !page->stop; k++) {
		if (!me->active) {
			CHECK(cudaStreamSynchronize(stream));
			usleep(500);
			continue;
		}
		CHECK(cudaEventSynchronize(event[k & 1]));
		launch(20, 2000, NULL);
		CHECK(cudaEventRecord(event[k & 1], stream));
		me->done++;
	}
	CHECK(cudaStreamSynchronize(stream));
	return 0;
}

/* Jobs of one kernel; response from the wake-up on. Prints p50, p99, max. */
static void run_periodic(struct owner *me, const char *what, int n, double period_us,
			 double seconds) {
	static double response[100000];
	double next = now_us() + period_us, end = next + seconds * 1e6;
	size_t jobs = 0;

	while (next < end && jobs < 100000 && !page->stop) {
		double begin = sleep_until_us(next);

		me->open = 1;
		launch(1, n, NULL);
		CHECK(cudaStreamSynchronize(stream));
		me->open = 0;
		response[jobs++] = now_us() - begin;
		for (double now = now_us(); next <= now; next += period_us) {
		}
	}
	printf(" %s %4zu jobs %6.0f %6.0f %6.0f |", what, jobs, percentile(response, jobs, 500),
	       percentile(response, jobs, 990), percentile(response, jobs, 1000));
	fflush(stdout);
}

static int run_urgent(struct owner *me) {
	me->level = 1;
	me->warm = 1;
	while (!page->stop) {
		if (!me->active) {
			usleep(500);
			continue;
		}
		run_periodic(me, "level 1:", 100000, 20e3, 1.9);
		printf("\n");
		me->active = 0;
	}
	return 0;
}

static uint64_t kernels_done(void) {
	uint64_t n = 0;

	for (int i = 0; i < LOWER; i++) {
		n += page->owner[i].done;
	}
	return n;
}

/* How: 0 no preemption, 1 one thread, 2 a thread for each owner. */
static void run_cell(int n, int how, const char *interval) {
	static const char *const name[] = {"none", "1 thread", "n threads"};
	pid_t loop = 0;
	uint64_t done;
	double begin;

	set_active(n);
	if (how) {
		loop = start_loop(interval, how == 1 ? "1" : "0");
	}
	printf("%d lower, %s, each %s us |", n, name[how], interval);
	begin = now_us();
	done = kernels_done();
	run_periodic(&page->owner[ME], "short", 2000, 2500, 1.2);
	run_periodic(&page->owner[ME], "long", 100000, 16e3, 1.2);
	printf(" lower %.0f kernels/s\n",
	       (double)(kernels_done() - done) / (now_us() - begin) * 1e6);
	fflush(stdout);
	if (how) {
		end_loop(loop);
	}
}

static void table(void) {
	printf("responses: p50 p99 max us\n");
	start_owners(LOWER, 0);
	run_cell(0, 0, "-");
	for (int n = 1; n <= LOWER; n *= 2) {
		run_cell(n, 0, "-");
		run_cell(n, 1, "300");
		if (n > 1) {
			run_cell(n, 2, "300");
		}
	}
	run_cell(1, 1, "600");
	run_cell(1, 1, "0");
}

static void levels(void) {
	pid_t loop = 0;

	start_owners(2, 1);
	for (int lower = 0; lower <= 2; lower += 2) {
		for (int how = 0; how < 2; how++) {
			set_active(lower);
			page->owner[SECOND].active = 1;
			loop = how ? start_loop("300", "1") : 0;
			printf("%d lower, two urgent, %s |", lower, how ? "preempted" : "none");
			run_periodic(&page->owner[ME], "level 2:", 2000, 2500, 1.5);
			while (page->owner[SECOND].active) {
				usleep(1000);
			}
			if (how) {
				end_loop(loop);
			}
		}
	}
}

int main(int argc, char **argv) {
	if (argc < 2) {
		return 2;
	}
	if (argc == 3) {
		map_page(argv[0]);
		start_cuda();
		return (strcmp(argv[1], "lower") == 0 ? run_lower
						      : run_urgent)(&page->owner[atoi(argv[2])]);
	}
	begin_probe(argv[0]);
	if (strcmp(argv[1], "table") == 0) {
		table();
	} else {
		levels();
	}
	return end_probe();
}
