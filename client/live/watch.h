/*
 * watch.h: shows sbeetd's state once, or with --watch again and again: redrawn on a terminal, one
 * below the other elsewhere.
 */
#pragma once

#include "client/base/ctl.h"
#include "client/live/snapshot.h"

/* What is shown of a snapshot. Both return an enum ctl_exit, after an error on stderr. */
struct watch_view {
	int (*json)(const struct ctl *ctl, const struct snapshot *s, json_t **ret);

	/* @rows: of the terminal that the text should fit on, 0 for no limit. @ret_text: the
	 * caller's to free. */
	int (*text)(const struct ctl *ctl, const struct snapshot *s, unsigned rows,
		    char **ret_text);
};

/* For option tables: "2", "0.5" (seconds), "500ms", or NULL for the default, to a nsec_t. */
int option_watch(const char *text, void *target);

#define OPTION_WATCH_EXPECTED "seconds, at least 0.1, such as 2, 0.5 or 500ms"
#define OPTION_WATCH_SUMMARY  "again every SEC seconds (default: 2)"

/* @interval: 0: once. Return: an enum ctl_exit. */
int watch_run(const struct ctl *ctl, nsec_t interval, const struct watch_view *view);
