/*
 * metrics-http.h: serves metrics.h over HTTP, on a UNIX socket or on this machine's own address.
 */
#pragma once

#include <stddef.h>

#include "proto/units.h"

struct event_base;
struct metrics;
struct metrics_http;

/*
 * Listens there and answers GET /metrics with @metrics, which outlive it. @where: checked, and not
 * "off". Return: 0, or negative errno with @why.
 */
int metrics_http_new(struct metrics_http **ret, struct event_base *base, clock_fn now,
		     const struct metrics *metrics, const char *where, char *why, size_t why_size);

/* The same at the listening stream socket @passed, which it takes over, also if it fails. Return: 0
 * or negative errno. */
int metrics_http_new_passed(struct metrics_http **ret, struct event_base *base, clock_fn now,
			    const struct metrics *metrics, int passed);

/* Takes NULL. Removes the UNIX socket that it made. */
struct metrics_http *metrics_http_free(struct metrics_http *http);
