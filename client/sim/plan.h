/*
 * plan.h: `sbeetctl plan`: where each task goes and whether it is always in time, by a schedule
 * with worst-case execution times (2.4.2 (3), 3.5.2): see planning.h.
 */
#pragma once

#include "client/base/ctl.h"
#include "client/sim/scenario.h"
#include "client/sim/select.h"

struct plan_options {
	struct select_words policies;
	struct select_words params;
	nsec_t duration;   /* 0: as far as needed */
	const char *table; /* file for the schedule of a hyperperiod; NULL: none */
};

/* Plans with ctl->options and shows the plan. Return: an enum ctl_exit, after an error on stderr;
 * codes of their own tell that something is late, or may be. */
int plan_scenario(const struct ctl *ctl, const struct scenario *s);
