/*
 * gather-gpu.c: what the driver shows to a CUDA program of this user; see gather.h.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/doctor/gather.h"
#include "daemon/gpu/listing.h"
#include "proto/units.h"

#define TIMEOUT_DEFAULT_NS (30 * NSEC_PER_SEC)
#define LOOK_AGAIN_US	   5000

/* From cuda.h. */
#define CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT 16

/* The driver API's types are int, or pointers: no header is needed. */
struct cuda {
	int (*driver_version)(int *version);
	int (*init)(unsigned flags);
	int (*error_name)(int error, const char **name);
	int (*count)(int *n);
	int (*name)(char *name, int size, int device);
	int (*attribute)(int *value, int attribute, int device);
};

static bool load(struct cuda *c, void *library) {
	*(void **)&c->driver_version = dlsym(library, "cuDriverGetVersion");
	*(void **)&c->init = dlsym(library, "cuInit");
	*(void **)&c->error_name = dlsym(library, "cuGetErrorName");
	*(void **)&c->count = dlsym(library, "cuDeviceGetCount");
	*(void **)&c->name = dlsym(library, "cuDeviceGetName");
	*(void **)&c->attribute = dlsym(library, "cuDeviceGetAttribute");
	return c->driver_version && c->init && c->error_name && c->count && c->name && c->attribute;
}

static void look_at_cuda(struct gpu_facts *g) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *name = NULL;
	struct cuda c;

	if (!library || !load(&c, library)) {
		snprintf(g->cuda_why, sizeof(g->cuda_why), "%s", dlerror());
		return;
	}
	g->has_cuda = true;
	c.driver_version(&g->cuda_version);
	g->init = c.init(0);
	if (g->init != 0) {
		c.error_name(g->init, &name);
		snprintf(g->init_name, sizeof(g->init_name), "%s", name ? name : "unknown error");
		return;
	}
	if (c.count(&g->n_gpus) == 0 && g->n_gpus > 0) {
		c.name(g->name, sizeof(g->name), 0);
		c.attribute(&g->n_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
	}
}

/* As sbeetd does. */
static void find_gpus(struct gpu_facts *g) {
	struct gpu_listing l;

	if (gpu_list(&l, g->finds_why, sizeof(g->finds_why)) < 0) {
		return;
	}
	g->finds_gpus = true;
	g->simulated = l.n > 0 && l.gpus[0].simulated_sharing >= 0;
	if (l.nvml) {
		g->has_nvml = true;
		nvml_driver(l.nvml, g->driver, sizeof(g->driver));
		nvml_close(l.nvml);
	}
}

/* In the child, which shares @g with us. */
static void look(struct gpu_facts *g, const char *mps_directory, pid_t parent) {
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(0);
	}
	if (null >= 0) { /* drivers may print */
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	if (*mps_directory) {
		setenv("CUDA_MPS_PIPE_DIRECTORY", mps_directory, 1);
	}
	find_gpus(g);
	look_at_cuda(g);
	_exit(0);
}

static nsec_t read_timeout(void) {
	const char *text = getenv("SBEET_TIMEOUT");
	nsec_t t;

	return text && *text && units_parse_nsec(text, &t) == 0 && t > 0 ? t : TIMEOUT_DEFAULT_NS;
}

/* Return: how the child came to its end. */
static enum facts_end wait_for(pid_t pid) {
	nsec_t until = nsec_now() + read_timeout();
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (nsec_now() >= until) {
			kill(pid, SIGKILL);
			/* One that hangs within the kernel may never end: nobody waits for it. */
			waitpid(pid, &status, WNOHANG);
			return FACTS_HUNG;
		}
		usleep(LOOK_AGAIN_US);
	}
	return WIFSIGNALED(status) ? FACTS_CRASHED : FACTS_DONE;
}

void gather_gpu(const char *mps_directory, struct gpu_facts *ret) {
	struct gpu_facts *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	pid_t self = getpid(), pid;
	enum facts_end end;

	if (shared == MAP_FAILED) {
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		look(shared, mps_directory, self);
	}
	end = pid > 0 ? wait_for(pid) : FACTS_DONE;
	*ret = *shared;
	munmap(shared, sizeof(*shared));
	ret->end = end;
	ret->kernel_module = access("/proc/driver/nvidia/version", F_OK) == 0;
	ret->hidden = visible != NULL;
}
