/*
 * listener.c: accepts connections, bounded per event. See listener.h.
 */
#include "daemon/listener.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/log.h"
#include "daemon/util.h"

/* Connections between two looks at the programs: a connection costs as much as some requests. */
#define ACCEPTS_PER_EVENT 1

struct listener {
	int fd; /* owned */
	struct event readable, retry;
	bool accepting;
	listener_accepted_fn accepted;
	void *userdata;
};

static const struct timeval second = {.tv_sec = 1};

static void pause_accepting(struct listener *l, int error) {
	event_del(&l->readable);
	l->accepting = false;
	event_add(&l->retry, &second);
	log_client(
		LOG_LEVEL_WARNING,
		"Can't accept connections: %s; waiting until one is closed (raise LimitNOFILE= or "
		"ulimit -n)",
		strerror(error));
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct listener *l = userdata;

	for (int i = 0; i < ACCEPTS_PER_EVENT && l->accepting; i++) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer >= 0) {
			l->accepted(l->userdata, peer);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			pause_accepting(l, errno);
		} else if (errno != ECONNABORTED && errno != EINTR) {
			break; /* EAGAIN: all are in */
		}
	}
}

static void on_retry(evutil_socket_t fd, short what, void *userdata) {
	listener_resume(userdata);
}

int listener_new(struct listener **ret, struct event_base *base, int fd,
		 listener_accepted_fn accepted, void *userdata) {
	struct listener *l = calloc(1, sizeof(*l));

	if (!l) {
		return -ENOMEM;
	}
	l->fd = fd;
	l->accepted = accepted;
	l->userdata = userdata;
	event_assign(&l->readable, base, fd, EV_READ | EV_PERSIST, on_readable, l);
	event_assign(&l->retry, base, -1, 0, on_retry, l);
	*ret = l;
	return 0;
}

struct listener *listener_free(struct listener *l) {
	if (l) {
		event_del(&l->readable);
		event_del(&l->retry);
		close(l->fd);
		free(l);
	}
	return NULL;
}

void listener_resume(struct listener *l) {
	if (!l->accepting) {
		event_del(&l->retry);
		l->accepting = event_add(&l->readable, NULL) == 0;
	}
	if (!l->accepting) {
		event_add(&l->retry, &second); /* no memory now */
	}
}
