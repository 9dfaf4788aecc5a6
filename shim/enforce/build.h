/*
 * build.h: the twin module of one module or library of the program, for one compute capability.
 *
 * Loads the twins' PTX beside the original and tells them where the original's variables are. At
 * once, even where the driver loads lazily: the image may be gone when the program's call returns,
 * and a compilation later on would come out of the time of the first job. Has
 * no lock: what changes after build_init() is atomic. See kernel.c for who may call when.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/real.h"

#include "shim/enforce/context.h"
#include "shim/enforce/image.h"
#include "shim/enforce/jit.h"

/* Contexts that one library's twins are made ready for at once: a machine's GPUs. */
#define BUILD_CONTEXTS_MAX 16

struct build {
	unsigned sm;
	bool is_library;
	void *original;		   /* the program's CUmodule or CUlibrary; borrowed */
	const struct image *image; /* owned */
	CUmodule module;	   /* the twins'; NULL for a library or if there are none */
	CUlibrary library;	   /* owned, like module */
	char *refusal;		   /* owned; why nothing in it has a twin, else NULL */
	_Atomic(bool) *missing; /* owned; of transform->vars: the original's address is not known */
	_Atomic(bool) any_missing;
	_Atomic(CUcontext) ready[BUILD_CONTEXTS_MAX]; /* contexts where variables are filled in */
	_Atomic(unsigned) next_ready;
};

/* @image, @path as in image_get(). @jit: what the original was compiled with. @original is loaded
 * already; for a module its context is current. Never fails: what can't be had is a refusal. */
void build_init(struct build *b, bool is_library, void *original, const void *image,
		const char *path, const struct jit *jit, unsigned sm);

/* The twins' module is unloaded if @in_driver; false: its context or the process is gone. */
void build_deinit(struct build *b, bool in_driver);

/* In the current context, which is @c: fills in variables if that was not done. Return: may twins
 * of this build be launched there? */
bool build_make_ready(struct build *b, struct context *c);

/* The twin of @kernel, one of b->image->transform->kernels that is confinable. NULL: the driver
 * does not find it. A library's is a CUkernel cast, as launches take it. */
CUfunction build_find(const struct build *b, const struct twin_kernel *kernel);

/* Does @kernel use a variable whose address is not known? */
bool build_misses_variable(const struct build *b, const struct twin_kernel *kernel);

void build_forget_context(struct build *b, CUcontext context);
