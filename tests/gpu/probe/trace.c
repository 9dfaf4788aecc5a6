/*
 * trace.c: when sbeet asks NVIDIA's driver to preempt, disable or enable channels and set time
 * slices, and how long each of these ioctls takes. For late.py.
 *
 * As PRELOAD of preempt.sh, with TRACE_FILE set: all processes write to that file, which is mapped
 * when they start, for the one that preempts can open none later.
 *
 * Built by build.sh.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES		 1000000
#define CONTROL_NR	 0x2a
#define DISABLE_CHANNELS 0x2080110b
#define GROUP_CLASS	 0xa06c

struct control {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t size, status;
};

static struct trace {
	_Atomic uint64_t n;
	struct entry {
		uint64_t begin, end; /* ns, CLOCK_MONOTONIC */
		uint32_t pid, command, first, status;
	} list[ENTRIES];
} * trace;

static uint32_t pid; /* when it started: the one that preempts may not ask */
static int (*next)(int fd, unsigned long request, ...);

static uint64_t now_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("TRACE_FILE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
	void *map = MAP_FAILED;

	pid = (uint32_t)getpid();
	*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	if (fd >= 0 && ftruncate(fd, sizeof(*trace)) == 0) {
		map = mmap(NULL, sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (fd >= 0) {
		close(fd);
	}
	trace = map == MAP_FAILED ? NULL : map;
}

static void note(uint64_t began, const struct control *c) {
	uint64_t i = atomic_fetch_add(&trace->n, 1);

	if (i < ENTRIES) {
		trace->list[i] = (struct entry){
			.begin = began,
			.end = now_ns(),
			.pid = pid,
			.command = c->command,
			.first = c->params ? *(const uint32_t *)(uintptr_t)c->params : 0,
			.status = c->status,
		};
	}
}

int ioctl(int fd, unsigned long request, ...) {
	const struct control *c;
	uint64_t began = 0;
	va_list list;
	void *arg;
	int r, saved;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (trace) {
		began = now_ns();
	}
	r = next(fd, request, arg);
	c = arg;
	if (trace && r == 0 && c && _IOC_TYPE(request) == 'F' && _IOC_NR(request) == CONTROL_NR &&
	    (c->command == DISABLE_CHANNELS || c->command >> 16 == GROUP_CLASS)) {
		saved = errno;
		note(began, c);
		errno = saved;
	}
	return r;
}
