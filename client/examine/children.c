/* children.c: see children.h. */
#include "client/examine/children.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/base/stop.h"

#define CHILDREN_MAX 16
#define ERROR_MAX    512

void *children_memory(size_t size) {
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void children_memory_free(void *memory, size_t size) {
	if (memory) {
		munmap(memory, size);
	}
}

void children_sleep_until(nsec_t t) {
	struct timespec at = nsec_timespec(t);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
	}
}

nsec_t children_meet(struct children_gate *gate, unsigned n) {
	if (atomic_fetch_add(&gate->n_ready, 1) + 1 == n) {
		gate->opens_at = nsec_now() + 5 * NSEC_PER_MSEC;
	}
	while (gate->opens_at == 0) {
		children_sleep_until(nsec_now() + NSEC_PER_MSEC);
	}
	children_sleep_until(gate->opens_at);
	return gate->opens_at;
}

static pid_t start(unsigned index, children_fn fn, void *userdata, char *error) {
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(getppid() == parent && fn(userdata, index, error, ERROR_MAX) == 0 ? 0 : 1);
	}
	return pid;
}

static int failed(int status, unsigned index, const char *from, char *error, size_t error_size) {
	if (*from) {
		snprintf(error, error_size, "%s", from);
	} else if (WIFSIGNALED(status)) {
		snprintf(error, error_size, "process %u on the GPU was ended by signal %d", index,
			 WTERMSIG(status));
	} else {
		snprintf(error, error_size, "process %u on the GPU failed", index);
	}
	return -EIO;
}

/* Return: how many have ended. @ret: of the first that failed, while it is 0. */
static unsigned reap(pid_t *pids, char (*errors)[ERROR_MAX], int *ret, char *error,
		     size_t error_size) {
	unsigned n = 0;

	for (unsigned i = 0; i < CHILDREN_MAX; i++) {
		int status = 0;

		if (pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) > 0) {
			pids[i] = 0;
			n++;
			if (*ret == 0 && status != 0) {
				*ret = failed(status, i, errors[i], error, error_size);
			}
		}
	}
	return n;
}

/* Until all @left have ended; once *ret is negative they are killed. */
static void wait_all(pid_t *pids, unsigned left, char (*errors)[ERROR_MAX], nsec_t limit, int *ret,
		     char *error, size_t error_size) {
	nsec_t until = nsec_now() + limit;

	while ((left -= reap(pids, errors, ret, error, error_size)) > 0) {
		if (*ret == 0 && stop_wanted()) {
			snprintf(error, error_size, "interrupted");
			*ret = -EINTR;
		} else if (*ret == 0 && nsec_now() > until) {
			snprintf(error, error_size, "the GPU did not answer for %u s",
				 (unsigned)(limit / NSEC_PER_SEC));
			*ret = -ETIMEDOUT;
		}
		for (unsigned i = 0; *ret < 0 && i < CHILDREN_MAX; i++) {
			if (pids[i] > 0) {
				kill(pids[i], SIGKILL);
			}
		}
		children_sleep_until(nsec_now() + 2 * NSEC_PER_MSEC);
	}
}

int children_run(unsigned n, children_fn fn, void *userdata, nsec_t limit, char *error,
		 size_t error_size) {
	char(*errors)[ERROR_MAX] = children_memory(CHILDREN_MAX * sizeof(*errors));
	pid_t pids[CHILDREN_MAX] = {0};
	unsigned started = 0;
	int r = 0;

	if (!errors || n > CHILDREN_MAX) {
		children_memory_free(errors, CHILDREN_MAX * sizeof(*errors));
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	for (; started < n; started++) {
		pids[started] = start(started, fn, userdata, errors[started]);
		if (pids[started] < 0) {
			snprintf(error, error_size, "cannot start a process: %s", strerror(errno));
			r = -EIO;
			break;
		}
	}
	wait_all(pids, started, errors, limit, &r, error, error_size);
	children_memory_free(errors, CHILDREN_MAX * sizeof(*errors));
	return r;
}
