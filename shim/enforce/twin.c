/*
 * twin.c: see twin.h.
 */
#include "shim/enforce/twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/enforce/plan.h"

/*
 * A remembered shape is one word, so that it is read and written at once: from the lowest bit on 1
 * bit (known), 8 bits blocks an SM, 11 bits threads, 21 bits dynamic shared memory, 8 bits device,
 * 15 bits age. One of another age than the twin's counts for nothing: a thread that asked the
 * driver before an attribute changed may write its answer after the others were forgotten.
 */
#define SHAPE_THREADS_MAX 1024u
#define SHAPE_SHARED_MAX  ((1u << 21) - 1)
#define SHAPE_DEVICE_MAX  255
#define SHAPE_BLOCKS_MAX  255u
#define SHAPE_AGE_BITS	  15

static char *explain(const struct twin_kernel *k) {
	const char *reason = k->reason ? k->reason : "it has no rewritten form";
	char *text = NULL;
	int r;

	if (k->line && k->instruction) {
		r = asprintf(&text, "%s (line %u: %s)", reason, k->line, k->instruction);
	} else if (k->line) {
		r = asprintf(&text, "%s (line %u)", reason, k->line);
	} else {
		r = asprintf(&text, "%s", reason);
	}
	return r < 0 ? NULL : text;
}

void twin_init(struct twin *t, struct build *b, const char *name) {
	const struct transform *transform = b->image ? b->image->transform : NULL;

	t->build = b;
	if (b->refusal || !transform) {
		t->refusal = strdup(b->refusal ? b->refusal : "out of memory");
		return;
	}
	for (size_t i = 0; i < transform->n_kernels; i++) {
		if (!strcmp(transform->kernels[i].name, name)) {
			t->info = &transform->kernels[i];
			break;
		}
	}
	if (!t->info) {
		t->refusal = strdup("it is not in the image's PTX");
	} else if (!t->info->confinable) {
		t->refusal = explain(t->info);
	} else if (t->info->n_params > PLAN_PARAMS_MAX) {
		t->refusal = strdup("it has too many parameters");
	} else {
		t->handle = build_find(b, t->info);
		if (!t->handle) {
			t->refusal = strdup("the driver does not find its rewritten form");
		}
	}
}

void twin_deinit(struct twin *t) {
	free(t->refusal);
	t->refusal = NULL;
}

bool twin_allows(struct twin *t, struct context *c, const struct launch *l) {
	return t->handle && plan_launch_allows(t->info, l) && context_has_stream(c, l) &&
	       build_make_ready(t->build, c) && !build_misses_variable(t->build, t->info);
}

/* A twin may take more registers than the original, so that blocks of the program's size are too
 * large for it. */
static bool takes_block(const struct twin *t, const struct real *real, CUdevice device,
			int threads) {
	const CUfunction_attribute what = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
	CUresult rc;
	int most = 0;

	if (t->build->is_library) {
		rc = real->cuKernelGetAttribute(&most, what, (CUkernel)t->handle, device);
	} else {
		rc = real->cuFuncGetAttribute(&most, what, t->handle);
	}
	return rc == CUDA_SUCCESS && threads <= most;
}

/* 0: none can be launched. */
static unsigned ask_occupancy(const struct twin *t, CUdevice device, int threads, unsigned shared) {
	const struct real *real = real_get();
	int n = 0;

	if (!takes_block(t, real, device, threads) ||
	    real->cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, t->handle, threads, shared) !=
		    CUDA_SUCCESS ||
	    n < 0) {
		return 0;
	}
	return (unsigned)n > SHAPE_BLOCKS_MAX ? SHAPE_BLOCKS_MAX : (unsigned)n;
}

unsigned twin_occupancy(struct twin *t, const struct context *c, const struct launch *l) {
	CUdevice device = context_device(c);
	uint64_t threads, shape, known, blocks, age;
	_Atomic(uint64_t) *at;

	if (!l->block[0] || !l->block[1] || !l->block[2] || l->block[0] > SHAPE_THREADS_MAX ||
	    l->block[1] > SHAPE_THREADS_MAX || l->block[2] > SHAPE_THREADS_MAX) {
		return 0;
	}
	threads = launch_threads(l);
	if (threads > SHAPE_THREADS_MAX || l->shared_bytes > SHAPE_SHARED_MAX || device < 0 ||
	    device > SHAPE_DEVICE_MAX) {
		return 0;
	}
	age = atomic_load(&t->age) & ((1u << SHAPE_AGE_BITS) - 1);
	shape = threads | (uint64_t)l->shared_bytes << 11 | (uint64_t)device << 32;
	at = &t->shapes[(shape * 0x9E3779B97F4A7C15ull >> 32) % TWIN_SHAPES];
	shape |= age << 40;
	known = atomic_load_explicit(at, memory_order_relaxed);
	if (known & 1 && known >> 9 == shape) {
		return known >> 1 & SHAPE_BLOCKS_MAX;
	}
	blocks = ask_occupancy(t, device, (int)threads, l->shared_bytes);
	atomic_store_explicit(at, shape << 9 | blocks << 1 | 1, memory_order_relaxed);
	return (unsigned)blocks;
}

void twin_forget_shapes(struct twin *t) {
	atomic_fetch_add(&t->age, 1);
	for (size_t i = 0; i < TWIN_SHAPES; i++) {
		/* for when ages begin again */
		atomic_store_explicit(&t->shapes[i], 0, memory_order_relaxed);
	}
}
