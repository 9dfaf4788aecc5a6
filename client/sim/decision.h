/*
 * decision.h: one decision of the scheduler about a job, for people and as JSON: what was compared,
 * what was taken and why. The same for `job explain`, of the running daemon, and `simulate
 * --explain`.
 */
#pragma once

#include "client/base/ctl.h"
#include "control.pb-c.h"
#include "daemon/core/explain.h"

struct decision {
	const char *job;	      /* as users name it: "3.17" */
	const char *task;	      /* NULL or "": not known */
	const char *reason;	      /* "start-cheapest" */
	const char *text;	      /* the same in a sentence */
	const char *const *gpu_names; /* by index; NULL: the index is its name */
	const struct explain_entry *entry;
	bool absolute; /* times of the scenario, from 0: releases are worth telling */
};

/* Fills @ret (its number, times, place and tries) from a message of sbeetd. Tries beyond what an
 * entry holds are counted as left out; a SM set that is none is shown as empty. */
void decision_from_message(const Sbeet__Control__Decision *m, struct explain_entry *ret);

/* A paragraph and a table of what was tried. Return: 0 or -ENOMEM. */
int decision_print(const struct ctl *ctl, const struct decision *d, FILE *out);

/* NULL: no memory. */
json_t *decision_json(const struct decision *d);
