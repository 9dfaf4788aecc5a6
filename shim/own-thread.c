/* own-thread.c: see own-thread.h. */
#include "shim/own-thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/thread.h"
#include "shim/wake.h"

/* Between two looks, once the main thread is gone. */
#define LOOK_MIN_NS (1 * NSEC_PER_MSEC)
#define LOOK_MAX_NS (100 * NSEC_PER_MSEC)

static _Atomic unsigned n_own;
static _Atomic bool main_ends; /* it has called pthread_exit() */
static _Atomic bool must_end;
static nsec_t pause_ns; /* the tracker's */

static pthread_key_t main_key; /* has a value in the main thread alone */
static bool main_key_made;

/* ---- the main thread ---- */

static void on_main_exit(void *data) {
	(void)data;
	atomic_store(&main_ends, true);
	wake_tracker();
}

static void mark_main(void) {
	if (main_key_made) {
		pthread_setspecific(main_key, &main_key);
	}
}

__attribute__((constructor)) static void start(void) {
	main_key_made = pthread_key_create(&main_key, on_main_exit) == 0;
	mark_main();
}

/* ---- which threads there are ---- */

/* A number of /proc/self/stat that stands so many fields behind the state, which is the main
 * thread's. */
static unsigned long field_behind_state(const char *state, unsigned n) {
	const char *p = state;

	while (p && n-- > 0) {
		p = strchr(p + 1, ' ');
	}
	return p ? strtoul(p, NULL, 10) : 0;
}

/* How many threads there are beside the main thread, which is gone. 0: it is not, or that can't be
 * known. */
static unsigned long count_threads(void) {
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *state;
	unsigned long n;
	ssize_t size;

	if (fd < 0) {
		return 0;
	}
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	state = strrchr(text, ')'); /* the name may hold anything */
	state = state && state[1] == ' ' && state[2] == 'Z' ? state + 2 : NULL;
	n = field_behind_state(state, 17);
	return n > 0 ? n - 1 : 0;
}

nsec_t own_thread_watch(nsec_t now) {
	if (!atomic_load(&main_ends)) {
		return UINT64_MAX;
	}
	if (count_threads() == atomic_load(&n_own)) {
		return 0;
	}
	pause_ns = nsec_clamp(2 * pause_ns, LOOK_MIN_NS, LOOK_MAX_NS);
	return now + pause_ns;
}

/* ---- ours ---- */

static void *run_own(void *data) {
	((void (*)(void))data)();
	atomic_fetch_sub(&n_own, 1);
	return NULL;
}

int own_thread_start(const char *name, size_t stack_bytes, void (*run)(void)) {
	pthread_t thread;
	int r;

	atomic_fetch_add(&n_own, 1);
	r = thread_start(&thread, stack_bytes, run_own, (void *)run);
	if (r < 0) {
		atomic_fetch_sub(&n_own, 1);
		return r;
	}
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}

void own_thread_end_others(void) {
	atomic_store(&must_end, true);
}

bool own_thread_must_end(void) {
	return atomic_load_explicit(&must_end, memory_order_relaxed);
}

/* ---- the last one ---- */

static void nap(void) {
	nanosleep(&(struct timespec){.tv_nsec = LOOK_MIN_NS}, NULL);
}

/* The handlers of exit() run here, in a thread like the program's own: with its stack, and signals.
 */
static void end_process(void) {
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	while (count_threads() > 1) {
		nap();
	}
}

void own_thread_end_last(void) {
	while (atomic_load(&n_own) > 1) {
		nap();
	}
	own_thread_start("sbeet-end", 0, end_process); /* else the caller is the last */
}

void own_thread_after_fork(void) {
	atomic_store(&n_own, 0);
	atomic_store(&main_ends, false);
	atomic_store(&must_end, false);
	mark_main();
}
