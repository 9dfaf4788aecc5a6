/*
 * hooks-module.c: tells kernel.c of every module, library and kernel that the program loads or
 * finds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/hot.h"
#include "shim/enforce/dependent.h"
#include "shim/enforce/kernel.h"
#include "shim/graph.h"
#include "shim/hooks.h"
#include "shim/link.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/state.h"

/* kernel.c is told after the driver's success, with nested calls going straight on. */
#define TELL(rc, condition, call)                          \
	do {                                               \
		if ((rc) == CUDA_SUCCESS && (condition)) { \
			int token_ = state_enter();        \
			call;                              \
			state_leave(token_);               \
		}                                          \
	} while (0)

/* ---- what is loaded in place of the program's image: dependent.h ---- */

struct instead {
	void *image;   /* owned; NULL: nothing */
	void **values; /* owned: those of the program's options, into which the driver writes */
	unsigned n;
	bool taken;
};

/* @values: of the @n options for the compiler. */
static struct instead instead_of(bool is_library, const void *image, const char *path, unsigned n,
				 void *const *values) {
	struct instead ret = {.image = dependent_image(is_library, image, path), .n = n};

	if (ret.image && values && n > 0) {
		ret.values = malloc(n * sizeof(*ret.values));
		if (ret.values) {
			memcpy(ret.values, values, n * sizeof(*ret.values));
		} else {
			free(ret.image);
			ret.image = NULL;
		}
	}
	return ret;
}

/* @rc: of an attempt to load it. If that failed, the program's own is to be loaded, with the
 * options as they were. */
static void instead_take(struct instead *i, CUresult rc, void **values) {
	i->taken = rc == CUDA_SUCCESS;
	if (!i->taken && i->values && values) {
		memcpy(values, i->values, i->n * sizeof(*values));
	}
}

static void instead_free(struct instead *i) {
	free(i->image);
	free(i->values);
}

/* ---- what modules and libraries have in common ---- */

/* The options that the twins of what is being loaded are compiled with. */
static struct jit options_of(unsigned n, const CUjit_option *options, void *const *values) {
	struct jit jit = {0};

	jit_add(&jit, n, options, values);
	return jit;
}

/* One call of the program. */
struct loading {
	CUmodule *module; /* where its handle goes; NULL: a library, or nowhere */
	CUlibrary *library;
	const void *image; /* NULL: the file at @path */
	const char *path;
	struct jit jit;
	struct instead instead;
};

/* An image that the linker made has a PTX source that is better to work from, see link.h; and was
 * compiled by the linker. */
static void loaded(const struct loading *l) {
	struct jit jit = l->jit;
	char *ptx = link_source_of(l->image, &jit);
	const void *image = ptx ? ptx : l->image;

	records_drain(); /* they may name kernels of one whose handle it has, that went unseen */
	if (l->module) {
		kernel_module_loaded(*l->module, image, l->path, &jit);
	} else {
		kernel_library_loaded(*l->library, image, l->path, &jit);
	}
	link_source_free(ptx);
	if (l->instead.taken && l->module) {
		kernel_module_waits_first(*l->module);
	} else if (l->instead.taken) {
		kernel_library_waits_first(*l->library);
	}
}

/* @rc: of what loaded it. Return: the same. */
static CUresult loading_end(struct loading *l, CUresult rc) {
	TELL(rc, l->module || l->library, loaded(l));
	instead_free(&l->instead);
	return rc;
}

/* ---- modules ---- */

/* The program's own beside what is loaded in its place, compiled alike. */
static CUresult load_own_module(CUmodule *ret, struct loading *l) {
	const struct real *real = real_get();

	return l->image ? real->cuModuleLoadDataEx(ret, l->image, l->jit.n, l->jit.options,
						   l->jit.values)
			: real->cuModuleLoad(ret, l->path);
}

/* Loads what there is in the place of the program's image. What the driver compiles must be told of
 * as the program's own. */
static CUresult load_module_instead(struct loading *l, unsigned n, CUjit_option *options,
				    void **values) {
	const struct real *real = real_get();
	CUmodule own = NULL;
	CUresult rc;

	if (dependent_is_compiled(l->instead.image)) {
		rc = load_own_module(&own, l);
		if (rc != CUDA_SUCCESS) {
			return rc;
		}
	}
	rc = real->cuModuleLoadDataEx(l->module, l->instead.image, n, options, values);
	if (rc == CUDA_SUCCESS && own &&
	    !dependent_tells_the_same(l->image, l->path, *l->module, own)) {
		real->cuModuleUnload(*l->module);
		rc = CUDA_ERROR_NOT_SUPPORTED;
	}
	if (own) {
		real->cuModuleUnload(own);
	}
	return rc;
}

/* Loads what there is in the place of @image or @path; without success the caller loads those. */
static struct loading module_loading(CUmodule *module, const void *image, const char *path,
				     unsigned n, CUjit_option *options, void **values) {
	struct loading l = {.module = module,
			    .image = image,
			    .path = path,
			    .jit = options_of(n, options, values),
			    .instead = instead_of(false, image, path, n, values)};
	int token;

	if (l.instead.image && module && real_get()->cuModuleLoadDataEx) {
		token = state_enter();
		instead_take(&l.instead, load_module_instead(&l, n, options, values), values);
		state_leave(token);
	}
	return l;
}

CUresult on_cuModuleLoad(CUmodule *module, const char *path) {
	struct loading l = module_loading(module, NULL, path, 0, NULL, NULL);

	return loading_end(&l,
			   l.instead.taken ? CUDA_SUCCESS : real_get()->cuModuleLoad(module, path));
}

CUresult on_cuModuleLoadData(CUmodule *module, const void *image) {
	struct loading l = module_loading(module, image, NULL, 0, NULL, NULL);

	return loading_end(&l, l.instead.taken ? CUDA_SUCCESS
					       : real_get()->cuModuleLoadData(module, image));
}

CUresult on_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n,
			       CUjit_option *options, void **values) {
	struct loading l = module_loading(module, image, NULL, n, options, values);

	return loading_end(&l, l.instead.taken ? CUDA_SUCCESS
					       : real_get()->cuModuleLoadDataEx(module, image, n,
										options, values));
}

CUresult on_cuModuleLoadFatBinary(CUmodule *module, const void *image) {
	struct loading l = module_loading(module, image, NULL, 0, NULL, NULL);

	return loading_end(&l, l.instead.taken ? CUDA_SUCCESS
					       : real_get()->cuModuleLoadFatBinary(module, image));
}

CUresult on_cuModuleUnload(CUmodule module) {
	records_drain(); /* they name its kernels */
	graph_code_unloading();
	TELL(CUDA_SUCCESS, true, kernel_module_unloading(module));
	return real_get()->cuModuleUnload(module);
}

CUresult on_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	CUresult rc = real_get()->cuModuleGetFunction(function, module, name);

	TELL(rc, function && name, kernel_function_found(module, *function, name));
	return rc;
}

/* ---- libraries ---- */

/* What is told of a library to the driver, for an image that it has to copy. */
struct library_options {
	CUlibraryOption *options; /* owned, like values */
	void **values;
	unsigned n;
};

static bool library_options_init(struct library_options *ret, unsigned n,
				 const CUlibraryOption *options, void *const *values) {
	*ret = (struct library_options){.n = 0};
	if (n == 0 || !options) {
		return true;
	}
	ret->options = malloc(n * sizeof(*ret->options));
	ret->values = calloc(n, sizeof(*ret->values));
	for (unsigned i = 0; ret->options && ret->values && i < n; i++) {
		if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) {
			ret->options[ret->n] = options[i];
			ret->values[ret->n++] = values ? values[i] : NULL;
		}
	}
	return ret->options && ret->values;
}

static void library_options_deinit(struct library_options *o) {
	free(o->options);
	free(o->values);
}

/* The same of a library: see load_own_module(). */
static CUresult load_own_library(CUlibrary *ret, struct loading *l) {
	const struct real *real = real_get();

	return l->image ? real->cuLibraryLoadData(ret, l->image, l->jit.options, l->jit.values,
						  l->jit.n, NULL, NULL, 0)
			: real->cuLibraryLoadFromFile(ret, l->path, l->jit.options, l->jit.values,
						      l->jit.n, NULL, NULL, 0);
}

/* The driver reads and compiles a library later on, or never; here it does so now, for then it is
 * too late to take another one. @own: NULL, or to be compared with. */
static CUresult check_library(const struct loading *l, CUlibrary library, CUlibrary own) {
	const struct real *real = real_get();
	CUmodule module, own_module;
	CUresult rc = real->cuLibraryGetModule(&module, library);

	if (rc == CUDA_SUCCESS && own) {
		rc = real->cuLibraryGetModule(&own_module, own);
	}
	if (rc == CUDA_SUCCESS && own &&
	    !dependent_tells_the_same(l->image, l->path, module, own_module)) {
		rc = CUDA_ERROR_NOT_SUPPORTED;
	}
	if (rc != CUDA_SUCCESS) {
		real->cuLibraryUnload(library);
	}
	return rc;
}

/* What is asked of the driver for a library. */
struct library_call {
	CUjit_option *jit_options;
	void **jit_values;
	unsigned n_jit;
	struct library_options others;
};

/* As load_module_instead(). */
static CUresult load_library_instead(struct loading *l, const struct library_call *c) {
	const struct real *real = real_get();
	CUlibrary own = NULL;
	CUresult rc;

	if (dependent_is_compiled(l->instead.image)) {
		rc = load_own_library(&own, l);
		if (rc != CUDA_SUCCESS) {
			return rc;
		}
	}
	rc = real->cuLibraryLoadData(l->library, l->instead.image, c->jit_options, c->jit_values,
				     c->n_jit, c->others.options, c->others.values, c->others.n);
	if (rc == CUDA_SUCCESS) {
		rc = check_library(l, *l->library, own);
	}
	if (own) {
		real->cuLibraryUnload(own);
	}
	return rc;
}

static struct loading library_loading(CUlibrary *library, const void *image, const char *path,
				      CUjit_option *jit_options, void **jit_values, unsigned n_jit,
				      const CUlibraryOption *options, void *const *values,
				      unsigned n) {
	struct loading l = {.library = library,
			    .image = image,
			    .path = path,
			    .jit = options_of(n_jit, jit_options, jit_values),
			    .instead = instead_of(true, image, path, n_jit, jit_values)};
	struct library_call c = {
		.jit_options = jit_options, .jit_values = jit_values, .n_jit = n_jit};
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
	int token;

	if (!l.instead.image || !library || !real_get()->cuLibraryGetModule) {
		return l;
	}
	token = state_enter();
	if (library_options_init(&c.others, n, options, values)) {
		rc = load_library_instead(&l, &c);
	}
	library_options_deinit(&c.others);
	state_leave(token);
	instead_take(&l.instead, rc, jit_values);
	return l;
}

CUresult on_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
			      void **jit_values, unsigned n_jit, CUlibraryOption *options,
			      void **values, unsigned n) {
	struct loading l = library_loading(library, image, NULL, jit_options, jit_values, n_jit,
					   options, values, n);

	return loading_end(&l, l.instead.taken ? CUDA_SUCCESS
					       : real_get()->cuLibraryLoadData(
							 library, image, jit_options, jit_values,
							 n_jit, options, values, n));
}

CUresult on_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
				  void **jit_values, unsigned n_jit, CUlibraryOption *options,
				  void **values, unsigned n) {
	struct loading l = library_loading(library, NULL, path, jit_options, jit_values, n_jit,
					   options, values, n);

	return loading_end(&l, l.instead.taken ? CUDA_SUCCESS
					       : real_get()->cuLibraryLoadFromFile(
							 library, path, jit_options, jit_values,
							 n_jit, options, values, n));
}

CUresult on_cuLibraryUnload(CUlibrary library) {
	records_drain();
	graph_code_unloading();
	TELL(CUDA_SUCCESS, true, kernel_library_unloading(library));
	return real_get()->cuLibraryUnload(library);
}

CUresult on_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
	CUresult rc = real_get()->cuLibraryGetKernel(kernel, library, name);

	TELL(rc, kernel && name, kernel_library_kernel_found(library, *kernel, name));
	return rc;
}

CUresult on_cuLibraryGetModule(CUmodule *module, CUlibrary library) {
	CUresult rc = real_get()->cuLibraryGetModule(module, library);

	TELL(rc, module, kernel_library_module_found(library, *module));
	return rc;
}

static __attribute__((noinline)) void function_found(CUkernel kernel, CUfunction function) {
	int saved = errno, token;

	if (!state_bypass()) {
		token = state_enter();
		kernel_kernel_function_found(kernel, function);
		state_leave(token);
	}
	errno = saved;
}

/* Libraries of NVIDIA's ask before each launch. */
SBEET_EXPORT HOT_CODE CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
	DRIVER_OR_RETURN(cuKernelGetFunction)
	CUresult rc = real->cuKernelGetFunction(function, kernel);

	if (rc == CUDA_SUCCESS && function && !kernel_function_is_known(kernel, *function)) {
		function_found(kernel, *function);
	}
	return rc;
}

/* ---- attributes that a twin must share ---- */

CUresult on_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
				 CUdevice device) {
	CUresult rc = real_get()->cuKernelSetAttribute(attribute, value, kernel, device);

	if (rc == CUDA_SUCCESS) {
		kernel_attribute_set((CUfunction)kernel, attribute, value);
	}
	return rc;
}

CUresult on_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
	CUresult rc = real_get()->cuKernelSetCacheConfig(kernel, config, device);

	TELL(rc, true, kernel_cache_config_set((CUfunction)kernel, config));
	return rc;
}

CUresult on_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
	CUresult rc = real_get()->cuFuncSetAttribute(function, attribute, value);

	if (rc == CUDA_SUCCESS) {
		kernel_attribute_set(function, attribute, value);
	}
	return rc;
}

CUresult on_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
	CUresult rc = real_get()->cuFuncSetCacheConfig(function, config);

	TELL(rc, true, kernel_cache_config_set(function, config));
	return rc;
}

/* ---- the linker ---- */

CUresult on_cuLinkCreate(unsigned n, CUjit_option *options, void **values, CUlinkState *state) {
	struct jit jit = options_of(n, options, values);
	CUresult rc = real_get()->cuLinkCreate(n, options, values, state);

	TELL(rc, state, link_created(*state, &jit));
	return rc;
}

CUresult on_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *state) {
	struct jit jit = options_of(n, options, values);
	CUresult rc = real_get()->cuLinkCreate_v2(n, options, values, state);

	TELL(rc, state, link_created(*state, &jit));
	return rc;
}

CUresult on_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
			  const char *name, unsigned n, CUjit_option *options, void **values) {
	struct jit jit = options_of(n, options, values);
	CUresult rc = real_get()->cuLinkAddData(state, type, data, size, name, n, options, values);

	TELL(rc, true, link_added(state, type == CU_JIT_INPUT_PTX ? data : NULL, size, &jit));
	return rc;
}

CUresult on_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
			     const char *name, unsigned n, CUjit_option *options, void **values) {
	struct jit jit = options_of(n, options, values);
	CUresult rc =
		real_get()->cuLinkAddData_v2(state, type, data, size, name, n, options, values);

	TELL(rc, true, link_added(state, type == CU_JIT_INPUT_PTX ? data : NULL, size, &jit));
	return rc;
}

CUresult on_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned n,
			  CUjit_option *options, void **values) {
	CUresult rc = real_get()->cuLinkAddFile(state, type, path, n, options, values);

	TELL(rc, true, link_added(state, NULL, 0, NULL));
	return rc;
}

CUresult on_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned n,
			     CUjit_option *options, void **values) {
	CUresult rc = real_get()->cuLinkAddFile_v2(state, type, path, n, options, values);

	TELL(rc, true, link_added(state, NULL, 0, NULL));
	return rc;
}

CUresult on_cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
	CUresult rc = real_get()->cuLinkComplete(state, cubin, size);

	TELL(rc, cubin, link_completed(state, *cubin));
	return rc;
}

CUresult on_cuLinkDestroy(CUlinkState state) {
	link_destroyed(state);
	return real_get()->cuLinkDestroy(state);
}
