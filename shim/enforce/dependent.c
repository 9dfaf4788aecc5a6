/*
 * dependent.c: see dependent.h.
 */
#include "shim/real.h"

#include "shim/enforce/dependent.h"

#include <elf.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/enforce/context.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/image.h"
#include "shim/ptx/wait-first.h"
#include "shim/state.h"

static _Atomic bool allowed;
_Atomic uint64_t dependent_turn __attribute__((aligned(64))) = DEPENDENT_TURN_NONE + 1;

void dependent_allow(bool is_allowed) {
	atomic_store_explicit(&allowed, is_allowed, memory_order_relaxed);
}

static unsigned current_sm(unsigned *ret) {
	struct context *c = context_current();

	ret[0] = c ? context_sm(c) : 0;
	return 1;
}

void *dependent_image(bool is_library, const void *image, const char *path) {
	const struct real *real = real_get();
	unsigned sms[CONTEXT_GPUS_MAX], n;
	void *ret = NULL;
	int token;

	if (!atomic_load_explicit(&allowed, memory_order_relaxed) || !real->cuLaunchKernelEx ||
	    !real->cuLaunchKernelEx_ptsz) {
		return NULL;
	}
	token = state_enter();
	n = is_library ? context_all_sms(sms) : current_sm(sms);
	state_leave(token);
	for (unsigned i = 0; i < n; i++) {
		if (sms[i] < WAIT_FIRST_SM_MIN) {
			return NULL;
		}
	}
	ret = image_wait_first(image, path, sms, n);
	if (ret) {
		log_line(LOG_LEVEL_DEBUG, "Kernels are loaded for dependent launches");
	}
	return ret;
}

bool dependent_is_compiled(const void *image) {
	return memcmp(image, ELFMAG, SELFMAG) != 0;
}

static bool function_tells_the_same(const struct real *real, CUfunction f, CUfunction own) {
	for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++) {
		CUfunction_attribute what = (CUfunction_attribute)i;
		int value = 0, own_value = 0;
		CUresult rc = real->cuFuncGetAttribute(&value, what, f);

		if (real->cuFuncGetAttribute(&own_value, what, own) != rc || value != own_value) {
			return false;
		}
	}
	return true;
}

bool dependent_tells_the_same(const void *image, const char *path, CUmodule module, CUmodule own) {
	const struct real *real = real_get();
	struct context *c = context_current();
	const struct image *i = c ? image_get(image, path, context_sm(c)) : NULL;
	bool same = i && i->transform && real->cuFuncGetAttribute && real->cuModuleGetFunction;
	CUfunction f, own_f;

	for (size_t k = 0; same && k < i->transform->n_kernels; k++) {
		const char *name = i->transform->kernels[k].name;

		same = real->cuModuleGetFunction(&f, module, name) == CUDA_SUCCESS &&
		       real->cuModuleGetFunction(&own_f, own, name) == CUDA_SUCCESS &&
		       function_tells_the_same(real, f, own_f);
	}
	image_put(i);
	if (!same) {
		log_line(LOG_LEVEL_DEBUG, "Code is left alone: with a wait its kernels are others");
	}
	return same;
}

/* @config has no attributes. */
static inline CUresult launch_dependent(const struct real *real, CUlaunchConfig *config,
					CUfunction function, void **params, void **extra,
					bool per_thread) {
	CUlaunchAttribute serialization = {
		.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.programmaticStreamSerializationAllowed = 1,
	};
	CUresult rc;

	config->attrs = &serialization;
	config->numAttrs = 1;
	rc = (per_thread ? real->cuLaunchKernelEx_ptsz : real->cuLaunchKernelEx)(config, function,
										 params, extra);
	config->attrs = NULL;
	config->numAttrs = 0;
	return rc;
}

HOT_CODE CUresult dependent_launch(const struct real *real, uint64_t *turn, CUlaunchConfig *config,
				   CUfunction function, void **params, void **extra,
				   bool per_thread) {
	uint64_t now = atomic_load(&dependent_turn);
	bool in_turn = turn && config->numAttrs == 0;
	CUresult rc;

	if (HOT_EXPECT(in_turn && *turn == now)) {
		rc = launch_dependent(real, config, function, params, extra, per_thread);
		if (HOT_EXPECT(rc == CUDA_SUCCESS)) {
			return rc;
		}
	}
	if (!in_turn) {
		dependent_end_turn();
	}
	rc = (per_thread ? real->cuLaunchKernelEx_ptsz : real->cuLaunchKernelEx)(config, function,
										 params, extra);
	if (in_turn && rc == CUDA_SUCCESS) {
		*turn = now;
	}
	return rc;
}

HOT_CODE CUresult dependent_launch_at(const struct launch *l, uint64_t *turn, CUstream at) {
	CUlaunchConfig config;

	if (l->cooperative) {
		dependent_end_turn();
		return enforce_launch_at(l, at);
	}
	config = launch_plain_config(l->grid, l->block, l->shared_bytes, at);
	if (l->config) {
		config.attrs = l->config->attrs;
		config.numAttrs = l->config->numAttrs;
	}
	return dependent_launch(real_get(), turn, &config, l->function, l->params, l->extra,
				l->per_thread_default);
}
