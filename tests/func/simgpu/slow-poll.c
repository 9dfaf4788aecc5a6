/*
 * slow-poll.c: preloaded into simgpud: a poll() that looks at one descriptor after the other, as
 * any does, and now and then stands still in between, as on a machine that has other things to do.
 * What comes meanwhile is seen or not, by where its descriptor is in the list.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Seldom enough for the GPU's time to pass: what is preempted keeps the GPU for some microseconds.
 */
#define LOOKS_A_PAUSE 128
#define PAUSE_NS      300000

static int look(struct pollfd *fds, nfds_t n, const struct timespec *timeout) {
	struct timespec left = timeout ? *timeout : (struct timespec){0};

	return (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, NULL, 0);
}

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
	static const struct timespec none = {0}, pause = {.tv_nsec = PAUSE_NS};
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (rand() % LOOKS_A_PAUSE == 0) {
			nanosleep(&pause, NULL);
		}
		ready += look(&fds[i], 1, &none) > 0;
	}
	return ready > 0 ? ready : look(fds, n, timeout_ms < 0 ? NULL : &timeout);
}
