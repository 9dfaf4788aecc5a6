/*
 * descriptor.cu: another process holds a program's descriptor of the resource manager, and the
 * program dies by kill -9 in mid-kernel. When are its memory and its SMs free? Does closing the
 * descriptor change that?
 *
 * usage: descriptor [ROUNDS]	(without MPS; preempt.so beside it)
 * usage: descriptor victim	started by it: fills 16 GiB, then a kernel without end on all SMs
 *
 * Free memory by cuMemGetInfo, SMs by a kernel of one wave, both asked again and again. All times
 * are milliseconds since the kill.
 */
#include <cuda_runtime.h>
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "preempt.h"
#include "probe.h"

#define BYTES	(16ull << 30)
#define HOLD_US 2e6
#define SLACK	(256ull << 20)

enum hold {
	HOLD_NONE,     /* nobody holds it */
	HOLD_TO_DEATH, /* closed when the pidfd says that the program has ended */
	HOLD_2S,       /* closed 2 s after the kill */
	HOLD_PREEMPT,  /* the same, and the dead program's group preempted until then */
	HOLD_N,
};

static const char *const hold_name[] = {"nobody holds it", "held until the pidfd tells",
					"held for 2 s", "held for 2 s, preempted"};

static struct preempt_page *page;
static float *buffer;
static int wave;

__global__ void fill(uint32_t *to, size_t n, uint32_t seed) {
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x) {
		to[i] = (uint32_t)(i * 2654435761u) ^ seed;
	}
}

__global__ void endless(uint32_t *memory, size_t n, volatile int *end) {
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	while (!*end) {
		for (int k = 0; k < 1000; k++) {
			i = (i * 2862933555777941757ull + 3037000493ull) % n;
			memory[i] += 1;
		}
	}
}

__global__ void multiply(float *buffer, int n) {
	float x = buffer[threadIdx.x], y = buffer[blockIdx.x & 255];

	for (int i = 0; i < n; i++) {
		x = fmaf(x, 1.0001f, y), y = fmaf(y, 0.999f, x);
	}
	if (x == 12345.678f) {
		buffer[0] = y;
	}
}

static int victim(void) {
	struct owner *me = &page->owner[0];
	uint32_t *memory;
	int *end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(cudaMalloc((void **)&memory, BYTES));
	CHECK(cudaMalloc((void **)&end, sizeof(*end)));
	CHECK(cudaMemset(end, 0, sizeof(*end)));
	fill<<<4096, 256>>>(memory, BYTES / 4, (uint32_t)getpid());
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	endless<<<wave, 256>>>(memory, BYTES / 4, end);
	CHECK(cudaGetLastError());
	me->warm = 1;
	sleep(60);
	return 0;
}

static double kernel_us(void) {
	double begin = now_us();

	multiply<<<wave, 256>>>(buffer, 2000);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	return now_us() - begin;
}

static size_t free_bytes(void) {
	size_t free_now, total;

	CHECK(cudaMemGetInfo(&free_now, &total));
	return free_now;
}

static pid_t start_victim(const char *self) {
	char preload[600], path[512];
	double until = now_us() + 20e6;
	pid_t pid;

	memset((void *)&page->owner[0], 0, sizeof(page->owner[0]));
	snprintf(path, sizeof(path), "%s", self);
	snprintf(preload, sizeof(preload), "%s/preempt.so", dirname(path));
	pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("PROBE_SLOT", "0", 1);
		execl(self, self, "victim", NULL);
		_exit(1);
	}
	while (!page->owner[0].warm || !page->owner[0].ready) {
		if (now_us() > until) {
			fprintf(stderr, "the victim did not start\n");
			kill(pid, SIGKILL);
			exit(1);
		}
		usleep(1000);
	}
	usleep(100000);
	return pid;
}

static int get_descriptor(int pidfd) {
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)page->owner[0].fd, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror("pidfd_getfd");
		exit(1);
	}
	if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != 195 || minor(st.st_rdev) != 255) {
		printf("descriptor is device %u:%u\n", major(st.st_rdev), minor(st.st_rdev));
	}
	return fd;
}

static double since(double when, double kill_us) {
	return when ? (when - kill_us) / 1e3 : -1;
}

/* One death. @alone: a kernel's time with the GPU to itself; @baseline: free bytes before. */
static void run_death(const char *self, enum hold hold, double alone, size_t baseline) {
	double shared[20], begin, close_us = 0, end_us = 0, memory_us = 0, sms_us = 0, quiet = 0;
	double close_took = 0;
	pid_t pid = start_victim(self);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), fd = -1, status = -2, in_row = 0;
	struct pollfd p = {pidfd, POLLIN, 0};
	size_t before;

	for (int i = 0; i < 20; i++) {
		shared[i] = kernel_us();
	}
	before = free_bytes();
	if (hold != HOLD_NONE) {
		fd = get_descriptor(pidfd);
	}
	begin = now_us();
	kill(pid, SIGKILL);
	while (now_us() < begin + HOLD_US + 2e6) {
		double now;

		if (!end_us && poll(&p, 1, 0) > 0) {
			end_us = now_us();
		}
		now = now_us();
		if (fd >= 0 && (hold == HOLD_TO_DEATH ? end_us > 0 : now > begin + HOLD_US)) {
			close(fd);
			fd = -1;
			close_us = now, close_took = now_us() - now;
		}
		if (fd >= 0 && hold == HOLD_PREEMPT) {
			status = group_preempt(fd, &page->owner[0], 0);
		}
		if (kernel_us() < 1.5 * alone) {
			if (in_row++ == 0) {
				quiet = now_us();
			}
		} else if (!sms_us) {
			in_row = 0;
		}
		if (!sms_us && in_row == 20) {
			sms_us = quiet;
		}
		if (!memory_us && free_bytes() + SLACK > baseline) {
			memory_us = now_us();
		}
		if (memory_us && sms_us && end_us && fd < 0) {
			break;
		}
	}
	waitpid(pid, NULL, 0);
	close(pidfd);
	printf("%-28s | %6.0f | %5.1f | %7.1f | %7.1f | %7.1f | %7.1f | %6.2f | %s%x\n",
	       hold_name[hold], percentile(shared, 20, 500),
	       (double)(baseline - before) / (1 << 30), since(end_us, begin), since(sms_us, begin),
	       since(memory_us, begin), since(close_us, begin), close_took / 1e3,
	       hold == HOLD_PREEMPT ? "status 0x" : "", hold == HOLD_PREEMPT ? status : 0);
	fflush(stdout);
	if (fd >= 0) {
		close(fd);
	}
}

int main(int argc, char **argv) {
	double alone[200];
	float values[256];
	int sms, rounds = argc > 1 ? atoi(argv[1]) : 3;
	size_t baseline;

	page = (struct preempt_page *)shared_page(sizeof(*page));
	CHECK(cudaFree(0));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	wave = 8 * sms;
	if (argc > 1 && strcmp(argv[1], "victim") == 0) {
		return victim();
	}
	memset((void *)page, 0, sizeof(*page));
	srand48(getpid());
	for (int i = 0; i < 256; i++) {
		values[i] = (float)drand48();
	}
	CHECK(cudaMalloc((void **)&buffer, sizeof(values)));
	CHECK(cudaMemcpy(buffer, values, sizeof(values), cudaMemcpyHostToDevice));
	for (int i = 0; i < 200; i++) {
		alone[i] = kernel_us();
	}
	alone[0] = percentile(alone, 200, 900);
	baseline = free_bytes();
	printf("a kernel of one wave alone: %.0f us (p90)\n", alone[0]);
	printf("descriptor | kernel beside it us | GiB | ended ms | SMs free ms | memory free ms | "
	       "closed ms | close took ms\n");
	for (int round = 0; round < rounds; round++) {
		for (int hold = 0; hold < HOLD_N; hold++) {
			run_death(argv[0], (enum hold)hold, alone[0], baseline);
		}
	}
	return 0;
}
