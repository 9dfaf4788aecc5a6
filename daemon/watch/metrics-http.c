/*
 * metrics-http.c: see metrics-http.h.
 *
 * Not on libevent's evhttp, which calls a connection that it had no memory for through a wild
 * pointer, spins when there is no descriptor left, and takes any number of connections.
 */
#include "daemon/watch/metrics-http.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/listener.h"
#include "daemon/base/loopback.h"
#include "daemon/base/pace.h"
#include "daemon/base/scrape.h"
#include "daemon/base/util.h"
#include "daemon/watch/metrics.h"

/* At a time: one asks every few seconds. */
#define SCRAPES_MAX 16

/* A page is made in one piece: some at once, but in the long run no more than a quarter of a
 * hundredth of our time. */
#define PAGE_SHARE 400
#define PAGE_BURST (400 * NSEC_PER_MSEC)

struct metrics_http {
	struct event_base *base; /* borrowed, outlives us */
	clock_fn now;
	const struct metrics *metrics; /* borrowed, outlive us */
	struct listener *listener;     /* owned */
	struct scrape_page page;
	struct scrape_list scrapes; /* owned */
	struct pace pace;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* made by us; "": none */
};

static char *print(const struct metrics *metrics, nsec_t now, size_t *ret_n) {
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out) {
		return NULL;
	}
	metrics_print(metrics, now, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	*ret_n = n;
	return text;
}

static char *print_paced(void *userdata, size_t *ret_n) {
	struct metrics_http *http = userdata;
	nsec_t began = http->now(), now, wait;
	char *text = print(http->metrics, began, ret_n);

	now = http->now();
	wait = pace_add(&http->pace, PAGE_SHARE * (now - began), PAGE_BURST, now);
	if (wait > 0) {
		listener_rest(http->listener, wait);
	}
	return text;
}

/* The one that has had the most time gives way. */
static bool on_accepted(void *userdata, int fd) {
	struct metrics_http *http = userdata;

	if (scrape_count(&http->scrapes) == SCRAPES_MAX) {
		scrape_end(TAILQ_FIRST(&http->scrapes));
	}
	if (scrape_new(&http->scrapes, http->base, fd, &http->page) < 0) {
		close(fd);
	}
	return true;
}

/* Return: the socket, or -1 with errno. */
static int listen_at(const union loopback_address *address, socklen_t size) {
	_cleanup_close_ int fd =
		socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0) {
		return -1;
	}
	if (address->any.sa_family == AF_UNIX) {
		struct stat st;

		/* Left by one that was killed; anything else there is not ours to remove. */
		if (lstat(address->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode)) {
			unlink(address->un.sun_path);
		}
	} else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0) {
		return -1;
	}
	if (bind(fd, &address->any, size) < 0 ||
	    (address->any.sa_family == AF_UNIX && chmod(address->un.sun_path, 0660) < 0) ||
	    listen(fd, 16) < 0) {
		return -1;
	}
	return TAKE_FD(fd);
}

/* Takes over @passed. Return: 0 or negative errno. */
static int serve(struct metrics_http *http, int passed) {
	_cleanup_close_ int fd = passed;
	int r = listener_new(&http->listener, http->base, fd, on_accepted, http);

	if (r < 0) {
		return r;
	}
	TAKE_FD(fd);
	listener_resume(http->listener);
	return 0;
}

static int start(struct metrics_http *http, const union loopback_address *address, socklen_t size) {
	int fd = listen_at(address, size);

	if (fd < 0) {
		return -errno;
	}
	if (address->any.sa_family == AF_UNIX) {
		snprintf(http->path, sizeof(http->path), "%s", address->un.sun_path);
	}
	return serve(http, fd);
}

/* Listens nowhere yet. NULL: no memory. */
static struct metrics_http *make(struct event_base *base, clock_fn now,
				 const struct metrics *metrics) {
	struct metrics_http *http = calloc(1, sizeof(*http));

	if (!http) {
		return NULL;
	}
	http->base = base;
	http->now = now;
	http->metrics = metrics;
	http->page = (struct scrape_page){
		.path = "/metrics",
		.type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
		.print = print_paced,
		.userdata = http,
	};
	TAILQ_INIT(&http->scrapes);
	return http;
}

int metrics_http_new_passed(struct metrics_http **ret, struct event_base *base, clock_fn now,
			    const struct metrics *metrics, int passed) {
	_cleanup_close_ int fd = passed;
	struct metrics_http *http = make(base, now, metrics);
	int r = http ? serve(http, TAKE_FD(fd)) : -ENOMEM;

	if (r < 0) {
		metrics_http_free(http);
		return r;
	}
	*ret = http;
	return 0;
}

int metrics_http_new(struct metrics_http **ret, struct event_base *base, clock_fn now,
		     const struct metrics *metrics, const char *where, char *why, size_t why_size) {
	struct metrics_http *http = make(base, now, metrics);
	union loopback_address address;
	socklen_t size = 0;
	int r;

	if (!http) {
		snprintf(why, why_size, "no memory");
		return -ENOMEM;
	}
	r = loopback_parse(where, &address, &size);
	if (r == 0) {
		r = start(http, &address, size);
	}
	if (r < 0) {
		snprintf(why, why_size, "can't serve metrics at '%s': %s", where, strerror(-r));
		metrics_http_free(http);
		return r;
	}
	*ret = http;
	return 0;
}

struct metrics_http *metrics_http_free(struct metrics_http *http) {
	if (http) {
		while (!TAILQ_EMPTY(&http->scrapes)) {
			scrape_end(TAILQ_FIRST(&http->scrapes));
		}
		listener_free(http->listener);
		if (*http->path) {
			unlink(http->path);
		}
		free(http);
	}
	return NULL;
}
