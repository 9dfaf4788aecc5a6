/*
 * settings.h: every setting of sbeetd, one row each: its key, its form, its default, its help.
 *
 * The rows drive the reader of sbeetd.conf, the command line, --help, `sbeetctl config` and the
 * test that sbeetd.conf(5) knows every key. Knows neither files nor getopt: see config.h and
 * options.h. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/log.h"
#include "daemon/gpu/inventory.h"
#include "daemon/mps/mps.h"
#include "proto/limits.h"

#define SETTINGS_TEXT_MAX 256

enum setting_id {
	SETTING_DRAIN,
	SETTING_GPUS,
	SETTING_LEARN,
	SETTING_LINGER,
	SETTING_LOG_LEVEL,
	SETTING_MAX_HOLD,
	SETTING_METRICS,
	SETTING_MPS,
	SETTING_POLICY,
	SETTING_PROFILE_DIR,
	SETTING_RUNTIME_DIR,
	SETTING_SHARING,
	SETTING_SPIN,
	SETTING_ADMINS,
	_SETTING_N,
};

enum setting_source {
	SETTING_DEFAULT,
	SETTING_FILE,
	SETTING_COMMAND_LINE,
};

struct settings {
	const struct sched_policy *policy;
	unsigned gpu_sms[SCHED_GPUS_MAX];
	size_t n_gpus; /* 0: ask NVML */
	struct inventory_sharing sharing;
	enum mps_mode mps;
	nsec_t linger, drain, max_hold, spin;
	char profile_dir[SETTINGS_TEXT_MAX]; /* "": the default one, which may be missing */
	char runtime_dir[SETTINGS_TEXT_MAX]; /* "": see runtime.h */
	char metrics[SETTINGS_TEXT_MAX];     /* "off", or as metrics_http_new() wants it */
	char admins[SETTINGS_TEXT_MAX];	     /* users and @groups, separated by spaces */
	bool learn;
	enum log_level log_level;

	/* As it was written, and where. */
	struct {
		char text[SETTINGS_TEXT_MAX];
		enum setting_source source;
		unsigned line; /* of sbeetd.conf, if it came from there */
	} origin[_SETTING_N];
};

struct setting {
	const char *key;	/* in section [sbeetd]; the option's name too */
	const char *value_name; /* of the option; NULL: only the file has it */
	const char *fallback;	/* compiled default, in the form that a user would write */
	const char *expected;	/* "a time with a unit, such as 100us" */
	const char *help;	/* lines of --help, separated by '\n' */
	bool live;		/* a reload changes it; else it takes a restart */
	int (*parse)(const char *text, void *target);
	size_t offset; /* of the target in struct settings */
};

extern const struct setting settings_table[_SETTING_N];

/* All defaults. */
void settings_init(struct settings *s);

/* Return: 0, or -EINVAL: @text is not what the row expects; *s is untouched then. */
int settings_set(struct settings *s, enum setting_id id, const char *text,
		 enum setting_source source, unsigned line);

/* "linger '5': expected a time with a unit, such as 100us", for a text that was refused. */
void settings_complain(enum setting_id id, const char *text, char *why, size_t size);

/* The setting of this key, or -1. */
int settings_find(const char *key);

/* "default", "file", "command line". */
const char *settings_source_name(enum setting_source source);

/* Whether @a and @b say different things about @id. */
bool settings_differ(const struct settings *a, const struct settings *b, enum setting_id id);
