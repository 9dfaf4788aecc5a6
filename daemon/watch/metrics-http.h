/*
 * metrics-http.h: serves metrics.h over HTTP, on a UNIX socket or on this machine's own address.
 */
#pragma once

#include <stddef.h>

struct metrics_http;
struct server;

/*
 * Listens there and answers GET /metrics from @server, which outlives it. @where: checked, and not
 * "off". Return: 0, or negative errno with @why.
 */
int metrics_http_new(struct metrics_http **ret, struct server *server, const char *where, char *why,
		     size_t why_size);

/* Takes NULL. Removes the UNIX socket. */
struct metrics_http *metrics_http_free(struct metrics_http *http);
