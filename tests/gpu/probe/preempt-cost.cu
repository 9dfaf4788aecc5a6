/*
 * preempt-cost.cu: how long does one preempting ioctl take, and what does it wait for? What do
 * cuMemAlloc and NVML cost an urgent program while others are preempted?
 *
 * usage: preempt-cost ioctl | calls	(without MPS; owners, preempt.so, preempt-loop beside it)
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "owners.h"

#define CALLS 300

static int (*nvml_power)(void *, unsigned *);
static int (*nvml_memory)(void *, unsigned long long *);
static int (*nvml_energy)(void *, unsigned long long *);
static int (*nvml_utilization)(void *, unsigned *);
static void *nvml_device;

static void open_nvml(void) {
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void) = lib ? (int (*)(void))dlsym(lib, "nvmlInit_v2") : NULL;
	int (*get)(unsigned, void **) =
		lib ? (int (*)(unsigned, void **))dlsym(lib, "nvmlDeviceGetHandleByIndex_v2")
		    : NULL;

	if (!init || init() != 0 || get(0, &nvml_device) != 0) {
		printf("no NVML\n");
		return;
	}
	nvml_power = (int (*)(void *, unsigned *))dlsym(lib, "nvmlDeviceGetPowerUsage");
	nvml_memory = (int (*)(void *, unsigned long long *))dlsym(lib, "nvmlDeviceGetMemoryInfo");
	nvml_energy = (int (*)(void *, unsigned long long *))dlsym(
		lib, "nvmlDeviceGetTotalEnergyConsumption");
	nvml_utilization = (int (*)(void *, unsigned *))dlsym(lib, "nvmlDeviceGetUtilizationRates");
}

static void call(int which) {
	unsigned long long memory[3];
	unsigned power, two[2];
	CUdeviceptr p;
	size_t free_bytes, total;

	switch (which) {
	case 0:
	case 1:
		CHECK(cuMemAlloc(&p, which ? 256u << 20 : 4u << 20));
		CHECK(cuMemFree(p));
		break;
	case 2:
		CHECK(cuMemGetInfo(&free_bytes, &total));
		break;
	case 3:
		CHECK(nvml_power(nvml_device, &power));
		break;
	case 4:
		CHECK(nvml_memory(nvml_device, memory));
		break;
	case 5:
		CHECK(nvml_energy(nvml_device, memory));
		break;
	case 6:
		CHECK(nvml_utilization(nvml_device, two));
		break;
	}
}

static void costs(void) {
	static const char *const name[] = {"alloc+free 4 MiB", "alloc+free 256 MiB", "cuMemGetInfo",
					   "NVML power",       "NVML memory",	     "NVML energy",
					   "NVML utilization"};
	static double took[CALLS];
	pid_t loop = 0;

	start_owners(LOWER, 0);
	open_nvml();
	printf("p50 / p99 us, a job open all the time\n");
	for (int cell = 0; cell < 5; cell++) {
		int n = cell < 1 ? 0 : cell < 3 ? 1 : 8, how = cell > 0;

		/* Cells 2 and 4: the loop lets others at the driver between two ioctls. */
		setenv("PROBE_PAUSE_US", cell == 2 || cell == 4 ? "200" : "0", 1);

		set_active(n);
		page->owner[ME].open = 1;
		loop = how ? start_loop("300", "1") : 0;
		printf("%d lower, %s, pause %s us |", n, how ? "preempted" : "none",
		       getenv("PROBE_PAUSE_US"));
		for (int which = 0; which < (nvml_device ? 7 : 3); which++) {
			double end = now_us() + 0.7e6;
			size_t k = 0;

			for (; k < CALLS && now_us() < end; k++) {
				double begin = now_us();

				call(which);
				took[k] = now_us() - begin;
			}
			printf(" %s %.0f / %.0f |", name[which], percentile(took, k, 500),
			       percentile(took, k, 990));
			fflush(stdout);
		}
		printf("\n");
		page->owner[ME].open = 0;
		if (how) {
			end_loop(loop);
		}
	}
}

/* --- one ioctl --- */

struct caller {
	pthread_t thread;
	const struct owner *owner;
	int fd, command, wait;
	int busy; /* own kernel of 4 ms queued before each call */
	int *started;
	volatile int tid, done;
	double took[CALLS], effect[CALLS], cpu_us;
	size_t n, n_effect;
	long sleeps;
	int status;
	uint64_t timeslice_us;
};

static int call_control(struct caller *c) {
	uint8_t params[256] = {0};

	switch (c->command) {
	case 0:
		return rm_control(c->fd, c->owner, 0xA06C01FF, params, 8);
	case 1:
		return rm_control(c->fd, c->owner, GROUP_GET_INFO, params, 4);
	case 2:
		return rm_control(c->fd, c->owner, GROUP_GET_TIMESLICE, &c->timeslice_us, 8);
	case 4: /* to what it is */
		return rm_control(c->fd, c->owner, GROUP_SET_TIMESLICE, &c->timeslice_us, 8);
	}
	return group_preempt(c->fd, c->owner, c->wait);
}

/* Polls until the kernel queued before has begun; in microseconds since @begin. */
static double wait_started(volatile int *started, double begin) {
	while (!*started && now_us() < begin + 1e6) {
	}
	return now_us() - begin;
}

static void *make_calls(void *userdata) {
	struct caller *c = (struct caller *)userdata;
	struct timespec t0, t1;
	struct rusage usage;
	double gap;

	c->tid = (int)syscall(SYS_gettid);
	CHECK(rm_control(c->fd, c->owner, GROUP_GET_TIMESLICE, &c->timeslice_us, 8));
	for (size_t i = 0; i < CALLS; i++) {
		double begin;

		if (c->busy) {
			*(volatile int *)c->started = 0;
			launch(1, 5000, c->started);
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
		begin = now_us();
		c->status = call_control(c);
		c->took[c->n++] = now_us() - begin;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
		c->cpu_us += (double)(t1.tv_sec - t0.tv_sec) * 1e6 +
			     (double)(t1.tv_nsec - t0.tv_nsec) * 1e-3;
		if (c->busy) {
			gap = wait_started(c->started, begin);
			c->effect[c->n_effect++] = gap;
			CHECK(cudaStreamSynchronize(stream));
		}
		gap = now_us() + 500 + (double)(random() % 1000);
		while (now_us() < gap) {
		}
	}
	getrusage(RUSAGE_THREAD, &usage);
	c->sleeps = usage.ru_nvcsw;
	c->done = 1;
	return NULL;
}

/* What the kernel says the thread is doing, looked at again and again. */
static void sample(const struct caller *c, int counts[3], char *where, size_t size) {
	char path[64], line[256] = "";
	FILE *f;
	char state = '?';

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", c->tid);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f) && strrchr(line, ')')) {
		state = strrchr(line, ')')[2];
	}
	if (f) {
		fclose(f);
	}
	counts[state == 'R' ? 0 : state == 'S' ? 1 : 2]++;
	if (state == 'R' || state == '?') {
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", c->tid);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f)) {
		snprintf(where, size, "%.60s", line);
	}
	if (f) {
		fclose(f);
	}
}

static void measure_ioctl(const char *what, int command, int wait, int active, int busy,
			  int callers) {
	static struct caller c[4];
	double wall = 0, cpu = 0;
	int counts[3] = {0, 0, 0};
	char where[64] = "-";
	static int *started;

	if (!started) {
		CHECK(cudaMallocHost((void **)&started, sizeof(*started)));
	}
	set_active(active);
	memset(c, 0, sizeof(c));
	for (int i = 0; i < callers; i++) {
		int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)page->owner[i].pid, 0);

		c[i].owner = &page->owner[i];
		c[i].fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)page->owner[i].fd, 0);
		close(pidfd);
		c[i].command = command, c[i].wait = wait, c[i].busy = busy && i == 0;
		c[i].started = started;
	}
	for (int i = 0; i < callers; i++) {
		CHECK(pthread_create(&c[i].thread, NULL, make_calls, &c[i]));
	}
	while (!c[0].done) {
		if (c[0].tid && callers == 1 && !busy) {
			sample(&c[0], counts, where, sizeof(where));
		}
		usleep(50);
	}
	for (int i = 0; i < callers; i++) {
		pthread_join(c[i].thread, NULL);
		close(c[i].fd);
	}
	for (size_t i = 0; i < c[0].n; i++) {
		wall += c[0].took[i];
	}
	cpu = c[0].cpu_us;
	printf("%-52s p1 %5.0f p50 %5.0f p99 %5.0f us, CPU %3.0f %%, %3ld sleeps, status 0x%x",
	       what, percentile(c[0].took, c[0].n, 10), percentile(c[0].took, c[0].n, 500),
	       percentile(c[0].took, c[0].n, 990), 100 * cpu / wall, c[0].sleeps, c[0].status);
	if (busy) {
		printf("; own kernel begins after %.0f, p99 %.0f",
		       percentile(c[0].effect, c[0].n_effect, 500),
		       percentile(c[0].effect, c[0].n_effect, 990));
	} else if (callers == 1) {
		printf("; seen R %d S %d other %d %s", counts[0], counts[1], counts[2], where);
	}
	printf(", time slice %lu us\n", (unsigned long)c[0].timeslice_us);
	fflush(stdout);
}

static void ioctls(void) {
	start_owners(4, 0);
	measure_ioctl("SET_TIMESLICE to what it is, idle group", 4, 0, 0, 0, 1);
	measure_ioctl("unknown command", 0, 0, 0, 0, 1);
	measure_ioctl("GET_INFO, idle group", 1, 0, 0, 0, 1);
	measure_ioctl("GET_TIMESLICE, idle group", 2, 0, 0, 0, 1);
	measure_ioctl("GET_TIMESLICE, busy group", 2, 0, 1, 0, 1);
	measure_ioctl("PREEMPT, idle group, idle GPU", 3, 0, 0, 0, 1);
	measure_ioctl("PREEMPT, the only busy group", 3, 0, 1, 0, 1);
	measure_ioctl("PREEMPT, one of 4 busy groups", 3, 0, 4, 0, 1);
	measure_ioctl("PREEMPT, the only busy group, waiting", 3, 1, 1, 0, 1);
	measure_ioctl("PREEMPT, one of 4 busy groups, waiting", 3, 1, 4, 0, 1);
	measure_ioctl("GET_TIMESLICE, own kernel queued behind 1 busy", 2, 0, 1, 1, 1);
	measure_ioctl("PREEMPT, own kernel queued behind 1 busy", 3, 0, 1, 1, 1);
	measure_ioctl("PREEMPT, same, waiting", 3, 1, 1, 1, 1);
	measure_ioctl("PREEMPT, 2 callers, 2 busy groups", 3, 0, 2, 0, 2);
	measure_ioctl("PREEMPT, 4 callers, 4 busy groups", 3, 0, 4, 0, 4);
}

int main(int argc, char **argv) {
	if (argc < 2) {
		return 2;
	}
	begin_probe(argv[0]);
	if (strcmp(argv[1], "ioctl") == 0) {
		ioctls();
	} else {
		costs();
	}
	return end_probe();
}
