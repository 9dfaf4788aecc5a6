/*
 * scrape.c: see scrape.h.
 */
#include "daemon/base/scrape.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/client-socket.h"
#include "daemon/base/util.h"

#define ANSWER_HEAD_MAX 256

struct scrape {
	TAILQ_ENTRY(scrape) link;
	struct scrape_list *list;	/* borrowed */
	const struct scrape_page *page; /* borrowed */
	int fd;				/* owned */
	struct event ready, late;
	char head[SCRAPE_HEAD_MAX + 1]; /* of the request, so far */
	size_t n;
	char *answer; /* owned; NULL: the request is not complete yet */
	size_t answer_n, sent;
};

void scrape_end(struct scrape *s) {
	TAILQ_REMOVE(s->list, s, link);
	event_del(&s->ready);
	event_del(&s->late);
	client_socket_close(s->fd);
	free(s->answer);
	free(s);
}

static void on_late(evutil_socket_t fd, short what, void *userdata) {
	scrape_end(userdata);
}

/* "GET /metrics HTTP/1.1" and what it comes to. @ret_body: whether the page itself is wanted. */
static int judge(const char *head, const char *path, bool *ret_body) {
	size_t method = strcspn(head, " \r\n"), target;
	const char *p = head + method;
	bool get = method == 3 && strncmp(head, "GET", 3) == 0;

	if (*p != ' ') {
		return 400;
	}
	p++;
	target = strcspn(p, " ?\r\n");
	if (strncmp(p + strcspn(p, " \r\n"), " HTTP/1.", 8) != 0) {
		return 400;
	}
	if (!get && !(method == 4 && strncmp(head, "HEAD", 4) == 0)) {
		return 405;
	}
	*ret_body = get;
	return target == strlen(path) && strncmp(p, path, target) == 0 ? 200 : 404;
}

static const char *reason(int code) {
	switch (code) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	default:
		return "Service Unavailable";
	}
}

/* Return: 0 or -ENOMEM. */
static int make_answer(struct scrape *s, int code, bool with_body) {
	_cleanup_free_ char *body = NULL;
	size_t n = 0, head;

	if (code == 200) {
		body = s->page->print(s->page->userdata, &n);
		code = body ? 200 : 503;
	}
	s->answer = malloc(ANSWER_HEAD_MAX + n);
	if (!s->answer) {
		return -ENOMEM;
	}
	head = (size_t)snprintf(s->answer, ANSWER_HEAD_MAX,
				"HTTP/1.1 %d %s\r\n%s%s%sContent-Length: %zu\r\n"
				"Connection: close\r\n\r\n",
				code, reason(code), body ? "Content-Type: " : "",
				body ? s->page->type : "", body ? "\r\n" : "", n);
	if (body && with_body) {
		memcpy(s->answer + head, body, n);
		head += n;
	}
	s->answer_n = head;
	return 0;
}

static void send_answer(struct scrape *s) {
	ssize_t n;

	while (s->sent < s->answer_n) {
		n = send(s->fd, s->answer + s->sent, s->answer_n - s->sent, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		if (n < 0) {
			scrape_end(s);
			return;
		}
		s->sent += (size_t)n;
	}
	/* What is closed with something unread may take the answer with it. */
	shutdown(s->fd, SHUT_WR);
}

static void on_ready(evutil_socket_t fd, short what, void *userdata);

/* It waits for this from now on. Return: 0 or -ENOMEM. */
static int wait_for(struct scrape *s, short what) {
	struct event_base *base = event_get_base(&s->ready);

	event_del(&s->ready);
	event_assign(&s->ready, base, s->fd, (short)(what | EV_PERSIST), on_ready, s);
	return event_add(&s->ready, NULL) < 0 ? -ENOMEM : 0;
}

/* The head is complete, or too long. */
static void answer(struct scrape *s) {
	bool with_body = false;
	int code = strstr(s->head, "\r\n\r\n") ? judge(s->head, s->page->path, &with_body) : 431;

	if (make_answer(s, code, with_body) < 0 || wait_for(s, EV_WRITE) < 0) {
		scrape_end(s);
	}
}

static void receive(struct scrape *s) {
	char rest[256];
	ssize_t n;

	if (s->answer) { /* all is said: until the peer closes */
		n = client_socket_read(s->fd, rest, sizeof(rest));
	} else {
		n = client_socket_read(s->fd, s->head + s->n, SCRAPE_HEAD_MAX - s->n);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		scrape_end(s);
		return;
	}
	if (!s->answer) {
		s->n += (size_t)n;
		s->head[s->n] = '\0';
		if (strstr(s->head, "\r\n\r\n") || s->n == SCRAPE_HEAD_MAX) {
			answer(s);
		}
	}
}

static void on_ready(evutil_socket_t fd, short what, void *userdata) {
	struct scrape *s = userdata;

	if (what & EV_READ) {
		receive(s);
		return;
	}
	if (s->sent < s->answer_n) {
		send_answer(s);
	} else if (wait_for(s, EV_READ) < 0) {
		scrape_end(s);
	}
}

int scrape_new(struct scrape_list *list, struct event_base *base, int fd,
	       const struct scrape_page *page) {
	struct timeval late = nsec_timeval(SCRAPE_TIME_MAX);
	struct scrape *s = calloc(1, sizeof(*s));

	if (!s) {
		return -ENOMEM;
	}
	s->list = list;
	s->page = page;
	s->fd = fd;
	event_assign(&s->ready, base, fd, EV_READ | EV_PERSIST, on_ready, s);
	event_assign(&s->late, base, -1, EV_TIMEOUT, on_late, s);
	if (event_add(&s->ready, NULL) < 0 || event_add(&s->late, &late) < 0) {
		event_del(&s->ready);
		free(s);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(list, s, link);
	return 0;
}

size_t scrape_count(const struct scrape_list *list) {
	const struct scrape *s;
	size_t n = 0;

	TAILQ_FOREACH(s, list, link) {
		n++;
	}
	return n;
}
