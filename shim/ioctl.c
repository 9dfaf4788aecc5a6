/*
 * ioctl.c: the interposed ioctl, which sees what the driver library asks the kernel for. Everything
 * goes through unchanged.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/early.h"
#include "shim/groups.h"
#include "shim/real.h"
#include "shim/state.h"

typedef int (*ioctl_fn)(int fd, unsigned long request, ...);

/* The next library's: somebody else may stand in for the C library's as well. */
static ioctl_fn find_next(void) {
	static _Atomic(ioctl_fn) next;
	ioctl_fn f = atomic_load_explicit(&next, memory_order_relaxed);

	if (!f) {
		f = (ioctl_fn)real_dlsym(RTLD_NEXT, "ioctl");
		atomic_store_explicit(&next, f, memory_order_relaxed);
	}
	return f;
}

static int call_next(int fd, unsigned long request, void *arg) {
	ioctl_fn next = find_next();

	return next ? next(fd, request, arg) : (int)syscall(SYS_ioctl, fd, request, arg);
}

SBEET_EXPORT EARLY int ioctl(int fd, unsigned long request, ...) {
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (!groups_concern(request)) {
		return call_next(fd, request, arg);
	}
	groups_before(request, arg);
	r = call_next(fd, request, arg);
	if (r >= 0) {
		groups_after(fd, request, arg);
	}
	return r;
}
