/*
 * whole.c: kernel.h and enforce.h for a shim that can only grant whole GPUs.
 */
#include "shim/enforce.h"
#include "shim/kernel.h"
#include "shim/real.h"

void kernel_module_loaded(CUmodule module, const void *image, const char *path) {
}
void kernel_module_unloading(CUmodule module) {
}
void kernel_function_found(CUmodule module, CUfunction function, const char *name) {
}
void kernel_library_loaded(CUlibrary library, const void *image, const char *path) {
}
void kernel_library_unloading(CUlibrary library) {
}
void kernel_library_kernel_found(CUlibrary library, CUkernel kernel, const char *name) {
}
void kernel_library_module_found(CUlibrary library, CUmodule module) {
}
void kernel_kernel_function_found(CUkernel kernel, CUfunction function) {
}
void kernel_attribute_set(CUfunction function, CUfunction_attribute attribute, int value) {
}
void kernel_cache_config_set(CUfunction function, CUfunc_cache config) {
}
void kernel_context_destroying(CUcontext context) {
}
struct kernel *kernel_find(CUfunction function) {
	return NULL;
}
uint32_t kernel_id(const struct kernel *k) {
	return 0;
}
const char *kernel_name(const struct kernel *k) {
	return "";
}
uint32_t kernel_enforcement_mask(const struct kernel *k, const struct launch *l) {
	return 1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
}
const char *kernel_refusal(const struct kernel *k) {
	return NULL;
}

CUresult enforce_launch(const struct enforce_grant *grant, const struct kernel *k,
			const struct launch *l, Sbeet__Enforcement *ret_how) {
	*ret_how = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	return enforce_launch_original(l);
}

CUresult enforce_launch_original(const struct launch *l) {
	const struct real *real = real_get();

	if (l->config) {
		return (l->per_thread_default ? real->cuLaunchKernelEx_ptsz : real->cuLaunchKernelEx)(
			l->config, l->function, l->params, l->extra);
	}
	if (l->cooperative) {
		return (l->per_thread_default ? real->cuLaunchCooperativeKernel_ptsz
					      : real->cuLaunchCooperativeKernel)(
			l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
			l->block[2], l->shared_bytes, l->stream, l->params);
	}
	return (l->per_thread_default ? real->cuLaunchKernel_ptsz : real->cuLaunchKernel)(
		l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
		l->block[2], l->shared_bytes, l->stream, l->params, l->extra);
}

int enforce_prepare(CUcontext context, const struct enforce_grant *grant) {
	return 0;
}
void enforce_stream_destroying(CUcontext context, CUstream stream) {
}
void enforce_context_destroying(CUcontext context) {
}
uint64_t enforce_outside_blocks(CUcontext context) {
	return 0;
}
void enforce_after_fork(void) {
}
