/*
 * segments.c: a periodic task that computes on its CPU and then on the GPU: copies, kernels, copies
 * back. It marks its jobs and GPU segments for sbeet; without libsbeet.so marks do nothing.
 *
 * usage: segments KEY=VALUE...
 *	cpu_us		CPU time of the CPU segment (0)
 *	kernels		of the GPU segment; 0: no GPU at all (0)
 *	rounds		of arithmetic in each kernel, which is one wave (1000)
 *	copy		bytes copied to the GPU, and back; at least the results of a wave
 *	queue		kernels that are queued at most, up to 16; 0: all at once (2)
 *	busy		1: spins while it waits for the GPU; 0: sleeps (0)
 *	period_us	0: each job follows the one before (0)
 *	time_ms		jobs released for so long; 0: until the file GO is gone (0)
 *	alone_us	of the GPU segment when nothing else runs: what is longer is delay (0)
 *	pin		its thread runs on this CPU of those allowed, from 0 on; else on any
 *	rank		1 to 99: SCHED_FIFO with this priority, or if that is refused a nice
 *			value that grows as the rank falls; 0: nice 19; else as started
 *	memory		MiB that it holds on the GPU besides (0)
 *	go		file: it waits for this to appear
 *	progress	file with an 8-byte counter of its jobs
 *	log		file that gets a line of each job, see below
 *
 * Prints "ready PID RANK" before it waits for GO; RANK: fifo, nice, weak (nice values from 0 on) or
 * none. At the end a line of numbers, times in us:
 *	1 jobs, 2 missed (late or skipped), 3-5 least, mean, longest response,
 *	6 longest CPU delay, 7 longest GPU delay, 8 longest response less CPU delay,
 *	9 longest GPU segment, 10 longest CPU time in one,
 *	11-13 least, mean, longest time of a job in the calls that begin and end its segment, the
 *	first operation included
 * CPU delay: a late start, what the CPU segment took beyond its CPU time, and in the GPU segment
 * how long its thread was ready while another one had the CPU (schedstat, where there is that), but
 * no more than the segment took longer than ALONE_US: while the thread spins the GPU works on. The
 * rest of that is GPU delay. A release that passes while the job before runs is skipped.
 *
 * A line of the log, times in us of CLOCK_MONOTONIC: release, begin of the GPU segment, return of
 * its first operation, end of the segment, how long the thread waited for its CPU in it, and when
 * each kernel was seen to be complete; of the last QUEUE kernels only the end of the segment is
 * seen.
 *
 * Of each result a part is compared with the first one; exit 1 if it differs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "shim/sbeet.h"
#include "tests/apps/common.h"
#include "tests/gpu/wave.h"

#define QUEUE_MAX  16
#define TASKS_CPUS 3 /* those that tasks are pinned to; other threads keep away if they can */
#define PART_BYTES ((size_t)128 << 10)
#define SEEN_MAX   1024 /* kernels of a job in the log */

static struct {
	long cpu_us, kernels, rounds, copy, queue, busy, period_us, alone_us, pin, rank, memory,
		time_ms;
} arg = {.rounds = 1000, .queue = 2, .pin = -1, .rank = -1};
static const char *go, *progress_path, *log_path;

static struct {
	struct wave wave;
	CUdeviceptr data;
	CUevent queued[QUEUE_MAX], last;
	unsigned char *in, *out, *first; /* in and out are pinned */
	uint64_t calls_ns;		 /* of this job */
	cpu_set_t cpus;
	int schedstat;
	uint64_t none, *progress;
	FILE *log;
	uint64_t called, seen[SEEN_MAX]; /* of this job */
	unsigned n_seen;
} my = {.schedstat = -1, .progress = &my.none};

static struct {
	uint64_t jobs, missed, least, longest, cpu, gpu, less_cpu, segment, misc;
	uint64_t calls_least, calls_longest;
	double sum, calls_sum;
} seen = {.least = UINT64_MAX, .calls_least = UINT64_MAX};

static uint64_t max_of(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

static uint64_t cpu_now_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* How long this thread was ready and did not run; 0: not known. */
static uint64_t waited_ns(void) {
	char text[128] = "";
	unsigned long long ran, waited;

	if (my.schedstat < 0 || pread(my.schedstat, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%llu %llu", &ran, &waited) != 2 || ran == 0) {
		return 0;
	}
	return waited;
}

/* ---- the CPU ---- */

/* The threads of others: those of CUDA and sbeet. */
static void leave_cpus(void) {
	cpu_set_t rest;
	unsigned n = 0;

	sched_getaffinity(0, sizeof(my.cpus), &my.cpus);
	rest = my.cpus;
	for (int i = 0; i < CPU_SETSIZE && n < TASKS_CPUS; i++) {
		if (CPU_ISSET(i, &rest)) {
			CPU_CLR(i, &rest);
			n++;
		}
	}
	if (arg.pin >= 0 && CPU_COUNT(&rest) > 0) {
		sched_setaffinity(0, sizeof(rest), &rest);
	}
}

static void pin(void) {
	long n = arg.pin % CPU_COUNT(&my.cpus);
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &my.cpus) && n-- == 0) {
			CPU_SET(i, &one);
		}
	}
	if (sched_setaffinity(0, sizeof(one), &one) < 0) {
		fprintf(stderr, "segments: cannot pin a thread: %s\n", strerror(errno));
		exit(1);
	}
}

static int nice_of(int first, int step) {
	long nice = arg.rank == 0 ? 19 : first + (99 - arg.rank) * step;

	return nice > 19 ? 19 : (int)nice;
}

static const char *set_rank(void) {
	struct sched_param param = {.sched_priority = (int)arg.rank};

	if (arg.rank > 0 && sched_setscheduler(0, SCHED_FIFO, &param) == 0) {
		return "fifo";
	}
	if (arg.rank >= 0 && setpriority(PRIO_PROCESS, 0, nice_of(-20, 7)) == 0) {
		return "nice";
	}
	if (arg.rank >= 0 && setpriority(PRIO_PROCESS, 0, nice_of(0, 5)) == 0) {
		return "weak";
	}
	return "none";
}

static void compute(void) {
	uint64_t until = cpu_now_ns() + (uint64_t)arg.cpu_us * 1000;

	while (cpu_now_ns() < until) {
	}
}

/* ---- the GPU ---- */

static void open_gpu(void) {
	size_t bytes;

	wave_open(&my.wave);
	bytes = wave_bytes(&my.wave);
	arg.copy = arg.copy > (long)bytes ? arg.copy : (long)bytes;
	my.data = driver_alloc((size_t)arg.copy);
	if (arg.memory > 0) {
		driver_alloc((size_t)arg.memory << 20);
	}
	CU(cuMemAllocHost((void **)&my.in, (size_t)arg.copy));
	CU(cuMemAllocHost((void **)&my.out, (size_t)arg.copy));
	memset(my.in, 0, (size_t)arg.copy);
	my.first = app_alloc((size_t)arg.copy, 1);
	for (unsigned i = 0; i <= QUEUE_MAX; i++) {
		CU(cuEventCreate(i < QUEUE_MAX ? &my.queued[i] : &my.last,
				 CU_EVENT_DISABLE_TIMING |
					 (arg.busy ? 0u : CU_EVENT_BLOCKING_SYNC)));
	}
}

static void await(CUevent event) {
	CUresult r = CUDA_ERROR_NOT_READY;

	while (arg.busy && r == CUDA_ERROR_NOT_READY) {
		r = cuEventQuery(event);
	}
	CU(arg.busy ? r : cuEventSynchronize(event));
}

static void note_seen(void) {
	if (my.log && my.n_seen < SEEN_MAX) {
		my.seen[my.n_seen++] = app_now_ns();
	}
}

static void segment(void) {
	uint64_t began = app_now_ns();

	sbeet_segment_begin();
	CU(cuMemcpyHtoDAsync(my.data, my.in, (size_t)arg.copy, my.wave.stream));
	my.called = app_now_ns();
	my.calls_ns = my.called - began;
	for (long k = 0; k < arg.kernels; k++) {
		CUevent event = my.queued[arg.queue ? k % arg.queue : 0];

		if (arg.queue && k >= arg.queue) {
			await(event);
			note_seen();
		}
		wave_launch(&my.wave, my.data, 1, (unsigned)arg.rounds);
		CU(cuEventRecord(event, my.wave.stream));
	}
	CU(cuMemcpyDtoHAsync(my.out, my.data, (size_t)arg.copy, my.wave.stream));
	CU(cuEventRecord(my.last, my.wave.stream));
	await(my.last);
}

static void segment_end(void) {
	uint64_t began = app_now_ns();

	sbeet_segment_end();
	my.calls_ns += app_now_ns() - began;
}

static void expect(const unsigned char *want, const unsigned char *got, size_t n) {
	if (memcmp(want, got, n) != 0) {
		fprintf(stderr, "segments: the result is wrong\n");
		exit(1);
	}
}

/* Another part each time, which takes some microseconds. */
static void expect_part(void) {
	static size_t at;
	size_t left = (size_t)arg.copy - at, n = left < PART_BYTES ? left : PART_BYTES;

	expect(my.first + at, my.out + at, n);
	at = n == left ? 0 : at + n;
}

/* ---- jobs ---- */

static void count(uint64_t response, uint64_t cpu_delay, uint64_t gpu_delay) {
	seen.jobs++;
	seen.missed += arg.period_us > 0 && response > (uint64_t)arg.period_us * 1000;
	seen.least = response < seen.least ? response : seen.least;
	seen.longest = max_of(seen.longest, response);
	seen.sum += (double)response;
	seen.cpu = max_of(seen.cpu, cpu_delay);
	seen.gpu = max_of(seen.gpu, gpu_delay);
	seen.less_cpu = max_of(seen.less_cpu, response > cpu_delay ? response - cpu_delay : 0);
	seen.calls_least = my.calls_ns < seen.calls_least ? my.calls_ns : seen.calls_least;
	seen.calls_longest = max_of(seen.calls_longest, my.calls_ns);
	seen.calls_sum += (double)my.calls_ns;
}

static void write_log(uint64_t release, uint64_t begin, uint64_t end, uint64_t waited) {
	if (!my.log) {
		return;
	}
	fprintf(my.log, "%llu %llu %llu %llu %llu", (unsigned long long)release / 1000,
		(unsigned long long)begin / 1000, (unsigned long long)my.called / 1000,
		(unsigned long long)end / 1000, (unsigned long long)waited / 1000);
	for (unsigned i = 0; i < my.n_seen; i++) {
		fprintf(my.log, " %llu", (unsigned long long)my.seen[i] / 1000);
	}
	fprintf(my.log, "\n");
	my.n_seen = 0;
}

static void job(uint64_t release) {
	uint64_t alone = (uint64_t)arg.alone_us * 1000, cpu = cpu_now_ns();
	uint64_t mid, end, waited = 0, delay, more = 0, excess = 0;

	my.calls_ns = 0;
	sbeet_job_begin(release);
	compute();
	mid = end = app_now_ns();
	my.called = mid;
	delay = mid - release - (cpu_now_ns() - cpu);
	if (arg.kernels > 0) {
		cpu = cpu_now_ns();
		waited = waited_ns();
		segment();
		end = app_now_ns();
		more = waited = waited_ns() - waited;
		excess = alone > 0 && end - mid > alone ? end - mid - alone : 0;
		more = more < excess ? more : excess;
		seen.segment = max_of(seen.segment, end - mid);
		seen.misc = max_of(seen.misc, cpu_now_ns() - cpu);
		segment_end();
	}
	sbeet_job_end();
	count(end - release, delay + more, excess - more);
	write_log(release, mid, end, waited);
	if (seen.jobs == 1 && arg.kernels > 0) {
		memcpy(my.first, my.out, (size_t)arg.copy);
	} else if (arg.kernels > 0) {
		expect_part();
	}
}

static void sleep_until(uint64_t when) {
	struct timespec t = {.tv_sec = (time_t)(when / 1000000000u),
			     .tv_nsec = (long)(when % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static bool is_over(uint64_t release, uint64_t until) {
	return until > 0 ? release >= until : access(go, F_OK) != 0;
}

static void run(void) {
	uint64_t period = (uint64_t)arg.period_us * 1000, release = app_now_ns(), now;
	uint64_t until = arg.time_ms > 0 ? release + (uint64_t)arg.time_ms * 1000000u : 0;

	while (!is_over(release, until)) {
		sleep_until(release);
		job(release);
		++*my.progress;
		now = app_now_ns();
		release = period > 0 ? release + period : now;
		for (; release < now; release += period) {
			seen.missed += !is_over(release, until);
		}
	}
}

/* ---- the program ---- */

static const struct {
	const char *name;
	long *value;
} numbers[] = {
	{"cpu_us", &arg.cpu_us},       {"kernels", &arg.kernels},
	{"rounds", &arg.rounds},       {"copy", &arg.copy},
	{"queue", &arg.queue},	       {"busy", &arg.busy},
	{"period_us", &arg.period_us}, {"time_ms", &arg.time_ms},
	{"alone_us", &arg.alone_us},   {"pin", &arg.pin},
	{"rank", &arg.rank},	       {"memory", &arg.memory},
};

static void set(const char *word) {
	const char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value - word) : 0;
	char *end;

	for (size_t i = 0; value && i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strlen(numbers[i].name) == n && memcmp(word, numbers[i].name, n) == 0) {
			*numbers[i].value = strtol(value + 1, &end, 10);
			if (*end == '\0' && end > value + 1) {
				return;
			}
		}
	}
	if (strncmp(word, "go=", 3) == 0) {
		go = word + 3;
	} else if (strncmp(word, "progress=", 9) == 0) {
		progress_path = word + 9;
	} else if (strncmp(word, "log=", 4) == 0) {
		log_path = word + 4;
	} else {
		fprintf(stderr, "segments: what is '%s'? See the beginning of segments.c\n", word);
		exit(2);
	}
}

static void open_progress(void) {
	int fd = open(progress_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*my.progress)) == 0) {
		p = mmap(NULL, sizeof(*my.progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (p == MAP_FAILED) {
		fprintf(stderr, "segments: %s: %s\n", progress_path, strerror(errno));
		exit(1);
	}
	close(fd);
	my.progress = p;
}

static void open_log(void) {
	my.log = fopen(log_path, "we");
	if (!my.log) {
		fprintf(stderr, "segments: %s: %s\n", log_path, strerror(errno));
		exit(1);
	}
}

static void show(void) {
	double n = seen.jobs > 0 ? (double)seen.jobs * 1e3 : 1;

	if (seen.jobs == 0) {
		seen.least = seen.calls_least = 0;
	}
	printf("%llu %llu %llu %.0f %llu %llu %llu %llu %llu %llu %.1f %.1f %.1f\n",
	       (unsigned long long)seen.jobs, (unsigned long long)seen.missed,
	       (unsigned long long)seen.least / 1000, seen.sum / n,
	       (unsigned long long)seen.longest / 1000, (unsigned long long)seen.cpu / 1000,
	       (unsigned long long)seen.gpu / 1000, (unsigned long long)seen.less_cpu / 1000,
	       (unsigned long long)seen.segment / 1000, (unsigned long long)seen.misc / 1000,
	       (double)seen.calls_least / 1e3, seen.calls_sum / n,
	       (double)seen.calls_longest / 1e3);
}

int main(int argc, char **argv) {
	const char *rank;

	for (int i = 1; i < argc; i++) {
		set(argv[i]);
	}
	if (!go || arg.queue < 0 || arg.queue > QUEUE_MAX) {
		fprintf(stderr, "usage: see the beginning of tests/gpu/segments.c\n");
		return 2;
	}
	leave_cpus();
	if (arg.kernels > 0) {
		open_gpu();
		segment(); /* what happens but once */
		segment_end();
	}
	if (progress_path) {
		open_progress();
	}
	if (log_path) {
		open_log();
	}
	my.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (arg.pin >= 0) {
		pin();
	}
	rank = set_rank();
	printf("ready %d %s\n", (int)getpid(), rank);
	fflush(stdout);
	while (access(go, F_OK) != 0) {
		usleep(1000);
	}
	run();
	show();
	if (my.log && fclose(my.log) != 0) {
		fprintf(stderr, "segments: %s: %s\n", log_path, strerror(errno));
		return 1;
	}
	return 0;
}
