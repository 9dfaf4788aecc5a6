/*
 * verb.h: the one table of what sbeetctl can do.
 *
 * A verb is a struct verb, which drives parsing, --help and completion; verbs.def lists them.
 */
#pragma once

#include <stddef.h>

struct ctl;
struct option;

enum verb_flags {
	VERB_READS = 1 << 0,   /* takes --json, --no-legend */
	VERB_TABLE = 1 << 1,   /* takes --columns, --sort */
	VERB_COMMAND = 1 << 2, /* arguments are another program's command line: "run" */
};

struct verb {
	const char *name; /* one word, or noun and verb: "task list" */
	const char *args; /* for the help text: "PROGRAM|FILE" */
	const char *summary;
	unsigned flags;
	size_t min_args, max_args;
	const struct option *options; /* the verb's own; NULL: none */
	size_t options_size;	      /* of the structure that they fill, which starts all zero */
	const char *help;	      /* further text of --help, or NULL */
	int (*function)(const struct ctl *ctl); /* returns an enum ctl_exit */
};

#define VERB(file, name) extern const struct verb verb_##name;
#include "client/verbs.def"

/* All verbs of sbeetctl, NULL at the end. The first one is what a bare `sbeetctl` does. */
extern const struct verb *const verbs[];
