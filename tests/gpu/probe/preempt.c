/*
 * preempt.c: which channel groups does a program have, and which one computes?
 *
 * Preloaded (LD_PRELOAD, PROBE_SLOT=n, PROBE_PAGE). Sees the driver library allocate channel groups
 * through libc's ioctl, writes the first one of the compute engine to owner n of the page, and with
 * PROBE_SHOW=1 every group's engine to stderr.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>

#include "preempt.h"
#include "probe.h"

/* NVOS21 and NVOS64 agree as far as this. */
struct rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
};

/* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS */
struct group_params {
	uint32_t error, ecc_error, vaspace, engine;
};

static void note_group(int fd, const struct rm_alloc *a) {
	const struct group_params *p = (const struct group_params *)(uintptr_t)a->params;
	const char *slot = getenv("PROBE_SLOT");
	struct preempt_page *page = shared_page(sizeof(*page));
	struct owner *o;

	if (getenv("PROBE_SHOW")) {
		fprintf(stderr, "group object %x fd %d engine %d\n", a->object, fd,
			p ? (int)p->engine : -1);
	}
	if (slot) {
		o = &page->owner[atoi(slot)];
		o->groups++;
		/* The first of all if none names the compute engine where it is looked for. */
		if (!o->ready || (o->engine != 1 && p && p->engine == 1)) {
			o->pid = (uint32_t)getpid();
			o->fd = (uint32_t)fd;
			o->client = a->root;
			o->object = a->object;
			o->engine = p ? p->engine : 0;
			o->ready = 1;
		}
	}
	munmap(page, sizeof(*page));
}

int ioctl(int fd, unsigned long request, ...) {
	static int (*real)(int, unsigned long, ...);
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (!real) {
		real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	}
	r = real(fd, request, arg);
	if (r >= 0 && _IOC_TYPE(request) == 'F' && _IOC_NR(request) == RM_ALLOC_NR &&
	    ((struct rm_alloc *)arg)->class == CHANNEL_GROUP_CLASS) {
		note_group(fd, (struct rm_alloc *)arg);
	}
	return r;
}
