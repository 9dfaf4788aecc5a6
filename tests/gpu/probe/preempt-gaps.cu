/*
 * preempt-gaps.cu: how long are the time slices of several owners, and what does preemption leave
 * of them? What if the urgent job's queue runs empty between its kernels, and does a sleeping
 * thread that keeps the urgent process busy help then?
 *
 * usage: preempt-gaps slices | gaps	(without MPS; owners, preempt.so, preempt-loop beside it)
 */
#include "owners.h"
#include "sleeper.h"

/* One thread that notes when it was off the GPU for 20 us or more: begin and end of each gap. */
__global__ void watch(unsigned long long *log, unsigned *n, unsigned max, unsigned long long ns) {
	unsigned long long begin, before, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	for (before = begin; before - begin < ns && *n < max; before = now) {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		if (now - before > 20000) {
			log[2 * *n] = before, log[2 * *n + 1] = now;
			++*n;
		}
	}
}

static void run_slices(int lower, const char *interval) {
	enum { MAX = 4000 };
	static unsigned long long *log;
	static unsigned *n;
	static double on[MAX], off[MAX];
	double sum_on = 0, sum_off = 0;
	pid_t loop;

	if (!log) {
		CHECK(cudaMallocHost((void **)&n, sizeof(*n)));
		CHECK(cudaMallocHost((void **)&log, 2 * MAX * sizeof(*log)));
	}
	*n = 0;
	set_active(lower);
	loop = interval ? start_loop(interval, "1") : 0;
	page->owner[ME].open = 1;
	watch<<<1, 1, 0, stream>>>(log, n, MAX, 500000000ull);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(stream));
	page->owner[ME].open = 0;
	for (unsigned i = 0; i < *n; i++) {
		off[i] = (double)(log[2 * i + 1] - log[2 * i]) / 1e3;
		sum_off += off[i];
	}
	for (unsigned i = 1; i < *n; i++) {
		on[i - 1] = (double)(log[2 * i] - log[2 * i - 1]) / 1e3;
		sum_on += on[i - 1];
	}
	printf("%d lower, preempted %s us: %u gaps; on p50 %.0f p99 %.0f us, off p50 %.0f p99 %.0f "
	       "us, "
	       "on %.0f %% of the time\n",
	       lower, interval ? interval : "-", *n, *n ? percentile(on, *n - 1, 500) : 0,
	       *n ? percentile(on, *n - 1, 990) : 0, percentile(off, *n, 500),
	       percentile(off, *n, 990), *n ? 100 * sum_on / (sum_on + sum_off) : 100);
	fflush(stdout);
	if (loop) {
		end_loop(loop);
	}
}

static void slices(void) {
	start_owners(LOWER, 0);
	for (int lower = 0; lower <= LOWER; lower = lower ? 2 * lower : 1) {
		run_slices(lower, NULL);
		if (lower > 0) {
			run_slices(lower, "300");
		}
	}
	run_slices(1, "0");
	run_slices(1, "600");
	run_slices(1, "1000");
}

/*
 * A job of @n dependent kernels of 8 us (one block on each SM), launched @gap_us apart by a host
 * that is that slow: the queue is never empty with 0.
 */
static void run_chain(struct owner *me, int n, double gap_us, bool sleeper, double seconds) {
	static double response[1000];
	double next = now_us() + 33e3, end = next + seconds * 1e6;
	size_t jobs = 0;

	for (; next < end && jobs < 1000; jobs++) {
		double begin = sleep_until_us(next), due = begin;

		me->open = 1;
		if (sleeper) {
			sleeper_start();
		}
		for (int i = 0; i < n; i++, due += gap_us) {
			while (now_us() < due) {
			}
			multiply<<<wave / 8, 256, 0, stream>>>(buffer, 2000, NULL);
		}
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(stream));
		if (sleeper) {
			sleeper_stop();
		}
		me->open = 0;
		response[jobs] = (now_us() - begin) / 1e3;
		for (double now = now_us(); next <= now; next += 33e3) {
		}
	}
	printf(" %5.2f %5.2f |", percentile(response, jobs, 500), percentile(response, jobs, 990));
	fflush(stdout);
}

static void gaps(void) {
	static const double gap_us[] = {0, 20, 50, 100, 300, 1000, 3000};
	static const int kernels[] = {250, 250, 250, 100, 40, 12, 5};
	static const char *const name[] = {"alone", "1 lower", "preempted each 300 us",
					   "the same, sleeper", "preempted without pause"};

	start_owners(1, 0);
	sleeper_init();
	printf("kernels of 8 us launched apart: p50 p99 ms\n%-24s |", "");
	for (int i = 0; i < 7; i++) {
		printf(" %d, %g us |", kernels[i], gap_us[i]);
	}
	printf("\n");
	for (int how = 0; how < 5; how++) {
		pid_t loop;

		set_active(how > 0);
		loop = how > 1 ? start_loop(how < 4 ? "300" : "0", "1") : 0;
		printf("%-24s |", name[how]);
		for (int i = 0; i < 7; i++) {
			run_chain(&page->owner[ME], kernels[i], gap_us[i], how == 3, 0.7);
		}
		printf("\n");
		if (loop) {
			end_loop(loop);
		}
	}
}

int main(int argc, char **argv) {
	if (argc < 2) {
		return 2;
	}
	begin_probe(argv[0]);
	if (strcmp(argv[1], "slices") == 0) {
		slices();
	} else {
		gaps();
	}
	return end_probe();
}
