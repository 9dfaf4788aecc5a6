/*
 * env.h: what SBEET_* says, and one variable of the driver's. Read once, on the first look.
 */
#pragma once

#include <stdbool.h>

#include "proto/range-name.h"
#include "proto/taskvars.h"
#include "proto/units.h"

struct env {
	bool disable; /* SBEET_DISABLE=1 */
	bool whole;   /* SBEET_WHOLE=1: every job asks for a whole GPU, so no kernel is rewritten */
	bool force_jit; /* CUDA_FORCE_PTX_JIT=1, for the driver: it runs no machine code, but PTX */
	bool any_gpu; /* SBEET_ANY_GPU=1: sbeetd may choose the GPU that the program sees */
	bool measure; /* SBEET_MEASURE=1: kernels are told apart from the copies behind them */
	bool require; /* SBEET_REQUIRE=1, or how long to wait for a daemon: "2s" */
	nsec_t require_ns;
	nsec_t wait_ns;	       /* SBEET_WAIT: for the next daemon when one has vanished */
	nsec_t timeout_ns;     /* SBEET_TIMEOUT: for an answer of the daemon; above 0 */
	const char *socket;    /* SBEET_SOCKET, NULL: where sbeetd listens by default */
	const char *run;       /* SBEET_RUN: of `sbeetctl run --summary`; NULL: none */
	struct task_spec task; /* SBEET_TASK, SBEET_PERIOD, ... */
	const struct range_name *mark; /* SBEET_MARK: the NVTX ranges that are jobs; NULL: none */
	const char *mark_text;	       /* as it was written */
};

/* Never NULL. What can't be understood is said once and then as if it had not been set. */
const struct env *env_get(void);
