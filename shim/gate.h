/*
 * gate.h: work in streams that waits for a word of the keeper (keeper.h): pieces of copies that are
 * held (copies.h), and kernels of programs whose terms say that they yield.
 *
 * Such a kernel does not begin while a program that is awaited has a job open that is due earlier
 * and needs the GPU, nor in a guard band before one (proto/board.h), which is as long as the
 * kernel. Short ones share a gate, 100 us of them at most. Graphs wait each. How long a kernel
 * takes is profiled, or measured by the way (kernel-time.h); until it is known, the mean of the job
 * before counts.
 *
 * The program sees no difference: one wait more in its stream, before the launch. It goes without
 * one into streams that are being captured, and with a driver that can't let streams wait for
 * values. Other streams may wait too, for streams share connections to the GPU: of copies that is
 * too much (see gate_others_go_on()), but what kernels wait for they would wait for anyhow.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/terms.h"
#include "shim/lane.h"
#include "shim/op.h"

/* Whether streams that don't wait go on, beside one that does: not in programs of many streams,
 * which share connections to the GPU. CUDA_DEVICE_MAX_CONNECTIONS=32 makes room for more streams,
 * but not for any number. */
bool gate_others_go_on(void);

/* Not inline: see below. */
struct kernel_sample *gate_kernel_wait(const struct op *op);

/* Before the launch of a kernel, or a graph, by @op, which has begun. Return: NULL, or what
 * measures the kernel, for kernel_time_end(). */
static inline struct kernel_sample *gate_kernel(const struct op *op) {
	return terms_yield(atomic_load_explicit(&op->lane->terms, memory_order_relaxed))
		       ? gate_kernel_wait(op)
		       : NULL;
}
