/*
 * policies.h: what sbeetd tells each policy, and where each value comes from: the sections
 * [policy NAME] of sbeetd.conf, and requests of `sbeetctl policy`. The parameters themselves are in
 * daemon/core/params.h. Pure.
 */
#pragma once

#include "daemon/config/settings.h"
#include "daemon/core/params.h"

/* As many as there can be. */
#define POLICIES_MAX 32

#define POLICIES_E_KEY 1 /* the policy has no such parameter, or for simulations only */

struct policy_values {
	const struct sched_policy *policy;
	struct sched_params params; /* in force while the policy is */
	struct sched_params file;   /* without what requests have set */
	struct {
		enum setting_source source;
		unsigned line; /* of sbeetd.conf */
	} origin[_SCHED_PARAM_N];
};

/* Of all policies that serve live. */
struct policies {
	struct policy_values list[POLICIES_MAX];
	size_t n;
};

/* All defaults. */
void policies_init(struct policies *p);

/* NULL: there is none of this name that serves live. */
struct policy_values *policies_find(struct policies *p, const char *name);

/*
 * Sets one parameter, from SETTING_FILE or SETTING_REQUEST. Return: 0; POLICIES_E_KEY; -EINVAL: the
 * parameter has no such value. @why then says what was expected; *v is untouched.
 */
int policies_set(struct policy_values *v, const char *key, const char *text,
		 enum setting_source source, unsigned line, char *why, size_t size);

/* After the file was read again: what requests have set stays, unless the file says something else
 * about it than before. */
void policies_keep(struct policies *p, const struct policies *old);
