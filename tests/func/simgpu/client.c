/*
 * client.c: a CUDA program by remote control, for test-processes.c: one command a line on stdin,
 * one answer a line on stdout. It knows nothing of who else uses the GPU.
 *
 *   hold BLOCKS THREADS  launches blocks that stay until `release`
 *   arrived              how many blocks have begun
 *   release              lets them end
 *   smids                the SM ids that the blocks saw, sorted, each once
 *   sync                 waits for all work; the CUDA error as a number
 *   fault                launches a kernel that writes out of bounds
 *   alloc BYTES          device memory; the error
 *   free                 how much device memory is free
 *   add                  a whole small vector addition; "right" or "wrong"
 *   groups               its channel groups: CLIENT OBJECT ENGINE GPU each, in hexadecimal
 *   channels             its subdevice, and the channels of its first group
 *   share PATH           sends the descriptor of nvidiactl to a socket there
 *   create               a further context
 *   destroy              the one that was created last
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kernels.h"
#include "tests/simgpu/rm.h"

#define SMIDS 256

static struct {
	CUfunction wait, poke, add, churn;
	volatile uint32_t *words; /* pinned: gate, arrived, smids */
	unsigned n_blocks;
	CUstream stream;
} client;

/* ---- what the driver asks of the kernel ---- */

#define GROUPS	16
#define DEVICES 8

static struct {
	struct group {
		int fd;
		uint32_t client, object, engine, gpu;
	} groups[GROUPS];
	unsigned n_groups;
	struct {
		uint32_t object, gpu;
	} devices[DEVICES];
	unsigned n_devices;
	uint32_t subdevice, channels[GROUPS]; /* of the first group */
	unsigned n_channels;
} seen;

/* Both structures begin as the shorter one. */
static void note_alloc(int fd, const struct rm_alloc_short *a) {
	const struct rm_device_params *device = (const void *)(uintptr_t)a->params;
	const struct rm_group_params *group = (const void *)(uintptr_t)a->params;

	if (a->class == RM_CLASS_DEVICE && seen.n_devices < DEVICES) {
		seen.devices[seen.n_devices].object = a->object;
		seen.devices[seen.n_devices++].gpu = device->device;
	} else if (a->class == RM_CLASS_SUBDEVICE) {
		seen.subdevice = a->object;
	} else if (a->class == RM_CLASS_CHANNEL && a->parent == seen.groups[0].object &&
		   seen.n_channels < GROUPS) {
		seen.channels[seen.n_channels++] = a->object;
	} else if (a->class == RM_CLASS_CHANNEL_GROUP && seen.n_groups < GROUPS) {
		struct group *g = &seen.groups[seen.n_groups++];

		*g = (struct group){fd, a->client, a->object, group->engine, 99};
		for (unsigned i = 0; i < seen.n_devices; i++) {
			g->gpu = seen.devices[i].object == a->parent ? seen.devices[i].gpu : g->gpu;
		}
	}
}

static void note_free(const struct rm_free *q) {
	for (unsigned i = 0; i < seen.n_groups; i++) {
		if (seen.groups[i].object == q->object) {
			seen.n_groups--;
			memmove(&seen.groups[i], &seen.groups[i + 1],
				(seen.n_groups - i) * sizeof(seen.groups[0]));
			break;
		}
	}
}

/* The driver library calls this one, as it calls a preloaded library's. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) {
	int (*next)(int, unsigned long, ...) =
		(int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	r = next(fd, request, arg);
	if (r == 0 && ((request == _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc) &&
			((struct rm_alloc *)arg)->status == RM_OK) ||
		       (request == _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc_short) &&
			((struct rm_alloc_short *)arg)->status == RM_OK))) {
		note_alloc(fd, arg);
	} else if (r == 0 && request == _IOWR(RM_TYPE, RM_FREE_NR, struct rm_free)) {
		note_free(arg);
	}
	return r;
}

static void print_groups(void) {
	for (unsigned i = 0; i < seen.n_groups; i++) {
		const struct group *g = &seen.groups[i];

		printf("%s%x %x %x %x", i ? " " : "", g->client, g->object, g->engine, g->gpu);
	}
	printf("\n");
}

static void print_channels(void) {
	printf("%x", seen.subdevice);
	for (unsigned i = 0; i < seen.n_channels; i++) {
		printf(" %x", seen.channels[i]);
	}
	printf("\n");
}

static void share(const char *path) {
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)path, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", path);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &seen.groups[0].fd, sizeof(int));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || sendmsg(fd, &m, 0) != 1) {
		perror("client: share");
		exit(1);
	}
	close(fd);
	printf("ok\n");
}

static void check(CUresult r, const char *what) {
	const char *name = "?";

	if (r != CUDA_SUCCESS) {
		(void)cuGetErrorName(r, &name);
		fprintf(stderr, "client: %s: %s\n", what, name);
		exit(1);
	}
}

static void open_gpu(void) {
	CUcontext context;
	CUmodule module;

	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, kernels_ptx), "cuModuleLoadData");
	check(cuModuleGetFunction(&client.wait, module, "wait"), "wait");
	check(cuModuleGetFunction(&client.poke, module, "poke"), "poke");
	check(cuModuleGetFunction(&client.add, module, "add"), "add");
	check(cuModuleGetFunction(&client.churn, module, "churn"), "churn");
	check(cuMemAllocHost((void **)&client.words, 4 * (2 + SMIDS)), "cuMemAllocHost");
	check(cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void hold(unsigned blocks, unsigned threads) {
	uint64_t gate = (uintptr_t)client.words, arrived = gate + 4, smids = gate + 8;
	void *params[] = {&gate, &arrived, &smids};

	memset((void *)client.words, 0, 4 * (2 + SMIDS));
	client.n_blocks = blocks;
	check(cuLaunchKernel(client.wait, blocks, 1, 1, threads, 1, 1, 0, client.stream, params,
			     NULL),
	      "cuLaunchKernel");
	printf("ok\n");
}

static void print_smids(void) {
	const char *comma = "";

	for (unsigned id = 0; id < SMIDS; id++) {
		for (unsigned i = 0; i < client.n_blocks; i++) {
			if (client.words[2 + i] == id) {
				printf("%s%u", comma, id);
				comma = ",";
				break;
			}
		}
	}
	printf("\n");
}

static void fault(void) {
	uint64_t nowhere = 0x100000000000ull;
	unsigned value = 1;
	void *params[] = {&nowhere, &value};

	check(cuLaunchKernel(client.poke, 1, 1, 1, 1, 1, 1, 0, client.stream, params, NULL),
	      "cuLaunchKernel");
	printf("ok\n");
}

static void churn(unsigned blocks) {
	unsigned n = blocks * 64, sum = 0, *host = malloc(n * 4);
	CUdeviceptr d;
	void *params[] = {&d};

	check(cuMemAlloc(&d, n * 4), "cuMemAlloc");
	check(cuLaunchKernel(client.churn, blocks, 1, 1, 64, 1, 1, 0, client.stream, params, NULL),
	      "cuLaunchKernel");
	check(cuMemcpyDtoHAsync(host, d, n * 4, client.stream), "cuMemcpyDtoH");
	for (unsigned i = 0; i < n; i++) {
		sum = sum * 31 + host[i];
	}
	check(cuMemFree(d), "cuMemFree");
	free(host);
	printf("%u\n", sum);
}

static void add(void) {
	unsigned n = 1000, wrong = 0, *host = malloc(n * 4);
	CUdeviceptr d;
	void *params[] = {&d, &d, &d, &n};

	for (unsigned i = 0; i < n; i++) {
		host[i] = i;
	}
	check(cuMemAlloc(&d, n * 4), "cuMemAlloc");
	check(cuMemcpyHtoDAsync(d, host, n * 4, client.stream), "cuMemcpyHtoD");
	check(cuLaunchKernel(client.add, 8, 1, 1, 128, 1, 1, 0, client.stream, params, NULL),
	      "cuLaunchKernel");
	check(cuMemcpyDtoHAsync(host, d, n * 4, client.stream), "cuMemcpyDtoH");
	for (unsigned i = 0; i < n; i++) {
		wrong += host[i] != 2 * i;
	}
	check(cuMemFree(d), "cuMemFree");
	free(host);
	printf("%s\n", wrong ? "wrong" : "right");
}

static void create(CUcontext *ret) {
	check(cuCtxCreate(ret, NULL, 0, 0), "cuCtxCreate");
	check(cuCtxPopCurrent(NULL), "cuCtxPopCurrent");
	printf("ok\n");
}

int main(void) {
	CUcontext further = NULL;
	char line[128], path[128];
	unsigned a, b;
	size_t n, total;
	CUdeviceptr d;

	open_gpu();
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("open\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "hold %u %u", &a, &b) == 2 && a <= SMIDS) {
			hold(a, b);
		} else if (strcmp(line, "arrived\n") == 0) {
			printf("%u\n", client.words[1]);
		} else if (strcmp(line, "release\n") == 0) {
			client.words[0] = 1;
			printf("ok\n");
		} else if (strcmp(line, "smids\n") == 0) {
			print_smids();
		} else if (strcmp(line, "sync\n") == 0) {
			printf("%d\n", (int)cuStreamSynchronize(client.stream));
		} else if (strcmp(line, "fault\n") == 0) {
			fault();
		} else if (sscanf(line, "alloc %u", &a) == 1) {
			printf("%d\n", (int)cuMemAlloc(&d, a));
		} else if (strcmp(line, "free\n") == 0) {
			check(cuMemGetInfo(&n, &total), "cuMemGetInfo");
			printf("%zu\n", n);
		} else if (strcmp(line, "groups\n") == 0) {
			print_groups();
		} else if (strcmp(line, "channels\n") == 0) {
			print_channels();
		} else if (sscanf(line, "share %127s", path) == 1 && seen.n_groups > 0) {
			share(path);
		} else if (strcmp(line, "create\n") == 0) {
			create(&further);
		} else if (strcmp(line, "destroy\n") == 0) {
			check(cuCtxDestroy(further), "cuCtxDestroy");
			printf("ok\n");
		} else if (strcmp(line, "add\n") == 0) {
			add();
		} else if (sscanf(line, "churn %u", &a) == 1 && a > 0) {
			churn(a);
		} else {
			printf("unknown command\n");
		}
	}
	return 0;
}
