/*
 * config.h: what sbeetd is told: compiled defaults, sbeetd.conf over them, the command line over
 * that.
 *
 * One object is one reading of the files; it never changes afterwards, but for what a reload keeps
 * of the one before.
 */
#pragma once

#include "daemon/options.h"
#include "daemon/settings.h"

#define CONFIG_FILE "sbeetd.conf"

struct config {
	char directory[PROTO_PATH_MAX]; /* where the files are */
	bool found;			/* there is a sbeetd.conf */
	struct settings settings;
};

/* One line about a key that is not known, with file and line. */
typedef void (*config_warn_fn)(const char *why);

/*
 * Reads the files of $SBEET_CONFIG_DIR, else of the command line's directory, else of systemd's
 * $CONFIGURATION_DIRECTORY, else of /etc/sbeet (root) or $XDG_CONFIG_HOME/sbeet. Files may be
 * missing. Return: 0; -EINVAL: @why says in which file and line, and what was expected; or another
 * negative errno, with @why.
 */
int config_new(struct config **ret, const struct options *options, config_warn_fn warn, char *why,
	       size_t why_size);

/* Takes NULL. */
struct config *config_free(struct config *config);

/* The text of sbeetd.conf over *s; @file is for messages. For config_new() and the fuzzer. */
int config_read(struct settings *s, const char *file, const char *text, size_t n,
		config_warn_fn warn, char *why, size_t why_size);
