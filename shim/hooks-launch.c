/*
 * hooks-launch.c: every kernel launch function, brought to the one form of launch.h.
 */
#include "shim/base/log.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "shim/hooks.h"
#include "shim/job.h"
#include "shim/launch.h"
#include "shim/real.h"
#include "shim/wait.h"

#define WHOLE SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE
#define GREEN SBEET__ENFORCEMENT__ENFORCEMENT_GREEN
#define NONE  SBEET__ENFORCEMENT__ENFORCEMENT_NONE

/* Kernels that say only now how much of the GPU they need: clusters, grids that are launched whole.
 */
static bool is_too_small(CUresult rc) {
	return rc == CUDA_ERROR_INVALID_CLUSTER_SIZE ||
	       rc == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static const char *name_of(const struct op *op) {
	return op->kernel ? kernel_name(op->kernel) : "?";
}

static void say_unconfined(const struct op *op, const char *why) {
	log_once(LOG_LEVEL_WARN,
		 "Kernel '%s' could not be confined to its green context and ran on the whole GPU: "
		 "%s",
		 name_of(op), why);
}

/*
 * @ret_again: nothing was launched, for the job's part of the GPU is too small: to be tried in a
 * job that has all of it. Not while the program captures, when the end of a job can't be seen: then
 * the kernel runs where it can.
 */
static CUresult launch_green(struct op *op, const struct partition *p, Sbeet__Enforcement *ret_how,
			     bool *ret_again) {
	CUresult rc = enforce_launch_at(op->launch, op->place.at);
	bool inside = place_is_in(&op->place, p);

	*ret_how = inside ? GREEN : NONE;
	if (inside && is_too_small(rc)) {
		*ret_again = !wait_captures();
		if (*ret_again) {
			log_once(LOG_LEVEL_INFO,
				 "Kernel '%s' does not fit into %u SMs, its jobs wait for a whole "
				 "GPU",
				 name_of(op), smset_count(&job_grant(op)->sms));
			return rc;
		}
		job_unconfine(op);
		rc = enforce_launch_at(op->launch, op->place.at);
		*ret_how = NONE;
	}
	if (rc == CUDA_SUCCESS && *ret_how == NONE) {
		say_unconfined(op, inside ? "it does not fit, and a stream is being captured"
					  : "its stream could not be moved there");
	}
	return rc;
}

static CUresult launch_in_job(struct op *op, bool *ret_again) {
	const struct enforce_grant *grant = job_grant(op);
	Sbeet__Enforcement how = WHOLE;
	CUresult rc;

	if (grant->enforcement == WHOLE) {
		rc = enforce_launch_at(op->launch, op->place.at);
	} else if (op->unconfined) {
		how = NONE;
		rc = enforce_launch_at(op->launch, op->place.at);
	} else if (grant->enforcement == GREEN) {
		rc = launch_green(op, grant->partition, &how, ret_again);
	} else {
		rc = enforce_launch(grant, &op->kernel_use, op->launch, &how);
		if (how == NONE) {
			log_once(LOG_LEVEL_WARN,
				 "Kernel '%s' could not be confined to its SMs and "
				 "ran on the whole GPU",
				 kernel_name(op->kernel));
		}
	}
	job_end(op, rc, how);
	return rc;
}

static CUresult launch_op(struct op *op, bool *ret_again) {
	CUresult rc = CUDA_SUCCESS;

	switch (job_begin(op, &rc)) {
	case JOB_FAIL:
		return rc;
	case JOB_BYPASS:
		rc = enforce_launch_at(op->launch, op->place.at);
		job_bypassed(op);
		return rc;
	case JOB_GO:
		break;
	}
	return launch_in_job(op, ret_again);
}

static CUresult launch(const struct launch *l) {
	struct op op = {
		.kind = SBEET__OP_KIND__OP_KIND_LAUNCH,
		.traits = l->per_thread_default ? OP_PER_THREAD : 0,
		.stream = l->stream,
		.launch = l,
		.kernel = kernel_find(l->function),
	};
	bool again = false;
	CUresult rc = launch_op(&op, &again);

	if (again) {
		op.traits |= OP_WHOLE;
		rc = launch_op(&op, &again);
	}
	return rc;
}

static bool is_cooperative(const CUlaunchConfig *config) {
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
		    config->attrs[i].value.cooperative) {
			return true;
		}
	}
	return false;
}

static struct launch from_config(const CUlaunchConfig *config, CUfunction f, void **params,
				 void **extra, bool per_thread) {
	return (struct launch){
		.function = f,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared_bytes = config->sharedMemBytes,
		.stream = config->hStream,
		.per_thread_default = per_thread,
		.params = params,
		.extra = extra,
		.config = config,
		.cooperative = is_cooperative(config),
	};
}

/* Of the functions that take everything as arguments. */
static struct launch from_arguments(CUfunction f, const unsigned grid[3], const unsigned block[3],
				    unsigned shared, CUstream stream, void **params,
				    bool per_thread) {
	return (struct launch){
		.function = f,
		.grid = {grid[0], grid[1], grid[2]},
		.block = {block[0], block[1], block[2]},
		.shared_bytes = shared,
		.stream = stream,
		.per_thread_default = per_thread,
		.params = params,
	};
}

#define DIM(x, y, z) ((const unsigned[]){x, y, z})

CUresult on_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			   unsigned by, unsigned bz, unsigned shared, CUstream stream,
			   void **params, void **extra) {
	struct launch l =
		from_arguments(f, DIM(gx, gy, gz), DIM(bx, by, bz), shared, stream, params, false);

	l.extra = extra;
	return launch(&l);
}

CUresult on_cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				unsigned by, unsigned bz, unsigned shared, CUstream stream,
				void **params, void **extra) {
	struct launch l =
		from_arguments(f, DIM(gx, gy, gz), DIM(bx, by, bz), shared, stream, params, true);

	l.extra = extra;
	return launch(&l);
}

CUresult on_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
			     void **extra) {
	if (!config) {
		return real_get()->cuLaunchKernelEx(config, f, params, extra);
	}
	const struct launch l = from_config(config, f, params, extra, false);

	return launch(&l);
}

CUresult on_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
				  void **extra) {
	if (!config) {
		return real_get()->cuLaunchKernelEx_ptsz(config, f, params, extra);
	}
	const struct launch l = from_config(config, f, params, extra, true);

	return launch(&l);
}

CUresult on_cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
				      unsigned bx, unsigned by, unsigned bz, unsigned shared,
				      CUstream stream, void **params) {
	struct launch l =
		from_arguments(f, DIM(gx, gy, gz), DIM(bx, by, bz), shared, stream, params, false);

	l.cooperative = true;
	return launch(&l);
}

CUresult on_cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
					   unsigned bx, unsigned by, unsigned bz, unsigned shared,
					   CUstream stream, void **params) {
	struct launch l =
		from_arguments(f, DIM(gx, gy, gz), DIM(bx, by, bz), shared, stream, params, true);

	l.cooperative = true;
	return launch(&l);
}
