/*
 * api-module.c: modules and functions. An image of any kind is brought down to PTX text here;
 * simgpud gets the text in a memfd, parses it, and knows the module by number from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/ptx/fatbin.h"
#include "shim/ptx/sass.h"
#include "tests/simgpu/driver.h"

#define LOG_MAX 640

/* ---- images ---- */

/* The entry that the GPU would be given, of any image in @f. */
static const struct fatbin_entry *image_entry(const struct fatbin *f, const struct wire_gpu *gpu) {
	const struct fatbin_entry *entry = NULL;

	for (unsigned i = 0; i < f->n_images && !entry; i++) {
		entry = fatbin_best_ptx(f, i, gpu->cc_major * 10 + gpu->cc_minor);
	}
	return entry;
}

CUresult image_ptx(const void *image, size_t size, const struct wire_gpu *gpu, char **ret,
		   size_t *ret_size, char *log, size_t log_size) {
	const struct fatbin_entry *entry;
	const uint8_t *data;
	struct fatbin *f = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t n;

	image = size > 0 ? image : fatbin_unwrap(image);
	size = size > 0 ? size : fatbin_image_size(image);
	if (size == 0) {
		snprintf(log, log_size, "the image is neither PTX, fat binary nor cubin");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (fatbin_new(&f, image, size, log, log_size) < 0) {
		return CUDA_ERROR_INVALID_IMAGE;
	}
	entry = image_entry(f, gpu);
	if (!entry && sass_is_rewritten(image, size)) {
		/* By libsbeet.so, which loads the program's own image then: nothing to tell. */
		r = CUDA_ERROR_NO_BINARY_FOR_GPU;
	} else if (!entry) {
		snprintf(log, log_size,
			 "the image has no PTX for compute capability %u.%u or older, and machine "
			 "code cannot be simulated; compile with 'nvcc -arch=sm_%u%u'",
			 gpu->cc_major, gpu->cc_minor, gpu->cc_major, gpu->cc_minor);
		r = CUDA_ERROR_NO_BINARY_FOR_GPU;
	} else if (fatbin_unpack(f, entry, log, log_size, &data, &n) < 0) {
		r = CUDA_ERROR_INVALID_IMAGE;
	} else {
		*ret = malloc(n + 1);
		r = *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS) {
		memcpy(*ret, data, n);
		(*ret)[n] = '\0';
		*ret_size = n;
	}
	fatbin_free(f);
	return r;
}

unsigned image_regs_max(unsigned n, const CUjit_option *options, void *const *values) {
	for (unsigned i = 0; options && i < n; i++) {
		if (options[i] == CU_JIT_MAX_REGISTERS) {
			return (unsigned)(uintptr_t)values[i];
		}
	}
	return 0;
}

void image_log(unsigned n, CUjit_option *options, void **values, const char *log) {
	char *buffer = NULL;
	size_t size = 0;

	for (unsigned i = 0; i < n; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
			buffer = values[i];
		} else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			size = (size_t)(uintptr_t)values[i];
		}
	}
	if (buffer && size > 0) {
		snprintf(buffer, size, "%s", log);
	} else if (*log) {
		fprintf(stderr, "simgpu: %s\n", log);
	}
}

/* ---- modules ---- */

CUresult module_new(CUcontext context, const char *ptx, size_t size, unsigned regs_max,
		    CUlibrary library, CUmodule *ret, char *log, size_t log_size) {
	struct wire_object q = {.h = {.type = WIRE_MODULE_LOAD},
				.object = context->id,
				.other = regs_max,
				.value = size};
	union {
		struct wire_reply head;
		struct wire_value_reply values;
		char bytes[sizeof(struct wire_reply) + LOG_MAX];
	} reply = {0};
	CUmodule m = calloc(1, sizeof(*m));
	int fd = m ? driver_memfd(ptx, size) : -1;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (fd >= 0) {
		r = driver_call(&q, sizeof(q), fd, &reply, sizeof(reply) - 1);
		close(fd);
	}
	if (r != CUDA_SUCCESS) {
		snprintf(log, log_size, "%s", reply.bytes + sizeof(reply.head));
		free(m);
		return r;
	}
	*m = (struct CUmod_st){.tag = DRIVER_MODULE,
			       .id = (uint32_t)reply.values.value,
			       .n_kernels = (uint32_t)reply.values.value2,
			       .context = context,
			       .library = library};
	pthread_mutex_lock(&driver.list_lock);
	m->next = context->modules;
	context->modules = m;
	pthread_mutex_unlock(&driver.list_lock);
	*ret = m;
	return CUDA_SUCCESS;
}

static void function_free(CUfunction f) {
	f->tag = 0;
	free(f->params);
	free(f->name);
	free(f);
}

void module_free(CUmodule module) {
	if (module->context->tag == DRIVER_CONTEXT) {
		(void)driver_ask(WIRE_CONTEXT_SYNC, module->context->id, 0, 0, NULL);
		(void)driver_ask(WIRE_MODULE_FREE, module->id, 0, 0, NULL);
	}
	pthread_mutex_lock(&driver.list_lock);
	for (CUmodule *p = &module->context->modules; *p; p = &(*p)->next) {
		if (*p == module) {
			*p = module->next;
			break;
		}
	}
	pthread_mutex_unlock(&driver.list_lock);
	while (module->functions) {
		CUfunction f = module->functions;

		module->functions = f->next;
		function_free(f);
	}
	module->tag = 0;
	free(module);
}

static CUresult module_load(CUmodule *ret, const void *image, size_t size, unsigned n_options,
			    CUjit_option *options, void **values) {
	char log[LOG_MAX] = "", *ptx = NULL;
	size_t ptx_size;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS || !ret || !image) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	r = image_ptx(image, size, context_gpu(c), &ptx, &ptx_size, log, sizeof(log));
	if (r == CUDA_SUCCESS) {
		r = module_new(c, ptx, ptx_size, image_regs_max(n_options, options, values), NULL,
			       ret, log, sizeof(log));
	}
	free(ptx);
	if (r != CUDA_SUCCESS) {
		image_log(n_options, options, values, log);
	}
	return r;
}

EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
	return module_load(module, image, 0, 0, NULL, NULL);
}

EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image,
					   unsigned int numOptions, CUjit_option *options,
					   void **optionValues) {
	return module_load(module, image, 0, numOptions, options, optionValues);
}

EXPORT CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
	return module_load(module, fatCubin, 0, 0, NULL, NULL);
}

CUresult file_read(const char *path, char **ret, size_t *ret_size) {
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char *bytes = NULL;
	struct stat st;
	size_t done = 0;

	if (fd < 0) {
		return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
	}
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		bytes = calloc(1, (size_t)st.st_size + 1);
	}
	while (bytes && done < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + done, (size_t)st.st_size - done);

		if (n == 0 || (n < 0 && errno != EINTR)) {
			break;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (!bytes || done == 0) {
		free(bytes);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*ret = bytes;
	*ret_size = done;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname) {
	char *bytes;
	size_t n;
	CUresult r = file_read(fname, &bytes, &n);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	r = module_load(module, bytes, n, 0, NULL, NULL);
	free(bytes);
	return r;
}

EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule hmod) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!hmod || hmod->tag != DRIVER_MODULE || hmod->library) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	module_free(hmod);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
	if (!mode) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

/* ---- functions ---- */

static CUfunction function_new(CUmodule module, const struct wire_kernel_reply *reply) {
	CUfunction f = calloc(1, sizeof(*f));

	if (!f) {
		return NULL;
	}
	*f = (struct CUfunc_st){
		.tag = DRIVER_FUNCTION,
		.index = reply->kernel,
		.module = module,
		.regs = reply->regs_per_thread,
		.static_shared = reply->static_shared_bytes,
		.local = reply->local_bytes,
		.max_threads = reply->max_threads,
		.carveout = -1,
		.params_size = reply->params_size,
		.n_params = reply->n_params,
		.name = strdup(reply->name),
		.params = malloc((reply->n_params + 1) * sizeof(*f->params)),
	};
	if (!f->name || !f->params) {
		function_free(f);
		return NULL;
	}
	f->max_dynamic_shared =
		(int)(context_gpu(module->context)->block_shared_max - f->static_shared);
	for (size_t i = 0; i < f->n_params; i++) {
		f->params[i].offset = reply->params[i].offset;
		f->params[i].size = reply->params[i].size;
	}
	return f;
}

/* Asks simgpud. @name empty: by @index. */
static CUresult function_find(CUmodule module, const char *name, uint32_t index, CUfunction *ret) {
	struct wire_find q = {
		.h = {.type = WIRE_KERNEL_FIND}, .module = module->id, .index = index};
	size_t size = sizeof(struct wire_kernel_reply) +
		      WIRE_KERNEL_PARAMS_MAX * sizeof(((struct wire_kernel_reply *)0)->params[0]);
	struct wire_kernel_reply *reply = calloc(1, size);
	struct client_message out = {.head = &q,
				     .head_size = sizeof(q),
				     .data = (void *)name,
				     .data_size = strlen(name) + 1};
	struct client_message in = {.head = reply, .head_size = size};
	CUresult r = reply ? driver_call2(&out, -1, &in) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r == CUDA_SUCCESS) {
		CUfunction f = function_new(module, reply);

		r = f ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		*ret = f ? f : *ret;
	}
	free(reply);
	return r;
}

CUresult module_function(CUmodule module, const char *name, uint32_t index, CUfunction *ret) {
	CUfunction f = NULL;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&driver.lock);
	for (f = module->functions; f; f = f->next) {
		if (*name ? strcmp(f->name, name) == 0 : f->index == index) {
			break;
		}
	}
	if (!f) {
		r = function_find(module, name, index, &f);
		if (r == CUDA_SUCCESS) {
			f->next = module->functions;
			module->functions = f;
		}
	}
	pthread_mutex_unlock(&driver.lock);
	if (r == CUDA_SUCCESS) {
		*ret = f;
	}
	return r;
}

static CUresult module_check(CUmodule module) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!module || module->tag != DRIVER_MODULE) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	return context_check(module->context);
}

EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
	CUresult r = module_check(hmod);

	if (r != CUDA_SUCCESS || !hfunc || !name) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	return *name ? module_function(hmod, name, 0, hfunc) : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
	CUresult r = module_check(mod);

	if (r == CUDA_SUCCESS) {
		*count = mod->n_kernels;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
						   CUmodule mod) {
	CUresult r = module_check(mod);

	for (unsigned i = 0; r == CUDA_SUCCESS && i < numFunctions && i < mod->n_kernels; i++) {
		r = module_function(mod, "", i, &functions[i]);
	}
	return r;
}

CUresult module_global(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_size) {
	struct wire_find q = {.h = {.type = WIRE_GLOBAL_FIND}, .module = module->id};
	struct wire_value_reply reply;
	struct client_message out = {.head = &q,
				     .head_size = sizeof(q),
				     .data = (void *)name,
				     .data_size = strlen(name) + 1};
	struct client_message in = {.head = &reply, .head_size = sizeof(reply)};
	CUresult r = driver_call2(&out, -1, &in);

	if (r == CUDA_SUCCESS && ret) {
		*ret = reply.value;
	}
	if (r == CUDA_SUCCESS && ret_size) {
		*ret_size = reply.value2;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
					  const char *name) {
	CUresult r = module_check(hmod);

	if (r != CUDA_SUCCESS || !name) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	return module_global(hmod, name, dptr, bytes);
}

CUresult function_resolve(CUfunction function, CUcontext context, CUfunction *ret) {
	if (!function) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (function->tag == DRIVER_KERNEL) {
		return kernel_function((CUkernel)function, context, ret);
	}
	if (function->tag != DRIVER_FUNCTION) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (context && function->module->context != context) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*ret = function;
	return CUDA_SUCCESS;
}

/* ---- attributes ---- */

CUresult function_get_attribute(CUfunction f, CUfunction_attribute what, int *ret) {
	const struct wire_gpu *gpu = context_gpu(f->module->context);

	switch (what) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret = (int)f->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*ret = (int)f->static_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*ret = (int)f->local;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret = (int)f->regs;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret = (int)(gpu->cc_major * 10 + gpu->cc_minor);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret = f->max_dynamic_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret = f->carveout;
		return CUDA_SUCCESS;
	default:
		if (what < 0 || what >= CU_FUNC_ATTRIBUTE_MAX) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		*ret = 0; /* caches, clusters, constant memory: none */
		return CUDA_SUCCESS;
	}
}

CUresult function_set_attribute(CUfunction f, CUfunction_attribute what, int value) {
	const struct wire_gpu *gpu = context_gpu(f->module->context);

	switch (what) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || (unsigned)value + f->static_shared > gpu->block_shared_optin_max) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		f->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		f->carveout = value;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* @function may be a kernel: then that of the current context. */
static CUresult function_here(CUfunction function, CUfunction *ret) {
	CUcontext c;
	CUresult r = driver_current(&c);

	return r == CUDA_SUCCESS ? function_resolve(function, c, ret) : r;
}

EXPORT CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
	CUfunction f;
	CUresult r = function_here(hfunc, &f);

	if (r != CUDA_SUCCESS || !pi) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	return function_get_attribute(f, attrib, pi);
}

EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib,
					   int value) {
	CUfunction f;
	CUresult r = function_here(hfunc, &f);

	return r == CUDA_SUCCESS ? function_set_attribute(f, attrib, value) : r;
}

/* A hint; there is no cache to configure. */
EXPORT CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
	CUfunction f;

	(void)config;
	return function_here(hfunc, &f);
}

EXPORT CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
	CUfunction f;
	CUresult r = function_here(hfunc, &f);

	if (r == CUDA_SUCCESS) {
		*hmod = f->module;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc) {
	CUfunction f;
	CUresult r = function_here(hfunc, &f);

	if (r == CUDA_SUCCESS) {
		*name = f->name;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
					   size_t *paramSize) {
	CUfunction f;
	CUresult r = function_here(func, &f);

	if (r != CUDA_SUCCESS || !paramOffset || paramIndex >= f->n_params) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*paramOffset = f->params[paramIndex].offset;
	if (paramSize) {
		*paramSize = f->params[paramIndex].size;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
	CUfunction f;
	CUresult r = function_here(function, &f);

	if (r == CUDA_SUCCESS) {
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuFuncLoad(CUfunction function) {
	CUfunction f;

	return function_here(function, &f);
}
