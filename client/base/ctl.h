/*
 * ctl.h: what every verb of sbeetctl gets, and how it ends.
 *
 * Not a verb and not a parser: see verb.h for the table and options.h for the command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/base/json.h"
#include "client/base/terminal.h"

/* Exit codes, listed in sbeetctl(1). `run` ends with its program's own code instead. */
enum ctl_exit {
	CTL_EXIT_OK = 0,
	CTL_EXIT_FAILED = 1,
	CTL_EXIT_USAGE = 2,
	CTL_EXIT_NOT_RUNNING = 3,
	CTL_EXIT_NO_OBJECT = 4,
	CTL_EXIT_DENIED = 5,
	CTL_EXIT_TIMEOUT = 6,
	CTL_EXIT_NOT_KNOWN = 7,

	/* `run` alone, as shells do */
	CTL_EXIT_NOT_EXECUTABLE = 126,
	CTL_EXIT_NOT_FOUND = 127,
};

/* Options that several verbs share. Strings are borrowed from the command line. */
struct ctl_common {
	bool help;
	bool version;
	bool quiet;
	bool no_legend;
	enum json_mode json;
	enum colour_mode colour;
	const char *columns; /* NULL: the verb's own choice */
	const char *sort;    /* NULL: the verb's own order */
};

struct verb;

struct ctl {
	const struct verb *const *table; /* of verbs, for `help` */
	const struct verb *verb;
	bool bare;	  /* no verb was typed: `verb` is the default one */
	const char *noun; /* only the first word of verbs was typed, with --help; else NULL */
	struct ctl_common common;
	void *options; /* the verb's own structure, options_size bytes; owned by struct command */
	char **args;   /* what is left after verb and options; NULL-terminated, borrowed */
	size_t n_args;
};

/* One line on stderr, "sbeetctl: ...". Control characters in it are made visible. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with "warning: "; says nothing under --quiet. */
void ctl_warn(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
