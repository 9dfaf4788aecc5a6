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
	enum sim_late late;
	enum sim_power power;
	nsec_t overhead;
	bool sequential;
	unsigned mps_percent;
};

struct param {
	const char *name; /* NULL ends the table */
	const char *expected;
	const char *summary;
	int (*parse)(const char *text, struct params *p); /* 0 or -EINVAL */
	json_t *(*json)(const struct params *p);
};

extern const struct param params_table[];

void params_default(struct params *ret);

/* "name=value". Return: 0; -EINVAL with one line in @error. */
int params_set(struct params *p, const char *text, char *error, size_t error_size);

/* All of them; NULL: no memory. */
json_t *params_json(const struct params *p);
