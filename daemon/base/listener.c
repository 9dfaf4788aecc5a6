/*
 * listener.c: accepts connections, bounded per event. See listener.h.
 */
#include "daemon/base/listener.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/client-socket.h"
#include "daemon/base/log.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"

/* Connections that are not wanted, between two rests. At up to 10 us each this is less than a
 * tenth of our time, and 1024 of them are out of the way of others in 130 ms. */
#define UNWANTED_MAX 32

enum listener_state {
	LISTENER_STOPPED,
	LISTENER_ACCEPTING,
	LISTENER_RESTING,
};

struct listener {
	int fd; /* owned */
	struct event readable;
	struct timer retry;
	enum listener_state state;
	unsigned n_unwanted; /* since the last rest */
	struct log_budget log;
	listener_accepted_fn accepted;
	void *userdata;
};

static void pause_accepting(struct listener *l, enum listener_state state, nsec_t for_so_long) {
	timer_set(&l->retry, for_so_long);
	event_del(&l->readable);
	l->state = state;
}

static void stop(struct listener *l, int error) {
	pause_accepting(l, LISTENER_STOPPED, NSEC_PER_SEC);
	log_client(
		&l->log, LOG_LEVEL_WARNING,
		"Can't accept connections: %s; waiting until one is closed (raise LimitNOFILE= or "
		"ulimit -n)",
		strerror(error));
}

void listener_rest(struct listener *l, nsec_t time) {
	pause_accepting(l, LISTENER_RESTING, time);
}

/* One connection: it costs as much as some requests, so programs are heard before the next. */
static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct listener *l = userdata;
	int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (peer >= 0) {
		if (!l->accepted(l->userdata, peer) && ++l->n_unwanted >= UNWANTED_MAX) {
			l->n_unwanted = 0;
			listener_rest(l, NSEC_PER_MSEC);
		}
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		stop(l, errno);
	}
}

static void on_retry(evutil_socket_t fd, short what, void *userdata) {
	struct listener *l = userdata;

	l->state = LISTENER_STOPPED;
	listener_resume(l);
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
	l->log.uid = LOG_NO_USER;
	event_assign(&l->readable, base, fd, EV_READ | EV_PERSIST, on_readable, l);
	timer_init(&l->retry, base, on_retry, l);
	*ret = l;
	return 0;
}

struct listener *listener_free(struct listener *l) {
	if (l) {
		event_del(&l->readable);
		timer_stop(&l->retry);
		client_socket_close(l->fd);
		free(l);
	}
	return NULL;
}

void listener_replace(struct listener *l, int fd) {
	struct event_base *base = event_get_base(&l->readable);
	int peer;

	/* Where nobody is accepted yet, or any more, they come again. */
	while (l->state == LISTENER_ACCEPTING &&
	       (peer = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		l->accepted(l->userdata, peer);
	}
	event_del(&l->readable);
	client_socket_close(l->fd);
	l->fd = fd;
	event_assign(&l->readable, base, fd, EV_READ | EV_PERSIST, on_readable, l);
	if (l->state == LISTENER_ACCEPTING) {
		l->state = LISTENER_STOPPED;
		listener_resume(l);
	}
}

void listener_resume(struct listener *l) {
	if (l->state != LISTENER_STOPPED) {
		return;
	}
	if (event_add(&l->readable, NULL) == 0) {
		timer_stop(&l->retry);
		l->state = LISTENER_ACCEPTING;
	} else {
		timer_set(&l->retry, NSEC_PER_SEC); /* no memory now */
	}
}
