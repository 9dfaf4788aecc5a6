/*
 * copy-back.c: see copy-back.h.
 */
#include "shim/real.h"

#include "shim/copy-back.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/terms.h"
#include "shim/base/log.h"
#include "shim/lane.h"
#include "shim/memory.h"
#include "shim/op.h"
#include "shim/state.h"

/* The link is busy with so many blocks (H100: 4 MiB take what the engine takes), and small ones
 * find room on SMs sooner. */
#define BLOCKS_MAX    32
#define BLOCK_THREADS 256

/* @n words of 16 bytes, or of 4, from @from to @to; each thread takes one in each round. */
/* clang-format off */
#define KERNEL(name, type, bytes, registers) \
	".visible .entry " name "(.param .u64 to, .param .u64 from, .param .u32 n) {\n" \
	"	.reg .pred %done;\n" \
	"	.reg .b32 %i, %n, %step, %block, %a, %b, %c, %d;\n" \
	"	.reg .b64 %to, %from, %at, %x;\n" \
	"	ld.param.u64 %to, [to];\n" \
	"	ld.param.u64 %from, [from];\n" \
	"	ld.param.u32 %n, [n];\n" \
	"	mov.u32 %block, %ntid.x;\n" \
	"	mov.u32 %step, %nctaid.x;\n" \
	"	mul.lo.u32 %step, %step, %block;\n" \
	"	mov.u32 %i, %ctaid.x;\n" \
	"	mov.u32 %a, %tid.x;\n" \
	"	mad.lo.u32 %i, %i, %block, %a;\n" \
	"next:\n" \
	"	setp.ge.u32 %done, %i, %n;\n" \
	"	@%done bra end;\n" \
	"	mul.wide.u32 %at, %i, " bytes ";\n" \
	"	add.u64 %x, %from, %at;\n" \
	"	ld." type " " registers ", [%x];\n" \
	"	add.u64 %x, %to, %at;\n" \
	"	st." type " [%x], " registers ";\n" \
	"	add.u32 %i, %i, %step;\n" \
	"	bra next;\n" \
	"end:\n" \
	"	ret;\n" \
	"}\n"

static const char ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	KERNEL("sbeet_copy_16", "v4.u32", "16", "{%a, %b, %c, %d}")
	KERNEL("sbeet_copy_4", "u32", "4", "%a");
/* clang-format on */

static const struct width {
	unsigned bytes;
	const char *kernel;
} widths[] = {{16, "sbeet_copy_16"}, {4, "sbeet_copy_4"}};
#define N_WIDTHS (sizeof(widths) / sizeof(widths[0]))

/* Of each context that has made or tried such a copy. */
struct kernels {
	CUcontext context;
	CUfunction of[N_WIDTHS]; /* NULL: the driver did not take them */
	struct kernels *next;
};

static struct kernels *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In the current context. The module stays there as long as it. */
static void load(struct kernels *k) {
	const struct real *real = real_get();
	CUmodule module;
	int token = state_enter();
	bool loaded =
		real->cuModuleLoadData && real->cuModuleLoadData(&module, ptx) == CUDA_SUCCESS;

	for (size_t i = 0; i < N_WIDTHS && loaded; i++) {
		loaded = real->cuModuleGetFunction(&k->of[i], module, widths[i].kernel) ==
			 CUDA_SUCCESS;
	}
	state_leave(token);
	if (!loaded) {
		k->of[0] = k->of[1] = NULL;
		log_once(LOG_LEVEL_INFO,
			 "The driver takes no kernel that copies: the copy "
			 "engine makes all copies from the GPU");
	}
}

static struct kernels *find(CUcontext context) {
	struct kernels *k = all;

	while (k && k->context != context) {
		k = k->next;
	}
	return k;
}

/* Whether those of @context are loaded, or never will be. */
static bool is_known(CUcontext context) {
	bool known;

	pthread_mutex_lock(&lock);
	known = find(context);
	pthread_mutex_unlock(&lock);
	return known;
}

/* In @context, which is current. NULL: there is none. */
static CUfunction kernel_of(CUcontext context, size_t width) {
	struct kernels *k;
	CUfunction kernel;

	pthread_mutex_lock(&lock);
	k = find(context);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (k) {
			k->context = context;
			k->next = all;
			load(k);
			all = k;
		}
	}
	kernel = k ? k->of[width] : NULL;
	pthread_mutex_unlock(&lock);
	return kernel;
}

/* The widest word that divides all of it; N_WIDTHS: none. */
static size_t width_of(const struct copies_call *c) {
	size_t i = 0;

	while (i < N_WIDTHS && (c->to | c->from | c->n) % widths[i].bytes != 0) {
		i++;
	}
	return i;
}

/* From one allocation of @context to one of pinned memory. @ret_to: where the GPU has that. */
static bool is_fit(const struct copies_call *c, CUcontext context, CUdeviceptr *ret_to) {
	const struct real *real = real_get();
	struct memory m;

	return memory_is_of_type(c->from, CU_MEMORYTYPE_DEVICE, &m) && m.context == context &&
	       memory_has(&m, c->from, c->n) && memory_is_of_type(c->to, CU_MEMORYTYPE_HOST, &m) &&
	       memory_has(&m, c->to, c->n) && memory_is_pinned(c->to) &&
	       real->cuMemHostGetDevicePointer_v2 &&
	       real->cuMemHostGetDevicePointer_v2(ret_to, (void *)(uintptr_t)c->to, 0) ==
		       CUDA_SUCCESS &&
	       *ret_to % 16 == c->to % 16;
}

static CUresult launch(CUfunction kernel, const struct op *op, CUdeviceptr to, CUdeviceptr from,
		       unsigned words) {
	const struct real *real = real_get();
	unsigned blocks = (words + BLOCK_THREADS - 1) / BLOCK_THREADS;
	void *params[] = {&to, &from, &words};

	blocks = blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX;
	return (op->place.per_thread ? real->cuLaunchKernel_ptsz : real->cuLaunchKernel)(
		kernel, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, op->place.at, params, NULL);
}

bool copy_back_make(const struct op *op, const struct copies_call *c) {
	uint64_t terms = atomic_load_explicit(&op->lane->terms, memory_order_relaxed);
	CUcontext context = op->id->context;
	size_t width = width_of(c);
	CUfunction kernel;
	CUdeviceptr to;

	if (!terms || c->n == 0 || c->n > TERMS_BACK_MAX || width == N_WIDTHS ||
	    (!terms_back_by_kernel(terms) && is_known(context)) || !is_fit(c, context, &to)) {
		return false;
	}
	kernel = kernel_of(context, width);
	if (!kernel || !terms_back_by_kernel(terms) ||
	    launch(kernel, op, to, c->from, (unsigned)(c->n / widths[width].bytes)) !=
		    CUDA_SUCCESS) {
		return false;
	}
	log_once(LOG_LEVEL_INFO, "A kernel makes copies from the GPU of at most %zu bytes",
		 TERMS_BACK_MAX);
	return true;
}

void copy_back_context_destroying(CUcontext context) {
	pthread_mutex_lock(&lock);
	for (struct kernels **at = &all; *at; at = &(*at)->next) {
		struct kernels *k = *at;

		if (k->context == context) {
			*at = k->next;
			free(k);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void copy_back_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	all = NULL; /* leaks: the thread that forked may have been in the middle of it */
}
