/*
 * client-socket.c: see client-socket.h.
 */
#include "daemon/base/client-socket.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/util.h"
#include "proto/packet.h"
#include "proto/thread.h"

/* At first, and then as often: far longer than such a call takes, far shorter than a job. */
#define PATIENCE (2 * NSEC_PER_MSEC)

/* What a user may have us close at a time, and how many users. */
#define CLOSING_PER_USER 2
#define CLOSING_MAX	 16

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t timer;
static bool has_timer;

static struct closing {
	_Atomic bool busy; /* until its thread is done */
	uid_t uid;
	int fds[PACKET_FDS_MAX];
	size_t n;
} closing[CLOSING_MAX];

static void on_signal(int number) {
}

int client_socket_init(void) {
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};

	event.sigev_notify_thread_id = gettid();
	if (sigaction(SIGALRM, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) {
		return -errno;
	}
	has_timer = true;
	return 0;
}

static void set_timer(nsec_t every) {
	struct itimerspec t = {.it_value.tv_nsec = (long)every, .it_interval.tv_nsec = (long)every};

	if (has_timer) {
		timer_settime(timer, 0, &t, NULL);
	}
}

void client_socket_hang_up(int fd) {
	set_timer(PATIENCE);
	packet_close(fd);
	set_timer(0);
}

ssize_t client_socket_read(int fd, void *buffer, size_t n) {
	ssize_t r;

	set_timer(PATIENCE);
	r = read(fd, buffer, n);
	set_timer(0);
	return r;
}

void client_socket_close(int fd) {
	set_timer(PATIENCE);
	close(fd);
	set_timer(0);
}

/* NULL: none that the user may have. */
static struct closing *find_free(uid_t uid) {
	struct closing *free = NULL;
	int n = 0;

	for (size_t i = 0; i < CLOSING_MAX; i++) {
		if (!atomic_load(&closing[i].busy)) {
			free = &closing[i];
		} else if (closing[i].uid == uid) {
			n++;
		}
	}
	return n < CLOSING_PER_USER ? free : NULL;
}

bool client_socket_may_pass(uid_t uid) {
	return find_free(uid) != NULL;
}

static void *run(void *userdata) {
	struct closing *c = userdata;

	for (size_t i = 0; i < c->n; i++) {
		close(c->fds[i]);
	}
	atomic_store(&c->busy, false);
	return NULL;
}

static void close_passed(const int *fds, size_t n, uid_t uid) {
	struct closing *c = find_free(uid);

	if (c) {
		c->uid = uid;
		c->n = n;
		memcpy(c->fds, fds, n * sizeof(*fds));
		atomic_store(&c->busy, true);
		if (thread_start(NULL, 0, run, c) == 0) {
			return;
		}
		atomic_store(&c->busy, false);
	}
	for (size_t i = 0; i < n; i++) {
		client_socket_close(fds[i]);
	}
}

void client_socket_close_passed(int fd, uid_t uid) {
	close_passed(&fd, 1, uid);
}

int client_socket_receive(int fd, uid_t uid, void *buffer, int *ret_fd) {
	int fds[PACKET_FDS_MAX], r;
	size_t n;

	if (ret_fd) {
		*ret_fd = -1;
	}
	if (!client_socket_may_pass(uid)) {
		set_timer(PATIENCE);
		r = packet_receive(fd, buffer, NULL);
		set_timer(0);
		return r;
	}
	r = packet_receive_all(fd, buffer, fds, &n);
	if (ret_fd && r > 0 && n == 1) {
		*ret_fd = fds[0];
	} else if (n > 0) {
		close_passed(fds, n, uid);
	}
	return ret_fd && r > 0 && n > 1 ? -EPROTO : r;
}
