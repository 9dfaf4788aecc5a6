/*
 * preempt-ways.c: which way to preempt less urgent programs makes an urgent kernel begin first, and
 * where does the time go? Without MPS.
 *
 * usage: preempt-ways [SHORT_S LONG_S [NUMBER...]]
 *	Seconds of a cell with short and with long kernels (0.8 0.6); how many others (1 2 4).
 *	ROUNDS="SHORT LONG BLOCK": rounds of arithmetic (compute.cu) instead of 79 us, 4 ms, 680 us.
 *
 * One process coordinates. Others, all of this program: an urgent one, four with endless kernels of
 * 20 waves, and one that preempts and uses no GPU. An ioctl that this program interposes tells of
 * the groups. A way's time slices are set before its cell, and the groups scheduled again: only
 * then do they hold.
 *
 * A line: the way, its others; short kernels: response p50 p99 max from the release on, then p50
 * and p99 of: preempting thread awake, first ioctl begins, it ends, the kernel begins (a small
 * kernel before it says so), ioctls that had ended by then; long kernels: response p50 p99 max; the
 * others' kernels a second; CPU that the preempting thread took, in percent of the cell.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "preempt.h"
#include "probe.h"
#include "tests/apps/driver/driver.h"
#include "tests/apps/kernels/shapes.h"

#define GROUP_SCHEDULE 0xA06C0101

#define LOWER	 4
#define URGENT	 LOWER /* owner */
#define OWNERS	 (URGENT + 1)
#define WAVES	 20
#define JOBS_MAX 4000

extern const char compute_ptx[];

/* Who preempts. */
enum who { NOBODY, HELPER, THREAD };

struct way {
	const char *name;
	int lower; /* others that it is tried with; 0: all numbers */
	enum who who;
	bool sleeps;	      /* else it spins */
	bool launcher;	      /* the launching thread makes the first ioctl itself */
	bool waits;	      /* the ioctl's wait flag */
	bool backwards;	      /* the last group first */
	double again, pause;  /* us; again: from begin to begin */
	double ahead;	      /* us before the release that the job is announced */
	double slice, urgent; /* us: time slices of the others and of the urgent one; 0: 2048 */
};

static const struct way ways[] = {
	{.name = "slices alone"},
	{.name = "helper sleeps", .who = HELPER, .sleeps = true, .again = 300, .pause = 30},
	{.name = "thread spins", .who = THREAD, .again = 300},
	{.name = "100 us ahead", .lower = 1, .who = THREAD, .again = 300, .ahead = 100},
	{.name = "150 us ahead", .lower = 1, .who = THREAD, .again = 300, .ahead = 150},
	{.name = "100, 20000", .lower = 1, .slice = 100, .urgent = 20000},
	{.name = "150, 20000", .lower = 1, .slice = 150, .urgent = 20000},
	{.name = "200, 20000", .lower = 1, .slice = 200, .urgent = 20000},
	{.name = "300, 20000", .lower = 1, .slice = 300, .urgent = 20000},
	{.name = "150, 2048", .lower = 1, .slice = 150},
	{.name = "150, 5000", .lower = 1, .slice = 150, .urgent = 5000},
	{.name = "150, 20000, preempted",
	 .lower = 1,
	 .slice = 150,
	 .urgent = 20000,
	 .who = HELPER,
	 .sleeps = true,
	 .again = 300,
	 .pause = 30},
	{.name = "2048, 20000", .urgent = 20000, .who = HELPER, .again = 300, .pause = 30},
	{.name = "2048, pause 60", .urgent = 20000, .who = HELPER, .again = 300, .pause = 60},
	{.name = "2048, pause 100", .urgent = 20000, .who = HELPER, .again = 300, .pause = 100},
	{.name = "2048, pause 150", .urgent = 20000, .who = HELPER, .again = 300, .pause = 150},
	{.name = "the same, backwards",
	 .urgent = 20000,
	 .who = HELPER,
	 .again = 300,
	 .pause = 150,
	 .backwards = true},
	{.name = "1000, pause 100",
	 .slice = 1000,
	 .urgent = 20000,
	 .who = HELPER,
	 .again = 300,
	 .pause = 100},
	{.name = "500, pause 100",
	 .slice = 500,
	 .urgent = 20000,
	 .who = HELPER,
	 .again = 300,
	 .pause = 100},
	{.name = "1000, 20000", .slice = 1000, .urgent = 20000},
	{.name = "500, 20000", .slice = 500, .urgent = 20000},
	{.name = "200, 20000 (2, 4)", .slice = 200, .urgent = 20000},
};

struct job {
	double response, awake, began, ended, started; /* us after the release; 0: did not happen */
	int calls;				       /* ended before the kernel began */
};

static struct shared {
	struct owner owner[OWNERS];
	volatile uint32_t stop, fails, log;
	struct rm_control
		schedule; /* how the driver scheduled the group of other 0, or a channel */
	uint8_t schedule_params[16];
	/* the cell */
	struct way way;
	volatile int lower; /* others */
	double rounds[3];   /* short, long, block */
	double period, seconds, kernel;
	volatile int busy; /* the urgent program runs the cell */
	/* the job that is open */
	_Atomic uint32_t bell; /* a futex: odd while it is */
	volatile double release;
	struct job now;
	volatile int calls;
	volatile double cpu_us;
	/* what came of it */
	struct job jobs[JOBS_MAX];
	volatile int n;
} * shared;

static int me = -1; /* owner; -1: none */
static int descriptor[OWNERS];

/* ---- the groups ---- */

static int (*next_ioctl)(int, unsigned long, ...);

struct rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
};

static void see_alloc(int fd, const struct rm_alloc *a) {
	const uint32_t *params = (const uint32_t *)(uintptr_t)a->params;
	struct owner *o = &shared->owner[me];

	if (a->class == CHANNEL_GROUP_CLASS && !o->ready && params && params[3] == 1) {
		o->pid = (uint32_t)getpid();
		o->fd = (uint32_t)fd;
		o->client = a->root;
		o->object = a->object;
		o->ready = 1;
	}
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) {
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (!next_ioctl) {
		next_ioctl = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	}
	r = next_ioctl(fd, request, arg);
	if (me >= 0 && r >= 0 && _IOC_TYPE(request) == 'F' && _IOC_NR(request) == RM_ALLOC_NR) {
		see_alloc(fd, arg);
	}
	return r;
}

static void get_descriptors(void) {
	for (int i = 0; i < OWNERS; i++) {
		int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)shared->owner[i].pid, 0);

		descriptor[i] = (int)syscall(SYS_pidfd_getfd, pidfd, (int)shared->owner[i].fd, 0);
		if (descriptor[i] < 0) {
			perror("pidfd_getfd");
			exit(1);
		}
		close(pidfd);
	}
}

/* ---- preempting ---- */

static bool is_open(void) {
	return atomic_load(&shared->bell) & 1;
}

static double thread_cpu_us(void) {
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The @k-th of the cell's others. */
static void preempt_one(int k) {
	const struct way *w = &shared->way;
	int i = w->backwards ? shared->lower - 1 - k : k;
	double began = now_us();

	if (group_preempt(descriptor[i], &shared->owner[i], w->waits) != 0) {
		shared->fails++;
	}
	if (shared->now.began == 0) {
		shared->now.began = began - shared->release;
		shared->now.ended = now_us() - shared->release;
	}
	shared->calls++;
}

static void wait_until(double when) {
	if (shared->way.sleeps) {
		sleep_until_us(when);
		return;
	}
	while (now_us() < when && is_open()) {
	}
}

static void await_job(void) {
	uint32_t bell = atomic_load(&shared->bell);

	if (!shared->way.sleeps || !shared->busy) {
		return;
	}
	if (!(bell & 1)) {
		syscall(SYS_futex, &shared->bell, FUTEX_WAIT, bell,
			&(struct timespec){.tv_nsec = 50000000}, NULL, 0);
	}
}

/* Of one job, until it is over. */
static void preempt_job(void) {
	uint32_t bell = atomic_load(&shared->bell);
	int k = 0;

	shared->now.awake = now_us() - shared->release;
	if (shared->way.launcher && shared->lower == 1) {
		wait_until(now_us() + shared->way.again);
	}
	k = shared->way.launcher;
	while (atomic_load(&shared->bell) == bell && !shared->stop) {
		double began = now_us();

		for (; k < shared->lower && atomic_load(&shared->bell) == bell; k++) {
			preempt_one(k);
			if (shared->way.pause > 0) {
				wait_until(now_us() + shared->way.pause);
			}
		}
		k = 0;
		if (began + shared->way.again > now_us()) {
			wait_until(began + shared->way.again);
		}
	}
}

static void *run_preempter(void *userdata) {
	enum who who = *(enum who *)userdata;
	double cpu = 0;
	bool ran = false;

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!shared->stop) {
		bool mine = shared->busy && shared->way.who == who;

		if (mine != ran) {
			cpu = mine ? thread_cpu_us() : cpu;
			shared->cpu_us = mine ? 0 : thread_cpu_us() - cpu;
			ran = mine;
		}
		if (!mine) {
			usleep(1000);
		} else if (is_open()) {
			preempt_job();
		} else {
			await_job();
		}
	}
	return NULL;
}

/* ---- the GPU's work ---- */

static struct {
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CUdeviceptr out, sm_blocks, flag_on_gpu;
	volatile uint32_t *flag; /* pinned: not 0 once the small kernel has run */
	unsigned wave;
} my;

static void launch_into(CUdeviceptr out, unsigned blocks, unsigned rounds) {
	unsigned first = 1, mul = 1664525, add = 1013904223;
	void *params[] = {&out, &first, &rounds, &mul, &add, &my.sm_blocks};

	CU(cuLaunchKernel(my.kernel, blocks, 1, 1, COMPUTE_BLOCK, 1, 1, 0, my.stream, params,
			  NULL));
}

static void launch(unsigned waves, double rounds) {
	launch_into(my.out, waves * my.wave, (unsigned)rounds);
}

static void start_cuda(void) {
	int threads, sms;
	CUdevice device;
	void *flag;

	my.module = driver_open(0, compute_ptx);
	my.kernel = driver_kernel(my.module, "compute");
	CU(cuCtxGetDevice(&device));
	CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				device));
	my.wave = (unsigned)(sms * (threads / COMPUTE_BLOCK));
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	my.out = driver_alloc((size_t)WAVES * my.wave * COMPUTE_BLOCK * sizeof(unsigned));
	my.sm_blocks = driver_alloc(COMPUTE_SMS_MAX * sizeof(unsigned));
	CU(cuMemHostAlloc(&flag, COMPUTE_BLOCK * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
	my.flag = flag;
	my.flag_on_gpu = (CUdeviceptr)(uintptr_t)flag; /* unified addresses */
}

/* One wave, the fastest of some. */
static double kernel_us(unsigned rounds) {
	double best = 1e30;

	for (int i = 0; i < 20; i++) {
		double began = now_us();

		launch(1, rounds);
		CU(cuStreamSynchronize(my.stream));
		best = fmin(best, now_us() - began);
	}
	return best;
}

static void find_rounds(void) {
	static const double wanted[3] = {79, 4000, 680};
	double low, high;

	if (getenv("ROUNDS")) {
		sscanf(getenv("ROUNDS"), "%lf %lf %lf", &shared->rounds[0], &shared->rounds[1],
		       &shared->rounds[2]);
		return;
	}
	kernel_us(1000); /* the clock rises */
	low = kernel_us(1000);
	high = kernel_us(101000);
	for (int i = 0; i < 3; i++) {
		shared->rounds[i] = fmax(1, 1000 + (wanted[i] - low) * 100000 / (high - low));
	}
}

static void run_lower(struct owner *o) {
	CUevent event[2];

	start_cuda();
	for (int i = 0; i < 2; i++) {
		CU(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
		CU(cuEventRecord(event[i], my.stream));
	}
	launch(1, 1);
	CU(cuStreamSynchronize(my.stream));
	o->warm = 1;
	for (unsigned k = 0; !shared->stop; k++) {
		if (!o->active) {
			CU(cuStreamSynchronize(my.stream));
			usleep(500);
			continue;
		}
		CU(cuEventSynchronize(event[k & 1]));
		launch(WAVES, shared->rounds[2]);
		CU(cuEventRecord(event[k & 1], my.stream));
		o->done++;
	}
	CU(cuStreamSynchronize(my.stream));
}

static void open_job(void) {
	atomic_fetch_add(&shared->bell, 1);
	if (shared->way.sleeps) {
		syscall(SYS_futex, &shared->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

/* Released at @when. */
static struct job run_job(double when) {
	const struct way *w = &shared->way;
	double until, release;
	struct job job;

	sleep_until_us(when - w->ahead - (w->ahead > 0 ? 100 : 0));
	shared->now = (struct job){.response = 0};
	shared->calls = 0;
	if (w->ahead > 0) {
		while (now_us() < when - w->ahead) {
		}
		shared->release = when;
		open_job();
		while (now_us() < when) {
		}
	}
	release = w->ahead > 0 ? when : now_us();
	shared->release = release;
	*my.flag = 0;
	launch_into(my.flag_on_gpu, 1, 1);
	launch(1, shared->kernel);
	if (w->ahead == 0) {
		open_job();
	}
	if (w->launcher) {
		preempt_one(0);
	}
	for (until = now_us() + 2e6; *my.flag == 0 && now_us() < until;) {
	}
	job.started = now_us() - release;
	job.calls = shared->calls;
	CU(cuStreamSynchronize(my.stream));
	job.response = now_us() - release;
	atomic_fetch_add(&shared->bell, 1);
	job.awake = shared->now.awake, job.began = shared->now.began;
	job.ended = shared->now.ended;
	return job;
}

static void run_urgent(struct owner *o) {
	static const enum who who = THREAD;
	pthread_t thread;

	start_cuda();
	find_rounds();
	kernel_us((unsigned)shared->rounds[0]);
	o->warm = 1;
	while (!o->active && !shared->stop) {
		usleep(1000);
	}
	get_descriptors();
	CHECK(pthread_create(&thread, NULL, run_preempter, (void *)&who));
	while (!shared->stop) {
		double begin, next;

		if (!shared->busy) {
			usleep(500);
			continue;
		}
		begin = next = now_us() + shared->period;
		for (shared->n = 0; next < begin + shared->seconds * 1e6 && shared->n < JOBS_MAX;) {
			shared->jobs[shared->n] = run_job(next);
			shared->n++;
			for (double now = now_us() + 300; next <= now; next += shared->period) {
			}
		}
		shared->busy = 0;
	}
	pthread_join(thread, NULL);
}

/* ---- the coordinator ---- */

static pid_t start(int owner) {
	static const enum who who = HELPER;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0) {
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (owner < 0) {
		get_descriptors();
		run_preempter((void *)&who);
		_exit(0);
	}
	me = owner;
	if (owner < URGENT) {
		run_lower(&shared->owner[owner]);
	} else {
		run_urgent(&shared->owner[owner]);
	}
	exit(0);
}

static void await_owner(int i) {
	double until = now_us() + 40e6;

	while (!(shared->owner[i].warm && shared->owner[i].ready)) {
		if (now_us() > until) {
			fprintf(stderr, "owner %d did not start: warm %u, group seen %u\n", i,
				shared->owner[i].warm, shared->owner[i].ready);
			exit(1);
		}
		usleep(1000);
	}
}

static uint64_t kernels_done(void) {
	uint64_t n = 0;

	for (int i = 0; i < URGENT; i++) {
		n += shared->owner[i].done;
	}
	return n;
}

static double column(size_t offset, unsigned permille) {
	static double values[JOBS_MAX];
	size_t n = 0;

	for (int i = 0; i < shared->n; i++) {
		memcpy(&values[n], (const char *)&shared->jobs[i] + offset, sizeof(double));
		n++;
	}
	return percentile(values, n, permille);
}

static double mean_calls(void) {
	double sum = 0;

	for (int i = 0; i < shared->n; i++) {
		sum += shared->jobs[i].calls;
	}
	return shared->n > 0 ? sum / shared->n : 0;
}

#define COLUMN(member, permille) column(offsetof(struct job, member), permille)

static void run_half(double rounds, double period, double seconds) {
	shared->kernel = rounds, shared->period = period, shared->seconds = seconds;
	shared->busy = 1;
	while (shared->busy) {
		usleep(1000);
	}
	usleep(3000); /* the CPU's account */
}

/* It holds once the group is scheduled again. The size of the parameters is driver 580's. */
static void set_slice(int i, double us) {
	uint64_t slice = us > 0 ? (uint64_t)us : 2048;
	uint8_t enable[3] = {1, 0, 0};
	int r = rm_control(descriptor[i], &shared->owner[i], GROUP_SET_TIMESLICE, &slice, 8);

	if (r == 0) {
		r = rm_control(descriptor[i], &shared->owner[i], GROUP_SCHEDULE, enable, 3);
	}
	if (r != 0) {
		printf("owner %d: no time slice of %lu us: %x\n", i, (unsigned long)slice, r);
	}
}

static void run_way(const struct way *way, int lower, double short_s, double long_s) {
	double began, took, cpu;
	uint64_t done;

	shared->way = *way;
	shared->lower = lower;
	for (int i = 0; i < URGENT; i++) {
		shared->owner[i].active = i < lower;
		set_slice(i, way->slice);
	}
	set_slice(URGENT, way->urgent);
	usleep(50000);
	began = now_us();
	done = kernels_done();
	run_half(shared->rounds[0], 2500, short_s);
	cpu = shared->cpu_us;
	printf("%-22s %d | %5.0f %5.0f %5.0f | %4.0f %4.0f, %4.0f %4.0f, %4.0f %4.0f, %5.0f %5.0f, "
	       "%.1f",
	       way->name, lower, COLUMN(response, 500), COLUMN(response, 990),
	       COLUMN(response, 1000), COLUMN(awake, 500), COLUMN(awake, 990), COLUMN(began, 500),
	       COLUMN(began, 990), COLUMN(ended, 500), COLUMN(ended, 990), COLUMN(started, 500),
	       COLUMN(started, 990), mean_calls());
	run_half(shared->rounds[1], 16000, long_s);
	took = now_us() - began;
	cpu += shared->cpu_us;
	printf(" | %5.0f %5.0f %5.0f | %6.0f | %3.0f\n", COLUMN(response, 500),
	       COLUMN(response, 990), COLUMN(response, 1000),
	       (double)(kernels_done() - done) / took * 1e6,
	       way->who == NOBODY ? 0 : 100 * cpu / took);
	fflush(stdout);
}

/* What it costs to change a time slice, while @active others work. */
static void show_cost(int active) {
	double took[50];

	for (int i = 0; i < LOWER; i++) {
		shared->owner[i].active = i < active;
	}
	usleep(50000);
	for (int i = 0; i < 50; i++) {
		double began = now_us();

		set_slice(0, i & 1 ? 2048 : 200);
		took[i] = now_us() - began;
	}
	printf("a time slice set and scheduled, %d others at work: p50 %.0f p99 %.0f us\n", active,
	       percentile(took, 50, 500), percentile(took, 50, 990));
}

static void run_all(double short_s, double long_s, int n, char **numbers) {
	static char *const usual[] = {(char *)"1", (char *)"2", (char *)"4"};

	if (n == 0) {
		n = 3, numbers = (char **)usual;
	}
	printf("way                 others | short: p50 p99 max | awake, ioctl begins, ends, "
	       "kernel "
	       "begins (p50 p99 each), ioctls by then | long: p50 p99 max | others' kernels/s | "
	       "CPU %%\n");
	run_way(&ways[0], 0, short_s, long_s);
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(ways) / sizeof(*ways); k++) {
			if (ways[k].lower == 0 || ways[k].lower == atoi(numbers[i])) {
				run_way(&ways[k], atoi(numbers[i]), short_s, long_s);
			}
		}
	}
	show_cost(0);
	show_cost(1);
	show_cost(LOWER);
}

int main(int argc, char **argv) {
	double short_s = argc > 2 ? atof(argv[1]) : 0.8, long_s = argc > 2 ? atof(argv[2]) : 0.6;
	pid_t pids[OWNERS + 1];

	setvbuf(stdout, NULL, _IOLBF, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (int i = 0; i < OWNERS; i++) {
		pids[i] = start(i);
	}
	for (int i = 0; i < OWNERS; i++) {
		await_owner(i);
	}
	pids[OWNERS] = start(-1);
	get_descriptors();
	shared->owner[URGENT].active = 1;
	usleep(20000);
	printf("rounds %.0f %.0f %.0f\n", shared->rounds[0], shared->rounds[1], shared->rounds[2]);
	run_all(short_s, long_s, argc > 3 ? argc - 3 : 0, argv + 3);
	printf("ioctls refused: %u\n", shared->fails);
	shared->stop = 1;
	for (int i = 0; i <= OWNERS; i++) {
		waitpid(pids[i], NULL, 0);
	}
	return 0;
}
