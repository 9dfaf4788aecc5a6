/*
 * driver-group.c: the ioctls by which the real driver makes a context's channel groups: a client on
 * a descriptor of nvidiactl, a device with a subdevice for each GPU in use, four groups below it
 * for each context, the one that computes first, and channels below these. Handles are used again
 * as soon as they are free. Real drivers use one of two structures to allocate, this one the older
 * one for contexts that are not primary.
 */
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/simgpu/driver.h"
#include "tests/simgpu/rm.h"

#define HANDLE_FIRST 0x5c000000u
#define HANDLES_MAX  1024
#define GPUS_MAX     8

#pragma weak simgpu_control_open

static const uint32_t engines[DRIVER_GROUPS] = {RM_ENGINE_GRAPHICS, RM_ENGINE_COPY2,
						RM_ENGINE_COPY3, RM_ENGINE_COPY4};

static struct {
	bool tried;
	int fd; /* of nvidiactl; -1: there is none */
	uint32_t client;
	uint32_t devices[GPUS_MAX]; /* by GPU; 0: not allocated yet */
	bool used[HANDLES_MAX];
} control;

static uint32_t handle_take(void) {
	for (uint32_t i = 0; i < HANDLES_MAX; i++) {
		if (!control.used[i]) {
			control.used[i] = true;
			return HANDLE_FIRST + i;
		}
	}
	return 0;
}

static void handle_give(uint32_t handle) {
	control.used[handle - HANDLE_FIRST] = false;
}

/* Return: 0, or -1 when there is no such object. */
static int call_alloc(struct rm_alloc *a) {
	return ioctl(control.fd, _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc), a) == 0 &&
			       a->status == RM_OK
		       ? 0
		       : -1;
}

/* The same with the older structure. */
static int call_alloc_short(struct rm_alloc *a) {
	struct rm_alloc_short s = {.client = a->client,
				   .parent = a->parent,
				   .object = a->object,
				   .class = a->class,
				   .params = a->params,
				   .params_size = a->params_size};

	if (ioctl(control.fd, _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc_short), &s) < 0 ||
	    s.status != RM_OK) {
		return -1;
	}
	a->object = s.object;
	return 0;
}

/* @brief: with the older structure. Return: the handle, or 0. */
static uint32_t allocate(uint32_t parent, enum rm_class class, void *params, uint32_t size,
			 bool brief) {
	struct rm_alloc a = {
		.client = control.client,
		.parent = parent,
		.object = class == RM_CLASS_CLIENT ? 0 : handle_take(),
		.class = class,
		.params = (uintptr_t)params,
		.params_size = size,
	};

	if (class != RM_CLASS_CLIENT && a.object == 0) {
		return 0;
	}
	if ((brief ? call_alloc_short(&a) : call_alloc(&a)) < 0) {
		if (class != RM_CLASS_CLIENT) {
			handle_give(a.object);
		}
		return 0;
	}
	return a.object;
}

/* Return: the device object of the GPU, or 0. */
static uint32_t open_device(unsigned gpu) {
	struct rm_device_params params = {.device = gpu};
	struct rm_subdevice_params sub = {.subdevice = 0};

	if (!control.tried) {
		control.tried = true;
		control.fd = simgpu_control_open ? simgpu_control_open() : -1;
		control.client = control.fd < 0 ? 0 : allocate(0, RM_CLASS_CLIENT, NULL, 0, false);
	}
	if (control.client && !control.devices[gpu]) {
		control.devices[gpu] =
			allocate(control.client, RM_CLASS_DEVICE, &params, sizeof(params), false);
		allocate(control.devices[gpu], RM_CLASS_SUBDEVICE, &sub, sizeof(sub), false);
	}
	return control.devices[gpu];
}

void groups_new(CUcontext context) {
	uint32_t device = open_device(driver_gpu_index(context->device));

	for (unsigned i = 0; device && i < DRIVER_GROUPS; i++) {
		struct rm_group_params params = {.va_space = context->id, .engine = engines[i]};

		context->groups[i] = allocate(device, RM_CLASS_CHANNEL_GROUP, &params,
					      sizeof(params), !context->is_primary);
		for (unsigned k = 0; context->groups[i] && k < (i == 0 ? DRIVER_CHANNELS : 1);
		     k++) {
			context->channels[i][k] =
				allocate(context->groups[i], RM_CLASS_CHANNEL, NULL, 0, false);
		}
	}
}

void groups_free(CUcontext context) {
	for (unsigned i = 0; i < DRIVER_GROUPS; i++) {
		struct rm_free q = {.client = control.client,
				    .parent = control.devices[driver_gpu_index(context->device)],
				    .object = context->groups[i]};

		if (q.object &&
		    ioctl(control.fd, _IOWR(RM_TYPE, RM_FREE_NR, struct rm_free), &q) == 0) {
			handle_give(q.object);
			/* They went with it. */
			for (unsigned k = 0; k < DRIVER_CHANNELS; k++) {
				if (context->channels[i][k]) {
					handle_give(context->channels[i][k]);
				}
				context->channels[i][k] = 0;
			}
		}
		context->groups[i] = 0;
	}
}
