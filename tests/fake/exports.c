/*
 * exports.c: every function of hooks.def and real.def as the fake driver exports it.
 */
#include "tests/fake/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake.h"

enum {
#define OP(name, params, args, kind, bytes, stream, traits) INDEX_##name,
#define HOOK(name, params, args)			    INDEX_##name,
#include "shim/hooks.def"
};

static bool codes;

__attribute__((constructor)) static void start(void) {
	codes = getenv("FAKE_CODES") != NULL;
}

/* In this mode too the tests need to find functions. */
#define HAS_CODE(name)                                      \
	(codes && INDEX_##name != INDEX_cuGetProcAddress && \
	 INDEX_##name != INDEX_cuGetProcAddress_v2)

#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args)                                     \
	FAKE_EXPORT CUresult name params {                           \
		if (HAS_CODE(name)) {                                \
			return (CUresult)(FAKE_CODE + INDEX_##name); \
		}                                                    \
		return do_##name ? do_##name args : CUDA_SUCCESS;    \
	}
#include "shim/hooks.def"

/* What only the shim calls has no parameters here: the name stands for do_NAME itself. */
static CUresult nothing(void) {
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define CALL(name)                                                                  \
	FAKE_EXPORT __typeof__(name) name __attribute__((ifunc("resolve_" #name))); \
	static __attribute__((used)) __typeof__(name) *resolve_##name(void) {                             \
		return do_##name ? do_##name : (__typeof__(name) *)(void *)nothing; \
	}
#include "shim/real.def"

static void *find(const char *name) {
	static const struct {
		const char *name;
		void *address;
	} list[] = {
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args)			    CALL(name)
#undef CALL
#define CALL(name) {#name, (void *)name},
#include "shim/hooks.def"
#include "shim/real.def"
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		if (strcmp(list[i].name, name) == 0) {
			return list[i].address;
		}
	}
	return NULL;
}

CUresult exports_find(const char *symbol, void **function, int version, cuuint64_t flags) {
	static const char *const numbers[] = {"_v4", "_v3", "_v2", ""};
	static const char *const threads[] = {"_ptsz", "_ptds", ""};
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	char name[128];

	if (!symbol || !function) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Which version brought which variant is the driver's business; here the second came
	 * with 5. */
	for (int n = version < 5000 ? 3 : 0; n < 4; n++) {
		for (int t = per_thread ? 0 : 2; t < 3; t++) {
			snprintf(name, sizeof(name), "%s%s%s", symbol, numbers[n], threads[t]);
			*function = find(name);
			if (*function) {
				return CUDA_SUCCESS;
			}
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

FAKE_EXPORT CUresult fake_find(const char *symbol, void **function, int version, cuuint64_t flags) {
	return exports_find(symbol, function, version, flags);
}
