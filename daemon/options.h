/*
 * options.h: sbeetd's command line.
 */
#pragma once

#include "daemon/inventory.h"
#include "daemon/log.h"

struct options {
	const struct sched_policy *policy;
	unsigned gpu_sms[SCHED_GPUS_MAX];
	size_t n_gpus; /* 0: ask NVML */
	struct inventory_sharing sharing;
	nsec_t linger, drain;
	const char *profile_dir; /* NULL: the default one, which may be missing */
	const char *runtime_dir; /* borrowed from argv; NULL: not given */
	enum log_level log_level;
};

enum options_verdict {
	OPTIONS_RUN,
	OPTIONS_DONE,  /* --help or --version was printed: exit 0 */
	OPTIONS_WRONG, /* what is wrong was printed: exit 2 */
};

enum options_verdict options_parse(int argc, char **argv, struct options *ret);
