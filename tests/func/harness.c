/*
 * harness.c: starts sbeetd and ends it. See harness.h.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness-internal.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

void harness_wait_readable(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, HARNESS_HANG_MS) != 1) {
		fail_msg("nothing came in %d s", HARNESS_HANG_MS / 1000);
	}
}

int harness_connect(const char *name) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path(name, path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	return fd;
}

/* In the child: what sd_listen_fds(3) wants to see. */
static void pass_sockets(const struct harness *h) {
	char pid[16], n[16];
	int above[HARNESS_PASSED_MAX];

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(n, sizeof(n), "%d", h->n_passed);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", n, 1);
	setenv("LISTEN_FDNAMES", h->passed_names, 1);
	for (int i = 0; i < h->n_passed; i++) {
		above[i] = fcntl(h->passed[i], F_DUPFD, 100);
	}
	for (int i = 0; i < h->n_passed; i++) {
		dup2(above[i], 3 + i);
		close(above[i]);
	}
}

/* Starts sbeetd with stderr in @errors_fd. */
static pid_t spawn(const struct harness *h, const char *const *args, int errors_fd) {
	const char *other = getenv("SBEET_TEST_DAEMON");
	char *argv[HARNESS_ARGS_MAX + 2] = {(char *)(uintptr_t)(other ? other : SBEETD)};
	pid_t pid;

	for (size_t i = 0; args[i]; i++) {
		assert_true(i < HARNESS_ARGS_MAX);
		argv[i + 1] = (char *)args[i];
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails half-way leaves none behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(errors_fd, STDERR_FILENO);
		if (h->n_passed > 0) {
			pass_sockets(h);
		}
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Where a test says nothing else, jobs are granted one by one and at once. */
static void write_default_config(const struct harness *h) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sbeetd.conf", h->directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs("[sbeetd]\npolicy = even\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void harness_prepare(struct harness *h) {
	if (!*h->directory) {
		snprintf(h->directory, sizeof(h->directory), "/tmp/sbeet-func-XXXXXX");
		assert_non_null(mkdtemp(h->directory));
		setenv("SBEET_RUNTIME_DIR", h->directory, 1);
		setenv("SBEET_CONFIG_DIR", h->directory, 1); /* not this machine's */
		write_default_config(h);
	}
}

const char *harness_write_profiles(struct harness *h, const char *text) {
	static char directory[128];
	char file[256];
	FILE *f;

	harness_prepare(h);
	snprintf(directory, sizeof(directory), "%s/profiles", h->directory);
	snprintf(file, sizeof(file), "%s/all.json", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	f = fopen(file, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return directory;
}

void harness_listen(struct harness *h) {
	h->log_fd = memfd_create("sbeetd-log", MFD_CLOEXEC);
	assert_true(h->log_fd > 0);
	assert_int_equal(fcntl(h->log_fd, F_SETFL, O_APPEND), 0);
}

unsigned harness_said(const struct harness *h, const char *text) {
	static char log[256 * 1024];
	ssize_t n = pread(h->log_fd, log, sizeof(log) - 1, 0);
	unsigned times = 0;

	assert_true(n >= 0);
	log[n] = '\0';
	for (const char *p = log; (p = strstr(p, text)); p++) {
		times++;
	}
	return times;
}

static int exit_code(pid_t pid) {
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		assert_int_equal(errno, EINTR);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool harness_try_start(struct harness *h, const char *const *args) {
	nsec_t hang = nsec_now() + HARNESS_HANG_MS * NSEC_PER_MSEC;
	siginfo_t info = {0};
	int code;

	assert_int_equal(ftruncate(h->log_fd, 0), 0);
	h->pid = spawn(h, args, h->log_fd);
	while (harness_said(h, "Ready in") == 0) {
		assert_int_equal(waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT),
				 0);
		if (info.si_pid == h->pid) {
			code = exit_code(h->pid);
			h->pid = 0;
			if (code != 1 && code != 2) {
				fail_msg("it ended with %d", code);
			}
			return false;
		}
		assert_true(nsec_now() < hang);
		usleep(1000);
	}
	return true;
}

void harness_start(struct harness *h, const char *const *args) {
	char path[128];
	nsec_t hang = nsec_now() + HARNESS_HANG_MS * NSEC_PER_MSEC;
	int fd;

	harness_prepare(h);
	h->pid = spawn(h, args, h->log_fd > 0 ? h->log_fd : STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/control.sock", h->directory);
	while ((fd = packet_connect(path, 0)) < 0) {
		assert_true(fd == -ENOENT || fd == -ECONNREFUSED);
		assert_int_equal(waitpid(h->pid, NULL, WNOHANG), 0);
		assert_true(nsec_now() < hang);
		usleep(1000);
	}
	close(fd);
}

int harness_run(struct harness *h, const char *const *args, char *errors, size_t size) {
	size_t n = 0;
	ssize_t r;
	int fds[2], code;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = spawn(h, args, fds[1]);
	close(fds[1]);
	while (n < size - 1 && (r = read(fds[0], errors + n, size - 1 - n)) > 0) {
		n += (size_t)r;
	}
	errors[n] = '\0';
	code = exit_code(pid);
	close(fds[0]);
	return code;
}

int harness_wait(struct harness *h) {
	pid_t pid = h->pid;

	h->pid = 0;
	return exit_code(pid);
}

int harness_stop(struct harness *h, int signal_number) {
	assert_int_equal(kill(h->pid, signal_number), 0);
	return harness_wait(h);
}

void harness_finish(struct harness *h) {
	struct shim s = shim_open("last", MASK_ALL);

	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(h, SIGTERM), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	return remove(path);
}

void harness_clean(struct harness *h) {
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		exit_code(h->pid);
	}
	if (*h->directory) {
		nftw(h->directory, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
	}
	if (h->log_fd > 0) {
		close(h->log_fd);
	}
	*h = (struct harness){0};
}
