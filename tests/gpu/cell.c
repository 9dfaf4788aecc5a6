/*
 * cell.c: see cell.h.
 */
#include "tests/gpu/cell.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/apps/common.h"
#include "tests/gpu/meter.h"

#define PROGRAMS_MAX 64
#define SECOND	     1000000000ull

struct program {
	pid_t pid;
	int in, out; /* its standard input and output; -1: closed */
	char text[512];
	size_t n;
};

static struct program programs[PROGRAMS_MAX];
static unsigned n_programs;
static bool failed;

static void fail(unsigned i, const char *why) {
	fprintf(stderr, "evaluate: task %u %s\n", i + 1, why);
	failed = true;
}

static void start(const char *command) {
	struct program *p = &programs[n_programs];
	int in[2], out[2];

	if (n_programs == PROGRAMS_MAX || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		fail(n_programs, "can't be started");
		return;
	}
	p->pid = fork();
	if (p->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
	n_programs++;
}

/* Reads what is there. Return: false at the end of the program's output. */
static bool receive(struct program *p) {
	ssize_t n = read(p->out, p->text + p->n, sizeof(p->text) - 1 - p->n);

	if (n <= 0) {
		close(p->out);
		p->out = -1;
		return false;
	}
	p->n += (size_t)n;
	p->text[p->n] = '\0';
	return true;
}

static bool is_ready(const struct program *p) {
	return strncmp(p->text, "ready\n", 6) == 0;
}

/* Until all programs are ready, or (@end) have closed their output, or it is @until. */
static void wait_all(bool end, uint64_t until) {
	for (;;) {
		struct pollfd fds[PROGRAMS_MAX];
		unsigned left = 0;
		uint64_t now = app_now_ns();

		for (unsigned i = 0; i < n_programs; i++) {
			bool over = programs[i].out < 0 || (!end && is_ready(&programs[i]));

			fds[i] = (struct pollfd){over ? -1 : programs[i].out, POLLIN, 0};
			left += !over;
		}
		if (left == 0 || now >= until) {
			return;
		}
		poll(fds, n_programs, (int)((until - now) / 1000000) + 1);
		for (unsigned i = 0; i < n_programs; i++) {
			if (fds[i].fd >= 0 && fds[i].revents) {
				receive(&programs[i]);
			}
		}
	}
}

/* Gives all the start, or, if one is missing, closes their input, which ends them. */
static uint64_t give_start(void) {
	uint64_t when = app_now_ns() + SECOND / 20;

	for (unsigned i = 0; i < n_programs; i++) {
		if (!is_ready(&programs[i])) {
			fail(i, "is not ready");
		}
	}
	for (unsigned i = 0; i < n_programs; i++) {
		if (!failed) {
			dprintf(programs[i].in, "%" PRIu64 "\n", when);
		}
		close(programs[i].in);
	}
	return when;
}

static void collect(void) {
	for (unsigned i = 0; i < n_programs; i++) {
		int status;

		if (programs[i].out >= 0) {
			fail(i, "does not end");
			kill(programs[i].pid, SIGKILL);
		}
		if (waitpid(programs[i].pid, &status, 0) < 0 || status != 0) {
			fail(i, "failed");
		} else {
			printf("task %u %s", i + 1, programs[i].text + strlen("ready\n"));
		}
	}
}

/* CPU time that the hypervisor gave to others since the machine started. 0: not known. */
static uint64_t stolen_ms(void) {
	FILE *f = fopen("/proc/stat", "re");
	uint64_t ticks = 0;

	if (f) {
		if (fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1) {
			ticks = 0;
		}
		fclose(f);
	}
	return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

int cell_run(uint64_t lead_ns, uint64_t window_ns) {
	uint64_t begin, now, stolen, ns[2] = {0}, mj[2] = {0};
	char line[4096];
	bool metered;

	signal(SIGPIPE, SIG_IGN);
	while (fgets(line, sizeof(line), stdin)) {
		start(line);
	}
	wait_all(false, app_now_ns() + 60 * SECOND);
	begin = give_start() + lead_ns;
	now = app_now_ns();
	if (!failed && now < begin) {
		app_pause_ns(begin - now);
	}
	stolen = stolen_ms();
	metered = !failed && meter_read(&ns[0], &mj[0]);
	if (!failed) {
		wait_all(true, begin + window_ns);
	}
	metered =
		metered && meter_read(&ns[1], &mj[1]); /* before programs take their time to end */
	wait_all(true, failed ? app_now_ns() + 5 * SECOND : begin + window_ns + 20 * SECOND);
	printf("stolen %" PRIu64 "\n", stolen_ms() - stolen);
	collect();
	if (metered) {
		printf("energy %" PRIu64 " %" PRIu64 "\n", mj[1] - mj[0], ns[1] - ns[0]);
	}
	return failed;
}
