/*
 * build.c: see build.h.
 */
#include "shim/enforce/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/twin.h"
#include "shim/state.h"

/* What the driver's compiler has to say about a twin that it does not take. */
#define BUILD_LOG_BYTES 1024

/* Longest kernel name that is looked up; mangled names of templates are long. */
#define BUILD_NAME_MAX (PROTO_KERNEL_NAME_MAX + sizeof(TWIN_PREFIX))

static const char *error_name(const struct real *real, CUresult rc) {
	const char *name = NULL;

	if (!real->cuGetErrorName || real->cuGetErrorName(rc, &name) != CUDA_SUCCESS || !name) {
		return "an unknown error";
	}
	return name;
}

static CUresult load(struct build *b, const struct real *real, const struct jit *jit, char *log) {
	CUjit_option options[2 + JIT_OPTIONS_MAX] = {CU_JIT_ERROR_LOG_BUFFER,
						     CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[2 + JIT_OPTIONS_MAX] = {log, (void *)(uintptr_t)BUILD_LOG_BYTES};
	unsigned n = 2 + jit->n;
	CUresult rc;

	memcpy(options + 2, jit->options, jit->n * sizeof(*options));
	memcpy(values + 2, jit->values, jit->n * sizeof(*values));
	log[0] = '\0';
	if (!b->is_library) {
		rc = real->cuModuleLoadDataEx(&b->module, b->image->code, n, options, values);
		if (rc != CUDA_SUCCESS) {
			b->module = NULL;
		}
		return rc;
	}
	rc = real->cuLibraryLoadData(&b->library, b->image->code, options, values, n, NULL, NULL,
				     0);
	if (rc != CUDA_SUCCESS) {
		b->library = NULL;
	}
	return rc;
}

static void build_load(struct build *b, const struct jit *jit) {
	const struct real *real = real_get();
	char log[BUILD_LOG_BYTES];
	CUresult rc;
	int token;

	token = state_enter();
	rc = load(b, real, jit, log);
	state_leave(token);
	if (rc != CUDA_SUCCESS) {
		log[BUILD_LOG_BYTES - 1] = '\0';
		log[strcspn(log, "\n")] = '\0';
		if (asprintf(&b->refusal, "the driver does not take its rewritten form: %s%s%s",
			     error_name(real, rc), log[0] ? ": " : "", log) < 0) {
			b->refusal = NULL;
		}
	}
}

void build_init(struct build *b, bool is_library, void *original, const void *image,
		const char *path, const struct jit *jit, unsigned sm) {
	const struct transform *t;

	*b = (struct build){.sm = sm, .is_library = is_library, .original = original};
	b->image = image_get(image, path, sm);
	t = b->image ? b->image->transform : NULL;
	if (!t) {
		b->refusal = strdup(b->image ? b->image->refusal : "out of memory");
		return;
	}
	if (t->n_vars) {
		b->missing = calloc(t->n_vars, sizeof(*b->missing));
		if (!b->missing) {
			b->refusal = strdup("out of memory");
			return;
		}
	}
	if (t->ptx) {
		build_load(b, jit);
	}
}

void build_deinit(struct build *b, bool in_driver) {
	const struct real *real = real_get_loaded();
	int token;

	if (in_driver && real) {
		token = state_enter();
		if (b->module) {
			real->cuModuleUnload(b->module);
		}
		if (b->library) {
			real->cuLibraryUnload(b->library);
		}
		state_leave(token);
	}
	b->image = image_put(b->image);
	free(b->refusal);
	free(b->missing);
	b->refusal = NULL;
	b->missing = NULL;
}

/* Of a variable in the original (@twins: in the twins' module), in the current context. */
static bool variable(const struct build *b, bool twins, const char *name, CUdeviceptr *ret,
		     size_t *ret_size) {
	const struct real *real = real_get();
	CUresult rc;
	int token;

	token = state_enter();
	if (!b->is_library) {
		rc = real->cuModuleGetGlobal_v2(ret, ret_size, twins ? b->module : b->original,
						name);
	} else if (real->cuLibraryGetGlobal) {
		rc = real->cuLibraryGetGlobal(ret, ret_size, twins ? b->library : b->original,
					      name);
	} else {
		rc = CUDA_ERROR_NOT_SUPPORTED;
	}
	state_leave(token);
	return rc == CUDA_SUCCESS;
}

/* Writes the addresses of the original's variables into the twins' module. */
static bool fill_variables(struct build *b, struct context *c) {
	const struct transform *t = b->image->transform;
	CUdeviceptr list, *addresses;
	size_t size;
	bool ok;

	addresses = calloc(t->n_vars, sizeof(*addresses));
	if (!addresses) {
		return false;
	}
	for (size_t i = 0; i < t->n_vars; i++) {
		if (!variable(b, false, t->vars[i], &addresses[i], &size)) {
			addresses[i] = 0;
			atomic_store(&b->missing[i], true);
			atomic_store(&b->any_missing, true);
		}
	}
	ok = variable(b, true, TWIN_VARS_NAME, &list, &size) &&
	     size >= t->n_vars * sizeof(*addresses) &&
	     !context_write(c, list, addresses, t->n_vars * sizeof(*addresses));
	free(addresses);
	return ok;
}

bool build_make_ready(struct build *b, struct context *c) {
	const struct transform *t;
	unsigned at;

	if (b->refusal || !b->image) {
		return false;
	}
	t = b->image->transform;
	if (!t->n_vars || !t->ptx) {
		return true;
	}
	for (unsigned i = 0; i < BUILD_CONTEXTS_MAX; i++) {
		if (atomic_load_explicit(&b->ready[i], memory_order_acquire) == context_handle(c)) {
			return true;
		}
	}
	if (!fill_variables(b, c)) {
		return false;
	}
	/* With more contexts than places the oldest is filled in again when it comes back. */
	at = atomic_fetch_add(&b->next_ready, 1) % BUILD_CONTEXTS_MAX;
	atomic_store_explicit(&b->ready[at], context_handle(c), memory_order_release);
	return true;
}

CUfunction build_find(const struct build *b, const struct twin_kernel *kernel) {
	const struct real *real = real_get();
	char name[BUILD_NAME_MAX];
	CUfunction f = NULL;
	CUkernel k = NULL;
	CUresult rc;
	int token, n;

	n = snprintf(name, sizeof(name), "%s%s", TWIN_PREFIX, kernel->name);
	if (n < 0 || (size_t)n >= sizeof(name) || (!b->module && !b->library)) {
		return NULL;
	}
	token = state_enter();
	if (b->is_library) {
		rc = real->cuLibraryGetKernel(&k, b->library, name);
		f = (CUfunction)k;
	} else {
		rc = real->cuModuleGetFunction(&f, b->module, name);
	}
	state_leave(token);
	return rc == CUDA_SUCCESS ? f : NULL;
}

bool build_misses_variable(const struct build *b, const struct twin_kernel *kernel) {
	if (!atomic_load_explicit(&b->any_missing, memory_order_relaxed)) {
		return false;
	}
	for (size_t i = 0; i < kernel->n_vars; i++) {
		if (atomic_load_explicit(&b->missing[kernel->vars[i]], memory_order_relaxed)) {
			return true;
		}
	}
	return false;
}

void build_forget_context(struct build *b, CUcontext context) {
	for (unsigned i = 0; i < BUILD_CONTEXTS_MAX; i++) {
		CUcontext expected = context;

		atomic_compare_exchange_strong(&b->ready[i], &expected, NULL);
	}
}
