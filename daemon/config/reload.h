/*
 * reload.h: the configuration in force, and how a new one takes its place while sbeetd runs.
 *
 * What can't change while it runs keeps its value; the log and the answer say so.
 */
#pragma once

#include <stddef.h>

#include "daemon/config/config.h"

/* The configuration in force is @settings from now on, after @old. */
typedef void (*reload_apply_fn)(void *userdata, const struct settings *old,
				const struct settings *settings);

struct reload {
	const struct options *options; /* borrowed */
	struct config *config;	       /* owned: in force */
	reload_apply_fn apply;	       /* NULL: nobody is there yet */
	void *userdata;
	unsigned n_pending;	       /* settings that a restart would change */
	bool pending[_SETTING_N];
};

/* Reads the configuration for the start. Return: as config_new(). */
int reload_init(struct reload *reload, const struct options *options, char *why, size_t why_size);
void reload_deinit(struct reload *reload);

/* Reads it again and puts it in force. Return: 0; or as config_new(): the old one stays. The
 * outcome is logged. */
int reload_now(struct reload *reload, char *why, size_t why_size);
