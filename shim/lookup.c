/*
 * lookup.c: from the driver's addresses to our wrappers.
 */
#include "shim/lookup.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/object.h"
#include "shim/real.h"

struct pair {
	uintptr_t driver;
	void *ours;
};

enum {
#define OP(name, params, args, kind, bytes, stream, traits) LOOKUP_##name,
#define HOOK(name, params, args)			    LOOKUP_##name,
#include "shim/hooks.def"
	_LOOKUP_N,
};

/* Sorted by address. Built once, like the table in real.c: without a lock, the first one is kept.
 */
struct pairs {
	struct pair list[_LOOKUP_N];
};

static _Atomic(const struct pairs *) pairs;

static int pair_compare(const void *a, const void *b) {
	const struct pair *x = a, *y = b;

	return (x->driver > y->driver) - (x->driver < y->driver);
}

static const struct pairs *pairs_get(const struct real *real) {
	const struct pairs *first = atomic_load_explicit(&pairs, memory_order_acquire);
	struct pairs *p;

	if (first) {
		return first;
	}
	p = malloc(sizeof(*p));
	if (!p) {
		return NULL;
	}
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args) \
	p->list[LOOKUP_##name] = (struct pair){(uintptr_t)real->name, (void *)name};
#include "shim/hooks.def"
	qsort(p->list, _LOOKUP_N, sizeof(*p->list), pair_compare);
	if (!atomic_compare_exchange_strong(&pairs, &first, p)) {
		free(p);
		return first;
	}
	return p;
}

void *lookup_replace(void *address) {
	const struct real *real = real_get_loaded();
	const struct pairs *p;
	size_t low = 0, high = _LOOKUP_N;

	if (!address || !real) {
		return address;
	}
	p = pairs_get(real);
	while (p && low < high) {
		size_t middle = (low + high) / 2;

		if (p->list[middle].driver == (uintptr_t)address) {
			return p->list[middle].ours;
		}
		if (p->list[middle].driver < (uintptr_t)address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return address;
}

/* ---- by name ---- */

/* The second form of a function whose first form is stood in for, too: in which version of CUDA it
 * came, as cudaTypedefs.h has it. The test `lookup-versions` compares. */
static const struct {
	const char *name;
	int since;
} seconds[] = {
	{"cuCtxDestroy_v2", 4000},
	{"cuCtxSynchronize_v2", 13000},
	{"cuDevicePrimaryCtxRelease_v2", 11000},
	{"cuDevicePrimaryCtxReset_v2", 11000},
	{"cuEventDestroy_v2", 4000},
	{"cuGetProcAddress_v2", 12000},
	{"cuGraphAddNode_v2", 12030},
	{"cuGraphExecKernelNodeSetParams_v2", 12000},
	{"cuGraphExecUpdate_v2", 12000},
	{"cuGraphInstantiate_v2", 11000},
	{"cuLinkAddData_v2", 6050},
	{"cuLinkAddFile_v2", 6050},
	{"cuLinkCreate_v2", 6050},
	{"cuMemPrefetchAsync_v2", 12020},
	{"cuMemcpy3DBatchAsync_v2", 13000},
	{"cuMemcpyBatchAsync_v2", 13000},
	{"cuStreamBatchMemOp_v2", 11070},
	{"cuStreamBeginCapture_v2", 10010},
	{"cuStreamDestroy_v2", 4000},
	{"cuStreamWaitValue32_v2", 11070},
	{"cuStreamWaitValue64_v2", 11070},
	{"cuStreamWriteValue32_v2", 11070},
	{"cuStreamWriteValue64_v2", 11070},
};

/* All others with 64-bit addresses. */
#define SINCE_64_BIT 3020

static int second_since(const char *name, size_t length) {
	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		if (strncmp(seconds[i].name, name, length) == 0 && !seconds[i].name[length]) {
			return seconds[i].since;
		}
	}
	return SINCE_64_BIT;
}

static bool is_per_thread(const char *end) {
	return strcmp(end, "_ptsz") == 0 || strcmp(end, "_ptds") == 0;
}

struct choice {
	const char *symbol;
	int version;
	bool per_thread; /* is preferred */
	void *best;
	int best_since;
	bool best_per_thread;
};

static void consider(struct choice *c, const char *name, void *ours, bool is_there) {
	size_t n = strlen(c->symbol);
	const char *end = name + n;
	bool per_thread;
	int since = 0;

	if (strncmp(name, c->symbol, n) != 0 || !is_there) {
		return;
	}
	if (strncmp(end, "_v2", 3) == 0) {
		end += 3;
		since = second_since(name, (size_t)(end - name));
	}
	per_thread = is_per_thread(end);
	if ((*end && !per_thread) || since > c->version || (per_thread && !c->per_thread) ||
	    (c->best && (since < c->best_since ||
			 (since == c->best_since && c->best_per_thread && !per_thread)))) {
		return;
	}
	c->best = ours;
	c->best_since = since;
	c->best_per_thread = per_thread;
}

static bool is_in_driver(const struct object *o, void *name) {
	return object_is(o, REAL_DRIVER) && object_symbol(o, name, NULL);
}

/* Whether the driver has a form of it that came after what we know. */
static bool has_newer_form(const char *symbol) {
	char name[128];

	snprintf(name, sizeof(name), "%s_v3", symbol);
	return object_each(is_in_driver, name);
}

void *lookup_replace_named(void *address, const char *symbol, int version, uint64_t flags) {
	const struct real *real = real_get_loaded();
	void *found = lookup_replace(address);
	struct choice c = {
		.symbol = symbol,
		.version = version,
		.per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
	};

	if (found != address || !address || !symbol || !real) {
		return found;
	}
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args)			    consider(&c, #name, (void *)name, real->name);
#include "shim/hooks.def"
	return c.best && !has_newer_form(symbol) ? c.best : address;
}
