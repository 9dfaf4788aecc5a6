/*
 * jit.c: see jit.h.
 */
#include "shim/enforce/jit.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_shared(CUjit_option option) {
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_GENERATE_DEBUG_INFO: /* turns optimisation off */
	case CU_JIT_CACHE_MODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
		return true;
	default:
		return false;
	}
}

void jit_add(struct jit *jit, unsigned n, const CUjit_option *options, void *const *values) {
	for (unsigned i = 0; options && values && i < n; i++) {
		unsigned at = 0;

		if (!is_shared(options[i])) {
			continue;
		}
		while (at < jit->n && jit->options[at] != options[i]) {
			at++;
		}
		if (at < JIT_OPTIONS_MAX) {
			jit->options[at] = options[i];
			jit->values[at] = values[i];
			jit->n += at == jit->n;
		}
	}
}
