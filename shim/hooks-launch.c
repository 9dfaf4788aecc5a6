/*
 * hooks-launch.c: every kernel launch function, brought to the one form of launch.h.
 */
#include <errno.h>

#include "proto/enforcement.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/capture.h"
#include "shim/enforce/dependent.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "shim/gate.h"
#include "shim/hooks.h"
#include "shim/kernel-time.h"
#include "shim/kernels-done.h"
#include "shim/lane.h"
#include "shim/launch.h"
#include "shim/op.h"
#include "shim/real.h"
#include "shim/route.h"
#include "shim/wait.h"

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
 * The job's part of the GPU is too small. @ret_again: to be tried in a job that has all of it. Not
 * under terms, where nobody waits; nor while the program captures, when the end of a job can't be
 * seen: then the kernel runs where it can.
 */
static CUresult launch_outside(struct op *op, CUresult rc, bool *ret_again) {
	*ret_again = !capture_any() && !atomic_load(&op->lane->terms);
	if (*ret_again) {
		log_once(LOG_LEVEL_INFO,
			 "Kernel '%s' does not fit into %u SMs, its jobs wait for a whole GPU",
			 name_of(op), smset_count(&op_grant(op)->sms));
		return rc;
	}
	if (op->kernel) {
		kernel_need_whole(op->kernel, "it does not fit into a part of the GPU");
	}
	op_unconfine(op);
	rc = enforce_launch_at(op->launch, op->place.at);
	if (rc == CUDA_SUCCESS) {
		say_unconfined(op, "it does not fit");
	}
	return rc;
}

static CUresult launch_twin(struct op *op) {
	CUresult rc = enforce_launch(op_grant(op), &op->kernel_use, op->launch, &op->how);

	if (op->how == NONE) {
		log_once(LOG_LEVEL_WARN,
			 "Kernel '%s' could not be confined to its SMs and ran on the whole GPU",
			 name_of(op));
	}
	return rc;
}

/* No dependent launch may stand behind it. */
static inline CUresult launch_other(const struct op *op) {
	dependent_end_turn();
	return enforce_launch_at(op->launch, op->place.at);
}

static inline CUresult launch_in_job(struct op *op, bool *ret_again) {
	CUresult rc;

	if (enforcement_has(op->how, ENFORCEMENT_BY_TWIN)) {
		dependent_end_turn();
		return launch_twin(op);
	}
	rc = op->kernel && kernel_waits_first(op->kernel)
		     ? dependent_launch_at(op->launch, &op->use->turn, op->place.at)
		     : launch_other(op);
	if (op->how == GREEN && is_too_small(rc)) {
		return launch_outside(op, rc, ret_again);
	}
	if (op->how == NONE && !op->unconfined && rc == CUDA_SUCCESS) {
		say_unconfined(op, "its stream could not be moved there");
	}
	return rc;
}

/* @ret_again: nothing was launched. */
static inline CUresult launch_op(struct op *op, bool *ret_again) {
	struct kernel_sample *sample;
	CUresult rc = CUDA_SUCCESS;

	switch (op_begin(op, &rc)) {
	case OP_FAIL:
		return rc;
	case OP_BYPASS:
		rc = launch_other(op);
		op_bypassed(op);
		return rc;
	case OP_GO:
		break;
	}
	sample = gate_kernel(op);
	kernels_done_not(op->lane, op->id->context);
	rc = launch_in_job(op, ret_again);
	if (sample) {
		kernel_time_end(&op->worker->times, sample, rc);
	}
	if (rc == CUDA_SUCCESS && op_has_launched(op)) {
		route_learn(op);
	}
	op_end(op, rc);
	return rc;
}

HOT_CODE static CUresult launch(const struct launch *l) {
	unsigned traits = l->per_thread_default ? OP_PER_THREAD : 0;
	int saved = errno;
	struct op op;
	bool again;
	CUresult rc;

	do {
		again = false;
		op_init(&op, SBEET__OP_KIND__OP_KIND_LAUNCH, traits, 0, l->stream, l);
		rc = launch_op(&op, &again);
		traits |= OP_WHOLE;
	} while (again);
	errno = saved;
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

/* The one that the launch records. NULL: none by this attribute. */
static CUevent event_of(const CUlaunchAttribute *a) {
	return a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ? a->value.programmaticEvent.event
	       : a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
		       ? a->value.launchCompletionEvent.event
		       : NULL;
}

static bool records_events(const CUlaunchConfig *config) {
	unsigned i = 0;

	while (config->attrs && i < config->numAttrs && !event_of(&config->attrs[i])) {
		i++;
	}
	return config->attrs && i < config->numAttrs;
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
static inline struct launch from_arguments(CUfunction f, const unsigned grid[3],
					   const unsigned block[3], unsigned shared,
					   CUstream stream, void **params, bool per_thread) {
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

/* Such an event comes before the end of its kernel, so that it is complete tells nothing. */
static CUresult launch_config(const struct launch *l) {
	const CUlaunchConfig *c = l->config;
	CUresult rc;

	for (unsigned i = 0; c->attrs && i < c->numAttrs; i++) {
		if (event_of(&c->attrs[i])) {
			wait_event_recording(event_of(&c->attrs[i]));
		}
	}
	rc = launch(l);
	for (unsigned i = 0; c->attrs && i < c->numAttrs; i++) {
		if (event_of(&c->attrs[i])) {
			wait_event_recorded(event_of(&c->attrs[i]), 0, NULL, false, 0);
		}
	}
	return rc;
}

#define DIM(x, y, z) ((const unsigned[]){x, y, z})

/* ---- the functions that programs launch most kernels with: the short way ---- */

static inline CUresult launch_in_turn(const struct route_use *u, const struct real *real,
				      CUlaunchConfig *config, CUfunction f, void **params,
				      void **extra, bool per_thread) {
	uint64_t *turn = u->shape->waits_first ? &u->worker->route.use->turn : NULL;

	return dependent_launch(real, turn, config, f, params, extra, per_thread);
}

/* The long way stands apart from the short one, which has the cache to itself. */
#define LAUNCH_KERNEL(name, is_per_thread)                                                         \
	HOT_CODE static __attribute__((noinline)) CUresult name##_long(                            \
		CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,     \
		unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {      \
		DRIVER_OR_RETURN(name)                                                             \
		struct launch l = from_arguments(f, DIM(gx, gy, gz), DIM(bx, by, bz), shared,      \
						 stream, params, is_per_thread);                   \
                                                                                                   \
		if (state_bypass()) {                                                              \
			return real->name(f, gx, gy, gz, bx, by, bz, shared, stream, params,       \
					  extra);                                                  \
		}                                                                                  \
		l.extra = extra;                                                                   \
		return launch(&l);                                                                 \
	}                                                                                          \
                                                                                                   \
	SBEET_EXPORT HOT_CODE CUresult name(                                                       \
		CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,     \
		unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {      \
		const struct real *real = atomic_load_explicit(&real_found, memory_order_acquire); \
		const struct route_launch l = {                                                    \
			.function = f,                                                             \
			.stream = stream,                                                          \
			.per_thread = is_per_thread,                                               \
			.block_threads = bx * by * bz,                                             \
			.shared_bytes = shared,                                                    \
			.blocks = (uint64_t)gx * gy * gz,                                          \
		};                                                                                 \
		struct route_use u;                                                                \
		CUlaunchConfig there;                                                              \
		CUresult rc;                                                                       \
                                                                                                   \
		if (HOT_EXPECT(real && real->name && state_is_ours() &&                            \
			       route_begin(&u, real, &l))) {                                       \
			if (u.shape->in_turn) {                                                    \
				there = launch_plain_config(DIM(gx, gy, gz), DIM(bx, by, bz),      \
							    shared, u.at);                         \
				rc = launch_in_turn(&u, real, &there, f, params, extra,            \
						    is_per_thread);                                \
			} else {                                                                   \
				rc = real->name(f, gx, gy, gz, bx, by, bz, shared, u.at, params,   \
						extra);                                            \
			}                                                                          \
			route_end(&u, &l, rc);                                                     \
			if (HOT_EXPECT(!is_too_small(rc))) {                                       \
				return rc;                                                         \
			}                                                                          \
		}                                                                                  \
		return name##_long(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);      \
	}

LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

static struct route_launch route_from_config(const CUlaunchConfig *config, CUfunction f,
					     bool per_thread) {
	return (struct route_launch){
		.function = f,
		.stream = config->hStream,
		.per_thread = per_thread,
		.block_threads = config->blockDimX * config->blockDimY * config->blockDimZ,
		.shared_bytes = config->sharedMemBytes,
		.blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
	};
}

#define LAUNCH_KERNEL_EX(name, is_per_thread)                                                      \
	HOT_CODE static __attribute__((noinline)) CUresult name##_long(                            \
		const CUlaunchConfig *config, CUfunction f, void **params, void **extra) {         \
		DRIVER_OR_RETURN(name)                                                             \
		struct launch l;                                                                   \
                                                                                                   \
		if (!config || state_bypass()) {                                                   \
			return real->name(config, f, params, extra);                               \
		}                                                                                  \
		l = from_config(config, f, params, extra, is_per_thread);                          \
		return launch_config(&l);                                                          \
	}                                                                                          \
                                                                                                   \
	SBEET_EXPORT HOT_CODE CUresult name(const CUlaunchConfig *config, CUfunction f,            \
					    void **params, void **extra) {                         \
		const struct real *real = atomic_load_explicit(&real_found, memory_order_acquire); \
		struct route_launch l;                                                             \
		struct route_use u;                                                                \
		CUlaunchConfig there;                                                              \
		CUresult rc;                                                                       \
                                                                                                   \
		if (!config || !real || !real->name || !state_is_ours() ||                         \
		    is_cooperative(config) || records_events(config)) {                            \
			return name##_long(config, f, params, extra);                              \
		}                                                                                  \
		l = route_from_config(config, f, is_per_thread);                                   \
		if (HOT_EXPECT(route_begin(&u, real, &l))) {                                       \
			there = *config;                                                           \
			there.hStream = u.at;                                                      \
			rc = u.shape->in_turn ? launch_in_turn(&u, real, &there, f, params, extra, \
							       is_per_thread)                      \
					      : real->name(&there, f, params, extra);              \
			route_end(&u, &l, rc);                                                     \
			if (HOT_EXPECT(!is_too_small(rc))) {                                       \
				return rc;                                                         \
			}                                                                          \
		}                                                                                  \
		return name##_long(config, f, params, extra);                                      \
	}

LAUNCH_KERNEL_EX(cuLaunchKernelEx, false)
LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

/* ---- cooperative launches ---- */

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
