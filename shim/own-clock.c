/*
 * own-clock.c: the machine's clock, also where a preloaded library (libfaketime) shows the program
 * another one: sbeetd and the programs that share a GPU compare their times. Linked into libsbeet.so
 * as old-glibc.c is, with --wrap.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/object.h"

static const char *const libc[] = {"libc.so.6", NULL};

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret) {
	static _Atomic(__typeof__(clock_gettime) *) real;
	__typeof__(clock_gettime) *f = atomic_load_explicit(&real, memory_order_relaxed);

	if (!f) {
		f = (__typeof__(f))object_early_symbol(libc, "clock_gettime");
		atomic_store_explicit(&real, f, memory_order_relaxed);
	}
	return f ? f(id, ret) : (int)syscall(SYS_clock_gettime, id, ret);
}
