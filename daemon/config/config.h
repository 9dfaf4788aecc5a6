/*
 * config.h: what sbeetd is told: compiled defaults, sbeetd.conf over them, the command line over
 * that.
 *
 * One object is one reading of the files; it never changes afterwards, but for what a reload keeps
 * of the one before, for tasks that sbeetd itself has saved, and for parameters of policies that
 * were set by a request.
 */
#pragma once

#include "daemon/config/access.h"
#include "daemon/config/options.h"
#include "daemon/config/policies.h"
#include "daemon/config/settings.h"
#include "daemon/config/taskfile.h"

#define CONFIG_FILE  "sbeetd.conf"
#define CONFIG_TASKS "tasks.d"

struct config {
	char directory[PROTO_PATH_MAX]; /* where the files are */
	bool found;			/* there is a sbeetd.conf */
	struct settings settings;
	struct policies policies;
	struct access access;
	struct taskfile *tasks; /* owned; in the order of their names */
	size_t n_tasks;
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

/* All defaults, no file. */
void config_init(struct config *config);
void config_deinit(struct config *config);

/* The text of sbeetd.conf over what is there; @file is for messages. For config_new() and tests. */
int config_read(struct config *config, const char *file, const char *text, size_t n,
		config_warn_fn warn, char *why, size_t why_size);

/* The same for the text of tasks.d/NAME.conf, which adds a task. */
int config_read_task(struct config *config, const char *name, const char *file, const char *text,
		     size_t n, config_warn_fn warn, char *why, size_t why_size);

/* The task's file in place of the one of its name, or as one more. Return: 0, -ENOMEM, or -E2BIG.
 */
int config_put_task(struct config *config, const struct taskfile *task);
