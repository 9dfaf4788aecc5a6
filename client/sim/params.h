/*
 * params.h: the parameters of policies and of the simulator by name, as `--param NAME=VALUE`.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "daemon/sim/sim.h"

/* What can be set. */
struct params {
	struct sched_params sched;
	enum sim_exec exec;
	unsigned exec_share_permille;
	nsec_t overhead;
	bool sequential;
	unsigned mps_percent;
};

struct param {
	const char *name;
	const char *expected;
	const char *summary;
	bool simulated; /* sbeetd has no such parameter */
};

/* The parameter number @index: first those of policies, as in enum sched_param_id, then those of the
 * simulator. Return: whether there is one. */
bool params_describe(unsigned index, struct param *ret);

void params_default(struct params *ret);

/* "name=value". Return: 0; -EINVAL with one line in @error. */
int params_set(struct params *p, const char *text, char *error, size_t error_size);

/* All of them; NULL: no memory. */
json_t *params_json(const struct params *p);
