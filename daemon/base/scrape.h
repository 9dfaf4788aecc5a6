/*
 * scrape.h: one HTTP connection that asks for metrics: reads a request, answers it, and closes.
 *
 * No more of HTTP than that takes: GET and HEAD of one page, a connection for each. It never waits
 * for its peer longer than SCRAPE_TIME_MAX and takes no more memory than SCRAPE_HEAD_MAX and the
 * page. Knows neither metrics nor sockets that listen.
 */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <sys/queue.h>

#include "proto/units.h"

/* A scrape has few headers and no body; who is slower than this has gone. */
#define SCRAPE_HEAD_MAX 4096
#define SCRAPE_TIME_MAX (5 * NSEC_PER_SEC)

struct scrape;
TAILQ_HEAD(scrape_list, scrape);

struct scrape_page {
	const char *path, *type;
	/* Writes the page into memory of its own. Return: NULL: no memory. */
	char *(*print)(void *userdata, size_t *ret_n);
	void *userdata;
};

/* Takes over @fd, non-blocking, on success, and puts itself at the end of @list until it is over;
 * @page outlives it. Return: 0 or -ENOMEM. */
int scrape_new(struct scrape_list *list, struct event_base *base, int fd,
	       const struct scrape_page *page);

/* Out of its list, closed. */
void scrape_end(struct scrape *s);

size_t scrape_count(const struct scrape_list *list);
