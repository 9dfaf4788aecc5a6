/*
 * gate.c: see gate.h.
 */
#include "shim/real.h"

#include "shim/gate.h"

#include <stdlib.h>

#include "shim/base/log.h"
#include "shim/keeper.h"
#include "shim/kernel-time.h"
#include "shim/place.h"
#include "shim/terms.h"
#include "shim/value.h"

/* Programs of more streams wait only if the user gave them so many connections, and have no more
 * streams than that. */
#define STREAMS_MAX 3
#define CONNECTIONS 32

/* The first look is after the driver's, to which the program may have said it late. */
static bool has_connections(void) {
	static _Atomic int known; /* 1: few, 2: CONNECTIONS */
	const char *value;

	if (atomic_load_explicit(&known, memory_order_relaxed) == 0) {
		value = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
		atomic_store(&known, value && strtoul(value, NULL, 10) >= CONNECTIONS ? 2 : 1);
	}
	return atomic_load_explicit(&known, memory_order_relaxed) == 2;
}

/* A stream that waits blocks those that share its connection to the GPU. More connections help, but
 * MPS has none to spare: with 32 in each program the fourth was refused (H200). */
bool gate_others_go_on(void) {
	unsigned n = place_count();

	return n <= STREAMS_MAX || (n <= CONNECTIONS && has_connections());
}

/* How long the kernel takes: @profiled, or as measured, or as those of the jobs before seem to; 0:
 * not known. */
static nsec_t each_ns(const struct op *op, nsec_t profiled, const struct kernel_time *time) {
	if (profiled || !op->launch) {
		return profiled;
	}
	return time && time->ns ? time->ns
				: atomic_load_explicit(&op->lane->launch_ns, memory_order_relaxed);
}

/* Short kernels that follow each other in a job's stream share a gate. Return: whether @op is
 * behind one already. */
static bool is_behind(const struct op *op, nsec_t each) {
	nsec_t behind = op->use->behind_ns;
	bool is = each > 0 && behind > 0 && behind + each <= PROTO_BEHIND_NS;

	op->use->behind_ns = each == 0 ? PROTO_BEHIND_NS : is ? behind + each : each;
	return is;
}

/* @each: how long it takes; 0: not known. */
static void wait_at_gate(const struct op *op, nsec_t each) {
	CUdevice device = op->lane->device;
	nsec_t takes = each > 0 && each < PROTO_BEHIND_NS ? PROTO_BEHIND_NS : each;
	CUdeviceptr gate;
	unsigned gpu;

	if (is_behind(op, each) || !value_can_wait(op->place.per_thread) ||
	    !terms_place(device, &gpu)) {
		return;
	}
	gate = keeper_gate(op->id->context, device, gpu, takes);
	if (gate && value_wait(op->place.at, op->place.per_thread, gate)) {
		log_once(LOG_LEVEL_INFO, "Kernels let jobs of others begin that are due earlier");
	}
}

struct kernel_sample *gate_kernel_wait(const struct op *op) {
	nsec_t profiled = op->launch ? terms_kernel_ns(op->lane->device) : 0;
	CUstream at = atomic_load_explicit(&op->use->stream, memory_order_relaxed);
	struct kernel_times *times = &op->worker->times;
	struct kernel_time *time = NULL;

	if (op->launch && !profiled) {
		time = kernel_time_find(times, op->launch);
	}
	wait_at_gate(op, each_ns(op, profiled, time));
	return time ? kernel_time_begin(times, time, op->id->context, at) : NULL;
}
