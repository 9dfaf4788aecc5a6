/*
 * api-library.c: libraries and kernels: modules that belong to no context. A library keeps its PTX
 * text and becomes a module in each context where one of its kernels is used first.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/driver.h"

static CUresult library_new(CUlibrary *ret, const void *image, size_t size, unsigned n_options,
			    CUjit_option *options, void **values) {
	char log[640] = "";
	const struct wire_gpu *gpu;
	CUlibrary l;
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS || !ret || !image) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* The text is chosen by device 0, or that of the current context. */
	r = driver_device(*context_slot() ? (*context_slot())->device : 0, &gpu);
	if (r != CUDA_SUCCESS) {
		free(l);
		return r;
	}
	r = image_ptx(image, size, gpu, &l->ptx, &l->ptx_size, log, sizeof(log));
	if (r != CUDA_SUCCESS) {
		image_log(n_options, options, values, log);
		free(l);
		return r;
	}
	l->regs_max = image_regs_max(n_options, options, values);
	l->tag = DRIVER_LIBRARY;
	*ret = l;
	return CUDA_SUCCESS;
}

static CUresult library_check(CUlibrary library) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	return library && library->tag == DRIVER_LIBRARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The library's module in @context, loaded if need be. */
static CUresult library_module(CUlibrary library, CUcontext context, CUmodule *ret) {
	struct library_module *m;
	char log[640] = "";
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&driver.lock);
	for (m = library->modules; m; m = m->next) {
		if (m->module->context == context) {
			break;
		}
	}
	if (!m) {
		m = calloc(1, sizeof(*m));
		r = m ? module_new(context, library->ptx, library->ptx_size, library->regs_max,
				   library, &m->module, log, sizeof(log))
		      : CUDA_ERROR_OUT_OF_MEMORY;
		if (r == CUDA_SUCCESS) {
			m->next = library->modules;
			library->modules = m;
		} else {
			image_log(0, NULL, NULL, log);
			free(m);
		}
	}
	pthread_mutex_unlock(&driver.lock);
	if (r == CUDA_SUCCESS) {
		*ret = m->module;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code,
					  CUjit_option *jitOptions, void **jitOptionsValues,
					  unsigned int numJitOptions,
					  CUlibraryOption *libraryOptions,
					  void **libraryOptionValues,
					  unsigned int numLibraryOptions) {
	(void)libraryOptions; /* about when to load and what to keep: nothing changes here */
	(void)libraryOptionValues;
	(void)numLibraryOptions;
	return library_new(library, code, 0, numJitOptions, jitOptions, jitOptionsValues);
}

EXPORT CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
					      CUjit_option *jitOptions, void **jitOptionsValues,
					      unsigned int numJitOptions,
					      CUlibraryOption *libraryOptions,
					      void **libraryOptionValues,
					      unsigned int numLibraryOptions) {
	char *bytes;
	size_t n;
	CUresult r = file_read(fileName, &bytes, &n);

	(void)libraryOptions;
	(void)libraryOptionValues;
	(void)numLibraryOptions;
	if (r != CUDA_SUCCESS) {
		return r;
	}
	r = library_new(library, bytes, n, numJitOptions, jitOptions, jitOptionsValues);
	free(bytes);
	return r;
}

EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
	CUresult r = library_check(library);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	while (library->modules) {
		struct library_module *m = library->modules;

		library->modules = m->next;
		module_free(m->module);
		free(m);
	}
	while (library->kernels) {
		CUkernel k = library->kernels;

		library->kernels = k->next;
		k->tag = 0;
		free(k->name);
		free(k);
	}
	library->tag = 0;
	free(library->ptx);
	free(library);
	return CUDA_SUCCESS;
}

/* The library's handle for the kernel @name, which exists. */
static CUresult library_kernel(CUlibrary library, const char *name, CUkernel *ret) {
	CUkernel k;

	pthread_mutex_lock(&driver.lock);
	for (k = library->kernels; k; k = k->next) {
		if (strcmp(k->name, name) == 0) {
			break;
		}
	}
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (k) {
			k->name = strdup(name);
		}
		if (k && k->name) {
			k->tag = DRIVER_KERNEL;
			k->library = library;
			k->next = library->kernels;
			library->kernels = k;
		} else {
			free(k);
			k = NULL;
		}
	}
	pthread_mutex_unlock(&driver.lock);
	if (!k) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = k;
	return CUDA_SUCCESS;
}

/* The library's module here and now. */
static CUresult library_here(CUlibrary library, CUmodule *ret) {
	CUcontext c;
	CUresult r = library_check(library);

	if (r == CUDA_SUCCESS) {
		r = driver_current(&c);
	}
	return r == CUDA_SUCCESS ? library_module(library, c, ret) : r;
}

EXPORT CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
	CUmodule m;
	CUfunction f;
	CUresult r;

	if (!pKernel || !name || !*name) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = library_here(library, &m);
	if (r == CUDA_SUCCESS) {
		r = module_function(m, name, 0, &f);
	}
	return r == CUDA_SUCCESS ? library_kernel(library, name, pKernel) : r;
}

EXPORT CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) {
	CUmodule m;
	CUresult r = library_here(lib, &m);

	if (r == CUDA_SUCCESS) {
		*count = m->n_kernels;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels,
						  CUlibrary lib) {
	CUmodule m;
	CUresult r = library_here(lib, &m);

	for (unsigned i = 0; r == CUDA_SUCCESS && i < numKernels && i < m->n_kernels; i++) {
		CUfunction f;

		r = module_function(m, "", i, &f);
		if (r == CUDA_SUCCESS) {
			r = library_kernel(lib, f->name, &kernels[i]);
		}
	}
	return r;
}

EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
	return pMod ? library_here(library, pMod) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
					   const char *name) {
	CUmodule m;
	CUresult r = library_here(library, &m);

	return r == CUDA_SUCCESS ? module_global(m, name, dptr, bytes) : r;
}

/* ---- kernels ---- */

CUresult kernel_function(CUkernel kernel, CUcontext context, CUfunction *ret) {
	CUmodule m;
	CUresult r;

	if (!kernel || kernel->tag != DRIVER_KERNEL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = library_module(kernel->library, context, &m);
	return r == CUDA_SUCCESS ? module_function(m, kernel->name, 0, ret) : r;
}

static CUresult kernel_here(CUkernel kernel, CUfunction *ret) {
	CUcontext c;
	CUresult r = driver_current(&c);

	return r == CUDA_SUCCESS ? kernel_function(kernel, c, ret) : r;
}

EXPORT CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
	return pFunc ? kernel_here(kernel, pFunc) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) {
	if (!pLib || !kernel || kernel->tag != DRIVER_KERNEL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*pLib = kernel->library;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc) {
	if (!name || !hfunc || hfunc->tag != DRIVER_KERNEL) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*name = hfunc->name;
	return CUDA_SUCCESS;
}

/* @dev names a device; the function is that of the current context, if it is on @dev. */
static CUresult kernel_on_device(CUkernel kernel, CUdevice dev, CUfunction *ret) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	return c->device == dev ? kernel_function(kernel, c, ret) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult CUDAAPI cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
					     CUdevice dev) {
	CUfunction f;
	CUresult r = kernel_on_device(kernel, dev, &f);

	if (r != CUDA_SUCCESS || !pi) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	return function_get_attribute(f, attrib, pi);
}

EXPORT CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
					     CUdevice dev) {
	CUfunction f;
	CUresult r = kernel_on_device(kernel, dev, &f);

	return r == CUDA_SUCCESS ? function_set_attribute(f, attrib, val) : r;
}

/* A hint; there is no cache to configure. */
EXPORT CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
	CUfunction f;

	(void)config;
	return kernel_on_device(kernel, dev, &f);
}

EXPORT CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex,
					     size_t *paramOffset, size_t *paramSize) {
	CUfunction f;
	CUresult r = kernel_here(kernel, &f);

	return r == CUDA_SUCCESS ? cuFuncGetParamInfo(f, paramIndex, paramOffset, paramSize) : r;
}
