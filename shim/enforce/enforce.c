/*
 * enforce.c: see enforce.h. Everything on the launch path here reads tables, fills structures on
 * the stack and calls the driver; it takes no lock and allocates nothing, but for a stream's first
 * confined launch where no spare control block was left, and a set's first in another context.
 */
#include "shim/base/hot.h"
#include "shim/real.h"

#include "shim/enforce/enforce.h"

#include <errno.h>

#include "proto/enforcement.h"
#include "shim/enforce/context.h"
#include "shim/enforce/green.h"
#include "shim/enforce/image.h"
#include "shim/enforce/kernel.h"
#include "shim/enforce/plan.h"
#include "shim/enforce/twin.h"

static CUresult launch_config(const struct launch *l, CUstream at) {
	const struct real *real = real_get();
	CUlaunchConfig config = *l->config;

	config.hStream = at;
	return (l->per_thread_default ? real->cuLaunchKernelEx_ptsz : real->cuLaunchKernelEx)(
		at == l->stream ? l->config : &config, l->function, l->params, l->extra);
}

HOT_CODE CUresult enforce_launch_at(const struct launch *l, CUstream at) {
	const struct real *real = real_get();
	bool ptsz = l->per_thread_default;

	if (!real) {
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (l->config) {
		return launch_config(l, at);
	}
	if (l->cooperative) {
		return (ptsz ? real->cuLaunchCooperativeKernel_ptsz
			     : real->cuLaunchCooperativeKernel)(
			l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
			l->block[2], l->shared_bytes, at, l->params);
	}
	return (ptsz ? real->cuLaunchKernel_ptsz : real->cuLaunchKernel)(
		l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
		l->block[2], l->shared_bytes, at, l->params, l->extra);
}

uint32_t enforce_mask(void) {
	const struct real *real = real_get();
	uint32_t mask = ENFORCEMENT_BIT(WHOLE) | ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN);

	if (real && real->cuGreenCtxCreate) {
		mask |= ENFORCEMENT_BIT(GREEN);
	}
	return mask;
}

CUresult enforce_launch_original(const struct launch *l) {
	return enforce_launch_at(l, l->stream);
}

static bool grant_confines(const struct enforce_grant *g, unsigned n_sms) {
	return enforcement_has(g->enforcement, ENFORCEMENT_BY_TWIN) && n_sms < g->gpu_sms;
}

/* The SM set that the grant means on the GPU: itself, or as many SMs from 0 on. */
static struct smset grant_set(const struct enforce_grant *g, unsigned n_sms) {
	return enforcement_has(g->enforcement, ENFORCEMENT_EXACT) ? g->sms : smset_range(0, n_sms);
}

/* Launches @n_workers blocks of the twin, otherwise like @l. */
static CUresult launch_twin(const struct twin *t, const struct launch *l, unsigned n_workers,
			    void **params) {
	const struct real *real = real_get();
	CUlaunchAttribute attributes[PLAN_ATTRIBUTES_MAX];
	CUlaunchConfig config;

	if (!l->config) {
		return real->cuLaunchKernel(t->handle, n_workers, 1, 1, l->block[0], l->block[1],
					    l->block[2], l->shared_bytes, context_stream(l), params,
					    NULL);
	}
	config = *l->config;
	config.gridDimX = n_workers;
	config.gridDimY = 1;
	config.gridDimZ = 1;
	config.hStream = context_stream(l);
	config.attrs = attributes;
	config.numAttrs = plan_attributes(l->config, attributes);
	return real->cuLaunchKernelEx(&config, t->handle, params, NULL);
}

/* Writes the SM set of @g to the memory of @c, if it is not there. An address of 0: no memory. */
static struct enforce_set make_set(const struct enforce_grant *g, struct context *c) {
	struct enforce_set ret = {.n_sms = smset_count(&g->sms)};
	struct smset sms = grant_set(g, ret.n_sms);

	if (context_prepare_set(c, &sms) == 0) {
		ret.context = context_serial(c);
		ret.address = context_find_set(c, &sms);
	}
	return ret;
}

/* Return: the driver's result; CUDA_ERROR_NOT_SUPPORTED if the launch can't be a twin's. */
static CUresult launch_confined(const struct enforce_grant *g, const struct enforce_set *set,
				const struct kernel_use *use, const struct launch *l) {
	void *params[PLAN_PARAMS_MAX + 1];
	struct context *c = use->context;
	struct control *control;
	struct twin_arg arg;
	struct plan plan;
	CUresult rc;

	if (!set->address || !set->n_sms ||
	    plan_make(&plan, l->grid, set->n_sms, g->gpu_sms, use->occupancy,
		      context_workers_max(c)) < 0) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	control = context_find_control(c, l);
	if (!control) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	arg = (struct twin_arg){
		.ctl = control->address,
		.set = set->address,
		.n_blocks = plan.n_blocks,
		.grid_x = l->grid[0],
		.grid_y = l->grid[1],
		.grid_z = l->grid[2],
		.n_workers = plan.n_workers,
	};
	plan_params(use->twin->info, l, &arg, params);
	rc = launch_twin(use->twin, l, plan.n_workers, params);
	if (rc == CUDA_SUCCESS) {
		atomic_fetch_add_explicit(&control->launches_begun, 1, memory_order_relaxed);
	}
	return rc;
}

/* The set is the whole GPU, or what holds it is not of our making. */
static CUresult launch_unconfined(const struct enforce_grant *grant, const struct launch *l,
				  Sbeet__Enforcement *ret_how) {
	*ret_how = smset_count(&grant->sms) >= grant->gpu_sms
			   ? SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE
			   : SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	return enforce_launch_original(l);
}

CUresult enforce_launch(const struct enforce_grant *grant, const struct kernel_use *use,
			const struct launch *l, Sbeet__Enforcement *ret_how) {
	const struct enforce_set *set = &grant->set;
	struct enforce_set elsewhere;
	CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

	if (!set->context && !grant_confines(grant, smset_count(&grant->sms))) {
		return launch_unconfined(grant, l, ret_how);
	}
	if (use->twin) {
		/* Other contexts of the same GPU are met here. */
		if (set->context != context_serial(use->context)) {
			elsewhere = make_set(grant, use->context);
			set = &elsewhere;
		}
		rc = launch_confined(grant, set, use, l);
	}
	if (rc == CUDA_SUCCESS) {
		*ret_how = grant->enforcement;
		return rc;
	}
	/* Whatever kept the twin from being launched: the program gets what it would get without
	 * us, its errors included. */
	rc = enforce_launch_original(l);
	*ret_how = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	return rc;
}

/* Runs with @context current. */
static int prepare(const struct enforce_grant *grant, struct enforce_set *ret) {
	struct context *c = context_current();

	if (!c) {
		return -ENOMEM;
	}
	*ret = make_set(grant, c);
	return ret->address && context_prepare_control(c) == 0 ? 0 : -ENOMEM;
}

/* Makes @context current if it is not. Return: 1 if it has to be popped, 0, or -EIO. */
static int context_enter(const struct real *real, CUcontext context) {
	CUcontext current = NULL;

	if (real->cuCtxGetCurrent(&current) != CUDA_SUCCESS) {
		return -EIO;
	}
	if (current == context) {
		return 0;
	}
	return real->cuCtxPushCurrent_v2(context) == CUDA_SUCCESS ? 1 : -EIO;
}

static void context_exit(const struct real *real, int entered) {
	CUcontext popped;

	if (entered > 0) {
		real->cuCtxPopCurrent_v2(&popped);
	}
}

unsigned enforce_step(CUcontext context) {
	const struct green *g = green_get(context);

	return g ? green_step(g) : 0;
}

unsigned enforce_make_ahead(CUcontext context, const uint8_t *uuid) {
	struct green *g = green_get(context);

	return g ? green_make_ahead(g, uuid) : 0;
}

struct partition *enforce_partition(CUcontext context, const struct enforce_grant *grant) {
	struct smset set = grant->level > 0 ? (struct smset){0} : grant->sms;
	struct green *g = green_get(context);

	return g && green_make(g, &set, grant->level, grant->gpu_sms) == 0
		       ? green_find(g, &set, grant->level)
		       : NULL;
}

int enforce_prepare(CUcontext context, const struct enforce_grant *grant, struct enforce_set *ret) {
	struct enforce_set set = {.context = 0};
	const struct real *real = real_get();
	int entered, r;

	if (!grant_confines(grant, smset_count(&grant->sms))) {
		return 0;
	}
	entered = real ? context_enter(real, context) : -EIO;
	if (entered < 0) {
		return -ENOMEM;
	}
	r = prepare(grant, &set);
	context_exit(real, entered);
	if (ret) {
		*ret = set;
	}
	return r;
}

uint64_t enforce_outside_blocks(CUcontext context) {
	const struct real *real = real_get();
	struct context *c;
	uint64_t n = 0;
	int entered;

	entered = real ? context_enter(real, context) : -EIO;
	if (entered < 0) {
		return 0;
	}
	c = context_current();
	if (c) {
		n = context_read_outside(c);
	}
	context_exit(real, entered);
	return n;
}

void enforce_stream_destroying(CUcontext context, CUstream stream) {
	/* @context is the caller's current one, which need not be the stream's. */
	context_stream_destroying(stream);
}

void enforce_context_destroying(CUcontext context) {
	context_destroying(context);
	green_context_destroying(context);
}

void enforce_after_fork(void) {
	context_after_fork();
	green_after_fork();
	kernel_after_fork();
	image_after_fork();
}
