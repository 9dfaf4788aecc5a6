/*
 * own-clock.c: the machine's clock, also where a preloaded library (libfaketime) shows the program
 * another one: sbeetd and the programs that share a GPU compare their times. Linked into libsbeet.so
 * as old-glibc.c is, with --wrap.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/object.h"

/* Until 2.34 libpthread has its own. */
static const char *const libc[] = {"libpthread.so.0", "libc.so.6", NULL};

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

/* Its deadline is one of that clock. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *deadline);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *deadline);
/* clang-format off */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
	/* clang-format on */
	static _Atomic(__typeof__(pthread_cond_timedwait) *) real;
	__typeof__(pthread_cond_timedwait) *f = atomic_load_explicit(&real, memory_order_relaxed);

	if (!f) {
		f = (__typeof__(f))object_early_symbol(libc, "pthread_cond_timedwait");
		atomic_store_explicit(&real, f, memory_order_relaxed);
	}
	return f ? f(cond, mutex, deadline) : __real_pthread_cond_timedwait(cond, mutex, deadline);
}
