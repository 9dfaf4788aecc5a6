/*
 * dependent.c: see dependent.h.
 */
#include "shim/real.h"

#include "shim/enforce/dependent.h"

#include <stdatomic.h>

#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/enforce/context.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/image.h"
#include "shim/ptx/wait-first.h"
#include "shim/state.h"

static _Atomic bool allowed;

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

HOT_CODE CUresult dependent_launch(const struct real *real, const CUlaunchConfig *like,
				   CUfunction function, void **params, void **extra,
				   bool per_thread) {
	CUlaunchAttribute serialization = {
		.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.programmaticStreamSerializationAllowed = 1,
	};
	CUlaunchConfig config = *like;

	config.attrs = &serialization;
	config.numAttrs = 1;
	return (per_thread ? real->cuLaunchKernelEx_ptsz
			   : real->cuLaunchKernelEx)(&config, function, params, extra);
}

HOT_CODE CUresult dependent_launch_at(const struct launch *l, CUstream at) {
	CUlaunchConfig config = launch_plain_config(l->grid, l->block, l->shared_bytes, at);
	const struct real *real = real_get();
	CUresult rc;

	if (!real || l->cooperative || (l->config && l->config->numAttrs > 0)) {
		return enforce_launch_at(l, at);
	}
	rc = dependent_launch(real, &config, l->function, l->params, l->extra,
			      l->per_thread_default);
	return rc == CUDA_SUCCESS ? rc : enforce_launch_at(l, at);
}
