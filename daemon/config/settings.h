/*
 * settings.h: the settings of sbeetd and where each one comes from. settings.def lists them. Knows
 * neither files nor getopt: see config.h and options.h. Pure.
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
#define SETTING(NAME, ...) SETTING_##NAME,
#include "daemon/config/settings.def"
	_SETTING_N,
};

enum setting_source {
	SETTING_DEFAULT,
	SETTING_FILE,
	SETTING_COMMAND_LINE,
	SETTING_REQUEST,
};

typedef char settings_text[SETTINGS_TEXT_MAX];

/* GPUs that do not exist. */
struct settings_gpus {
	unsigned sms[SCHED_GPUS_MAX];
	size_t n; /* 0: ask NVML */
};

/* The members are the settings: policy, gpus, linger and so on. */
struct settings {
#define SETTING(NAME, member, type, ...) type member;
#include "daemon/config/settings.def"

	/* As it was written, and where. */
	struct {
		char text[SETTINGS_TEXT_MAX];
		enum setting_source source;
		unsigned line; /* of sbeetd.conf, if it came from there */
	} origin[_SETTING_N];
};

/* See settings.def. */
struct setting {
	const char *key, *value_name, *fallback, *expected, *help;
	bool live;
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

/* "default", "file", "command line", "request". */
const char *settings_source_name(enum setting_source source);

/* Whether @a and @b say different things about @id. */
bool settings_differ(const struct settings *a, const struct settings *b, enum setting_id id);
