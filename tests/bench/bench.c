/*
 * bench.c: shared by the daemon's benchmarks. See bench.h.
 */
#include "bench.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"

void bench_die(const char *what) {
	fprintf(stderr, "%s failed: %s\n", what, strerror(errno));
	exit(1);
}

void bench_daemon_start(struct bench_daemon *daemon, const char *const *args) {
	const char *program = getenv("SBEETD"); /* on a machine to which only programs were taken */
	char *argv[16] = {(char *)(uintptr_t)(program ? program : SBEETD)}, path[PROTO_PATH_MAX];
	int fd;

	for (size_t i = 0; args[i] && i < 14; i++) {
		argv[i + 1] = (char *)(uintptr_t)args[i];
	}
	snprintf(daemon->directory, sizeof(daemon->directory), "/tmp/sbeet-bench-XXXXXX");
	if (!mkdtemp(daemon->directory)) {
		bench_die("mkdtemp");
	}
	setenv("SBEET_RUNTIME_DIR", daemon->directory, 1);
	daemon->pid = fork();
	if (daemon->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], argv);
		_exit(127);
	}
	packet_socket_path("control.sock", path, sizeof(path));
	while ((fd = packet_connect(path, 0)) < 0) {
		if (waitpid(daemon->pid, NULL, WNOHANG) != 0) {
			bench_die("start of sbeetd");
		}
		usleep(1000);
	}
	close(fd);
}

void bench_daemon_stop(struct bench_daemon *daemon) {
	char lock[128];

	kill(daemon->pid, SIGTERM);
	waitpid(daemon->pid, NULL, 0);
	snprintf(lock, sizeof(lock), "%s/sbeetd.lock", daemon->directory);
	unlink(lock);
	rmdir(daemon->directory);
}

nsec_t bench_cpu(pid_t pid) {
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0) {
		bench_die("reading a process's time");
	}
	return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

int bench_session_open(void) {
	return bench_session_open_as(NULL);
}

int bench_session_open_as(Sbeet__TaskSpec *task) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char path[PROTO_PATH_MAX];
	int fd;

	packet_socket_path("shim.sock", path, sizeof(path));
	fd = packet_connect(path, 0);
	hello.version = PROTO_VERSION;
	hello.task = task;
	hello.program = (char[]){"bench"};
	hello.enforcement_mask = BENCH_MASK;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	if (fd < 0 || packet_send(fd, &m.base, -1) < 0 || packet_receive(fd, buffer, NULL) <= 0) {
		bench_die("session");
	}
	return fd;
}

void bench_wait_until_read(int fd) {
	int unread;

	while (ioctl(fd, SIOCOUTQ, &unread) == 0 && unread > 0) {
		sched_yield();
	}
}

static int compare(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

nsec_t bench_quantile(nsec_t *times, size_t n, unsigned percent) {
	qsort(times, n, sizeof(*times), compare);
	return times[n * percent / 100];
}
