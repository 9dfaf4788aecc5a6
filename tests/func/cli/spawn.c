/*
 * spawn.c: see spawn.h.
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_LIMIT_MS 60000

static void die(const char *what) {
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	abort();
}

static void change_environment(const char *const *environment) {
	for (; environment && *environment; environment++) {
		const char *equals = strchr(*environment, '=');

		if (equals) {
			putenv((char *)*environment);
		} else {
			unsetenv(*environment);
		}
	}
}

static void child(const char *const *argv, const char *const *environment, int out, int err) {
	int null = open("/dev/null", O_RDONLY);

	change_environment(environment);
	if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) {
		_exit(99);
	}
	close(null);
	execv(argv[0], (char *const *)argv);
	_exit(99);
}

/* Appends what can be read; false at the end. */
static bool drain(int fd, char **text, size_t *n) {
	char buffer[4096];
	ssize_t got = read(fd, buffer, sizeof(buffer));

	if (got <= 0) {
		return false;
	}
	*text = realloc(*text, *n + (size_t)got + 1);
	if (!*text) {
		die("realloc");
	}
	memcpy(*text + *n, buffer, (size_t)got);
	*n += (size_t)got;
	(*text)[*n] = '\0';
	return true;
}

struct spawned spawn(const char *const *argv, const char *const *environment) {
	struct spawned s = {.code = -1, .out = calloc(1, 1), .err = calloc(1, 1)};
	int out[2], err[2], status;
	size_t n_out = 0, n_err = 0;
	struct pollfd fds[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		die("pipe2");
	}
	pid = fork();
	if (pid < 0) {
		die("fork");
	}
	if (pid == 0) {
		child(argv, environment, out[1], err[1]);
	}
	close(out[1]);
	close(err[1]);
	fds[0] = (struct pollfd){.fd = out[0], .events = POLLIN};
	fds[1] = (struct pollfd){.fd = err[0], .events = POLLIN};
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, TIME_LIMIT_MS) <= 0) {
			kill(pid, SIGKILL);
			errno = ETIMEDOUT;
			die(argv[0]);
		}
		if (fds[0].revents && !drain(fds[0].fd, &s.out, &n_out)) {
			fds[0].fd = -1;
		}
		if (fds[1].revents && !drain(fds[1].fd, &s.err, &n_err)) {
			fds[1].fd = -1;
		}
	}
	close(out[0]);
	close(err[0]);
	if (waitpid(pid, &status, 0) != pid) {
		die("waitpid");
	}
	s.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	s.pid = pid;
	s.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return s;
}

void spawned_deinit(struct spawned *s) {
	free(s->out);
	free(s->err);
	*s = (struct spawned){0};
}
