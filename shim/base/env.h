/*
 * env.h: what SBEET_* says. Read once, on the first look.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

struct env {
	bool disable; /* SBEET_DISABLE=1 */
	bool whole;   /* SBEET_WHOLE=1: every job asks for a whole GPU, so no kernel is rewritten */
	bool require; /* SBEET_REQUIRE=1, or how long to wait for a daemon: "2s" */
	nsec_t require_ns;
	nsec_t wait_ns;		     /* SBEET_WAIT: for the next daemon when one has vanished */
	Sbeet__Scope scope;	     /* SBEET_SCOPE */
	const char *socket;	     /* SBEET_SOCKET, NULL: where sbeetd listens by default */
	const char *task;	     /* SBEET_TASK, NULL: none; valid as a name */
	Sbeet__TaskClass task_class; /* SBEET_CLASS */
	nsec_t period_ns, deadline_ns, offset_ns;
	int priority;
	unsigned min_sms, max_sms; /* SBEET_MIN_SMS, SBEET_MAX_SMS; 0: no bound */
};

/* Never NULL. What can't be understood is said once and then as if it had not been set. */
const struct env *env_get(void);
