/*
 * jit.h: options of the driver's compiler that a program gives with its code, as far as its twins
 * are compiled with them too.
 *
 * Those are the ones that change the code: how many registers it may take, how it is optimised (by
 * which ptxas decides what becomes a fused multiply-add, so results), how it is cached, for what.
 * The others ask for a log or a time, choose between parts of an image, or are for what is not PTX.
 */
#pragma once

#include <cuda.h>

/* More than there are kinds that are kept. */
#define JIT_OPTIONS_MAX 16

/* All zero: none. The values are numbers, whatever their type says. */
struct jit {
	unsigned n;
	CUjit_option options[JIT_OPTIONS_MAX];
	void *values[JIT_OPTIONS_MAX];
};

/* Keeps what twins share of the @n options; a later one of a kind takes the place of an earlier.
 * To be called before the driver, which writes into values. @options, @values: as the driver takes
 * them; NULL adds nothing. */
void jit_add(struct jit *jit, unsigned n, const CUjit_option *options, void *const *values);
