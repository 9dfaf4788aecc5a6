/*
 * select.h: --policy and --param, which several verbs take and which may be repeated.
 */
#pragma once

#include <stddef.h>

#include "client/sim/params.h"

#define SELECT_MAX	32
#define SELECT_EXPECTED "at most 32 of them"

struct select_words {
	const char *list[SELECT_MAX]; /* borrowed from the command line */
	size_t n;
};

/* For tables of options: adds one more word. */
int select_parse(const char *text, void *target);

/* sbeetd's policy of this name; NULL after an error on stderr. */
const struct sched_policy *select_policy(const char *name);

/* The policies of these names (see simulated.h), each once; "all": all of sbeetd's but `fixed`;
 * none: the default one. Return: an enum ctl_exit, after an error on stderr. */
int select_policies(const struct select_words *words,
		    const struct sched_policy *ret_policies[SELECT_MAX], size_t *ret_n);

/* Defaults, then each NAME=VALUE in turn. Return likewise. */
int select_params(const struct select_words *words, struct params *ret);
