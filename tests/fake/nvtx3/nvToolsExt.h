/*
 * nvToolsExt.h: in the place of NVTX 3's where there is no CUDA toolkit: those of its functions
 * that tests use, and how it finds and asks a tool. Like the real one, each source file that
 * includes it has a copy of its own.
 */
#pragma once

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "shim/nvtx-abi.h"

#define NVTX_VERSION		      3
#define NVTX_NO_PUSH_POP_TRACKING     (-2)
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

enum {
	NVTX_MESSAGE_TYPE_ASCII = 1,
	NVTX_MESSAGE_TYPE_UNICODE = 2,
	NVTX_MESSAGE_TYPE_REGISTERED = 3,
};

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	uint64_t payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

#define NVTX_SLOTS 16

static nvtx_abi_function nvtx_core[NVTX_SLOTS], nvtx_core2[NVTX_SLOTS];
static nvtx_abi_function *nvtx_core_table[NVTX_SLOTS + 1], *nvtx_core2_table[NVTX_SLOTS + 1];

static int nvtx_get_slots(enum nvtx_abi_module module, nvtx_abi_function ***ret, unsigned *ret_n) {
	if (module != NVTX_ABI_CORE && module != NVTX_ABI_CORE2) {
		return 0;
	}
	*ret = module == NVTX_ABI_CORE ? nvtx_core_table : nvtx_core2_table;
	*ret_n = NVTX_SLOTS;
	return 1;
}

static const void *nvtx_get_table(uint32_t table) {
	static const struct nvtx_abi_callbacks callbacks = {sizeof(callbacks), nvtx_get_slots};

	return table == NVTX_ABI_CALLBACKS ? &callbacks : NULL;
}

/* As the real one: whoever comes first; without a tool every slot stays NULL. Not for threads. */
static void nvtx_init(void) {
	static int done;
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = NULL, *found = NULL;
	int (*initialize)(nvtx_abi_get_table);

	if (done) {
		return;
	}
	done = 1;
	for (int i = 1; i < NVTX_SLOTS; i++) { /* 0 is none */
		nvtx_core_table[i] = &nvtx_core[i];
		nvtx_core2_table[i] = &nvtx_core2[i];
	}
	library = path ? dlopen(path, RTLD_LAZY) : NULL;
	found = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
	memcpy(&initialize, &found, sizeof(found));
	if (initialize && initialize(nvtx_get_table) == 0) {
		memset(nvtx_core, 0, sizeof(nvtx_core));
		memset(nvtx_core2, 0, sizeof(nvtx_core2));
	}
}

#define NVTX_FUNCTION(type, name, params, args, table, slot, otherwise) \
	static inline type name params {                                \
		nvtx_init();                                            \
		if (!table[slot]) {                                     \
			return otherwise;                               \
		}                                                       \
		return ((type(*) params)table[slot])args;               \
	}

/* clang-format off */
typedef const nvtxEventAttributes_t *nvtx_attributes;
#define LEVEL NVTX_NO_PUSH_POP_TRACKING
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartEx, (nvtx_attributes a), (a), nvtx_core, 4, 0)
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartA, (const char *name), (name), nvtx_core, 5, 0)
NVTX_FUNCTION(nvtxRangeId_t, nvtxRangeStartW, (const wchar_t *name), (name), nvtx_core, 6, 0)
NVTX_FUNCTION(void, nvtxRangeEnd, (nvtxRangeId_t id), (id), nvtx_core, 7, )
NVTX_FUNCTION(int, nvtxRangePushEx, (nvtx_attributes a), (a), nvtx_core, 8, LEVEL)
NVTX_FUNCTION(int, nvtxRangePushA, (const char *name), (name), nvtx_core, 9, LEVEL)
NVTX_FUNCTION(int, nvtxRangePushW, (const wchar_t *name), (name), nvtx_core, 10, LEVEL)
NVTX_FUNCTION(int, nvtxRangePop, (void), (), nvtx_core, 11, LEVEL)
NVTX_FUNCTION(nvtxRangeId_t, nvtxDomainRangeStartEx, (nvtxDomainHandle_t d, nvtx_attributes a), (d, a), nvtx_core2, 2, 0)
NVTX_FUNCTION(void, nvtxDomainRangeEnd, (nvtxDomainHandle_t d, nvtxRangeId_t id), (d, id), nvtx_core2, 3, )
NVTX_FUNCTION(int, nvtxDomainRangePushEx, (nvtxDomainHandle_t d, nvtx_attributes a), (d, a), nvtx_core2, 4, LEVEL)
NVTX_FUNCTION(int, nvtxDomainRangePop, (nvtxDomainHandle_t d), (d), nvtx_core2, 5, LEVEL)
NVTX_FUNCTION(nvtxStringHandle_t, nvtxDomainRegisterStringA, (nvtxDomainHandle_t d, const char *s), (d, s), nvtx_core2, 10, NULL)
NVTX_FUNCTION(nvtxStringHandle_t, nvtxDomainRegisterStringW, (nvtxDomainHandle_t d, const wchar_t *s), (d, s), nvtx_core2, 11, NULL)
NVTX_FUNCTION(nvtxDomainHandle_t, nvtxDomainCreateA, (const char *name), (name), nvtx_core2, 12, NULL)
NVTX_FUNCTION(nvtxDomainHandle_t, nvtxDomainCreateW, (const wchar_t *name), (name), nvtx_core2, 13, NULL)
#undef LEVEL
/* clang-format on */
