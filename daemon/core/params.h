/*
 * params.h: the parameters of policies by name, as `sbeetctl policy NAME KEY=VALUE`, a section
 * [policy NAME] of sbeetd.conf and `--param KEY=VALUE` set them. The table here is the one place
 * where they are declared; which of them a policy reads stands in its struct sched_policy. Pure.
 */
#pragma once

#include "daemon/core/state.h"

/* The longest text of a value, with its terminator. */
#define SCHED_PARAM_TEXT_MAX 32

enum sched_param_kind {
	SCHED_PARAM_WORD,   /* one of @words; an enum */
	SCHED_PARAM_SWITCH, /* "off" or "on"; a bool */
	SCHED_PARAM_COUNT,  /* from 0 to @most; an unsigned */
	SCHED_PARAM_TIME,   /* 0 or a time with its unit, up to PROFILE_TIME_MAX; an nsec_t */
};

struct sched_param_row {
	const char *name;
	const char *expected; /* follows "expected" where a value is wrong */
	const char *summary;  /* what it does, one line */
	enum sched_param_kind kind;
	bool simulated;		  /* only simulations read it */
	const char *const *words; /* of a word, by the enum's values; NULL ends them */
	unsigned most;		  /* of a count */
	size_t offset;		  /* in struct sched_params */
};

extern const struct sched_param_row sched_param_rows[_SCHED_PARAM_N];

/* The parameter of this name, or -1. */
int sched_param_find(const char *name);

/* Return: 0, or -EINVAL: @text is not what the row expects; *p is untouched then. */
int sched_param_set(struct sched_params *p, enum sched_param_id which, const char *text);

/* The value as sched_param_set() takes it. */
void sched_param_print(const struct sched_params *p, enum sched_param_id which,
		       char ret[static SCHED_PARAM_TEXT_MAX]);

/* The value as a number: of a word its place among them, of a switch 0 or 1, of a time ns. */
uint64_t sched_param_number(const struct sched_params *p, enum sched_param_id which);

/* Whether @policy reads it, and if so, whether sbeetd can set it, too. */
bool sched_param_is_read(const struct sched_policy *policy, enum sched_param_id which);
bool sched_param_is_live(const struct sched_policy *policy, enum sched_param_id which);

/* Whether all of them have the same values. */
bool sched_params_equal(const struct sched_params *a, const struct sched_params *b);

/* Those of a simulation; of sbeetd: a program waits for its grant, however late it is, so no job is
 * skipped. */
void sched_params_default(struct sched_params *ret);
void sched_params_live(struct sched_params *ret);
