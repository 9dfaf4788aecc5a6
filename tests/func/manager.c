/*
 * manager.c: see manager.h.
 */
#include "manager.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_MS 30000

static int notify_fd = -1;
static char names[HARNESS_PASSED_MAX][32];
static char all_names[HARNESS_PASSED_MAX * 33]; /* LISTEN_FDNAMES */

int manager_bind(struct harness *h, const char *name, int type) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/%s", h->directory, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

void manager_begin(struct harness *h) {
	char path[128];

	snprintf(path, sizeof(path), "%s/notify", h->directory);
	notify_fd = manager_bind(h, "notify", SOCK_DGRAM);
	setenv("NOTIFY_SOCKET", path, 1);
}

void manager_forget(struct harness *h) {
	for (int i = 0; i < h->n_passed; i++) {
		close(h->passed[i]);
	}
	h->n_passed = 0;
}

void manager_end(struct harness *h) {
	if (notify_fd >= 0) {
		close(notify_fd);
		notify_fd = -1;
	}
	unsetenv("NOTIFY_SOCKET");
	manager_forget(h);
}

bool manager_is_told_within(int ms) {
	struct pollfd p = {.fd = notify_fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

bool manager_is_told(void) {
	char message[512];

	return manager_is_told_within(0) && recv(notify_fd, message, sizeof(message), 0) > 0;
}

void manager_expect(const char *text) {
	char message[512] = "";

	while (!strstr(message, text)) {
		ssize_t n;

		assert_true(manager_is_told_within(HANG_MS));
		n = recv(notify_fd, message, sizeof(message) - 1, 0);
		assert_true(n > 0);
		message[n] = '\0';
	}
}

/* LISTEN_FDNAMES anew. */
static void join_names(struct harness *h) {
	size_t n = 0;

	all_names[0] = '\0';
	for (int i = 0; i < h->n_passed; i++) {
		n += (size_t)snprintf(all_names + n, sizeof(all_names) - n, "%s%s", i ? ":" : "",
				      names[i]);
	}
	h->passed_names = all_names;
}

static void keep(struct harness *h, const char *name, int fd) {
	assert_true(fd >= 0 && h->n_passed < HARNESS_PASSED_MAX);
	snprintf(names[h->n_passed], sizeof(names[0]), "%s", name);
	h->passed[h->n_passed++] = fd;
	join_names(h);
}

/* One message; what comes with it is kept if it asks for that. */
static void hear(struct harness *h) {
	char message[512], name[32] = "", control[CMSG_SPACE(sizeof(int) * 4)];
	struct iovec iov = {message, sizeof(message) - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	const char *at;
	int fd = -1;
	ssize_t n = recvmsg(notify_fd, &m, MSG_CMSG_CLOEXEC);

	assert_true(n >= 0);
	message[n] = '\0';
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	}
	at = strstr(message, "FDNAME=");
	if (at) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 7, "\n"), at + 7);
	}
	if (strstr(message, "FDSTORE=1")) {
		keep(h, name, fd);
	} else if (fd >= 0) {
		close(fd); /* that of a barrier */
	}
}

int manager_stop(struct harness *h) {
	siginfo_t info = {0};

	assert_int_equal(kill(h->pid, SIGTERM), 0);
	while (info.si_pid != h->pid) {
		if (manager_is_told_within(1)) {
			hear(h);
		} else {
			assert_int_equal(
				waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
		}
	}
	while (manager_is_told_within(0)) {
		hear(h);
	}
	return harness_wait(h);
}
