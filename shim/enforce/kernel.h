/*
 * kernel.h: which kernels the program has, and which of them have a twin.
 *
 * Modules and libraries are read as the program loads them: their PTX is transformed and loaded
 * beside the original, on the loading thread, so a launch never waits for it. Look-ups on the
 * launch path take no lock. One lock of this file guards changes; it is never held across a driver
 * call.
 *
 * All functions but kernel_find() are called by the hooks after the driver has said success
 * (before, for the ones that take away), outside any lock of the shim, with the depth counter
 * raised.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/enforce/jit.h"
#include "shim/launch.h"

struct kernel;

/* @image as the program passed it; @path for the functions that load a file (then @image is NULL).
 * @jit: the options for the compiler, NULL for none. */
void kernel_module_loaded(CUmodule module, const void *image, const char *path,
			  const struct jit *jit);
void kernel_module_unloading(CUmodule module);
void kernel_function_found(CUmodule module, CUfunction function, const char *name);

void kernel_library_loaded(CUlibrary library, const void *image, const char *path,
			   const struct jit *jit);
void kernel_library_unloading(CUlibrary library);
void kernel_library_kernel_found(CUlibrary library, CUkernel kernel, const char *name);
void kernel_library_module_found(CUlibrary library, CUmodule module);	 /* cuLibraryGetModule */
void kernel_kernel_function_found(CUkernel kernel, CUfunction function); /* cuKernelGetFunction */

/* Whether kernel_kernel_function_found() would change nothing: libraries ask before each launch.
 * Lock-free, without a call of the driver. */
bool kernel_function_is_known(CUkernel kernel, CUfunction function);

/* The kernels of a module or library that was just loaded wait first of all, so they can be
 * launched as dependent ones (dependent.h). Before any of them is found. */
void kernel_module_waits_first(CUmodule module);
void kernel_library_waits_first(CUlibrary library);

/* Attributes that a twin must share: maximum dynamic shared memory, carve-out, cache configuration.
 */
void kernel_attribute_set(CUfunction function, CUfunction_attribute attribute, int value);
void kernel_cache_config_set(CUfunction function, CUfunc_cache config);
void kernel_context_destroying(CUcontext context);

/* NULL for a function that was never seen. Lock-free. Valid until its module is unloaded. */
struct kernel *kernel_find(CUfunction function);

/* Changes before what kernel_find() says of a function does. */
extern _Atomic uint32_t kernel_epoch __attribute__((visibility("hidden")));

/* Code was loaded whose kernels wait first of all. Stays so. */
extern _Atomic bool kernel_any_waits_first __attribute__((visibility("hidden")));

/* Whether it waits first of all. */
bool kernel_waits_first(const struct kernel *k);

/* Unique in the process, from 1: KernelDef.id. */
uint32_t kernel_id(const struct kernel *k);
const char *kernel_name(const struct kernel *k);

/* What is looked up of a launch before it is let in, for the launch itself. */
struct kernel_use {
	struct context *context;
	struct twin *twin; /* NULL: it can't be confined */
	unsigned occupancy;
};

/* Mask of 1 << Sbeet__Enforcement: what a launch of @k with this block can keep, into a stream that
 * is not being captured. @context is the current one. @k may be NULL. */
uint32_t kernel_enforcement_mask(const struct kernel *k, const struct launch *l, CUcontext context,
				 struct kernel_use *ret);

/* Why it has no twin that can be confined, or NULL. */
const char *kernel_refusal(const struct kernel *k);

/* A launch of @k fits into no part of a GPU, because of @why, a static text. */
void kernel_need_whole(struct kernel *k, const char *why);

/* Why a launch needed the whole GPU, or NULL. */
const char *kernel_needs_whole(const struct kernel *k);

/*
 * Whether blocks of @k may wait for each other (shim/ptx/waits.h), and all of this launch fit on
 * the GPU of the current context at once: then it must run there as it is, for fewer SMs or workers
 * than it was made for would wait for ever. A larger grid would do so without us, too.
 */
bool kernel_waits_at_once(struct kernel *k, const struct launch *l);

/* Whether that may be so for any launch of @k. */
bool kernel_may_wait(const struct kernel *k);

void kernel_after_fork(void);

/* Blocks of the launch's shape that all SMs of the current context's GPU hold at once; 0: the
 * driver does not say. Calls it: not for every launch. */
uint64_t kernel_wave_blocks(const struct launch *l);
