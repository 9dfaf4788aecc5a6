/*
 * simulate.h: the two halves of `sbeetctl simulate`: runs of a scenario (simulate-runs.c) and
 * sweeps of random task sets (simulate-sweep.c). Both read ctl->options as struct simulate_options,
 * show what came out, and return an enum ctl_exit, after an error on stderr.
 */
#pragma once

#include "client/base/ctl.h"
#include "client/sim/range.h"
#include "client/sim/scenario.h"
#include "client/sim/select.h"

/* If neither the scenario nor the command line says how long. */
#define SIMULATE_DURATION_DEFAULT (1 * NSEC_PER_SEC)

struct simulate_options {
	struct select_words policies;
	struct select_words params;
	struct select_words without, heavy, notes;
	struct range sweep; /* step 0: not given */
	const char *gantt, *csv, *plot, *reference;
	nsec_t duration;
	uint64_t seed;
	unsigned n_explain; /* decisions to tell of; 0: not asked for */
	unsigned n_tasksets, n_tasks, n_workers, deadline_percent, reference_sms; /* 0: not given */
};

int simulate_parse_range(const char *text, void *target);

int simulate_runs(const struct ctl *ctl, const struct scenario *scenario);
int simulate_sweep(const struct ctl *ctl, const struct scenario *scenario);
