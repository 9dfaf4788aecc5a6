/*
 * rm.h: the ioctls of NVIDIA's resource manager that concern channel groups, as its open kernel
 * modules publish them (nvos.h, nv_escape.h, class/cl0080.h, alloc/alloc_channel.h,
 * ctrl/ctrla06c.h, ctrl/ctrl2080/ctrl2080fifo.h, nvstatuscodes.h): numbers and structures, same on
 * x86-64 and aarch64.
 *
 * An ioctl on /dev/nvidiactl is _IOWR('F', nr, structure). It returns 0 whenever the structure has
 * the right size; what came of it stands in `status`. Objects form a tree below a client, whose
 * handle is valid on the open file on which it was allocated and on no other. Handles of other
 * objects are the caller's choice.
 *
 * Written apart from proto/rm.h on purpose: a wrong number there must not work here.
 */
#pragma once

#include <stdint.h>

#define RM_MAJOR 195 /* of the character devices; 255 is nvidiactl */
#define RM_MINOR 255

#define RM_TYPE	      'F'
#define RM_FREE_NR    0x29
#define RM_CONTROL_NR 0x2A
#define RM_ALLOC_NR   0x2B

enum rm_status {
	RM_OK = 0,
	RM_DUPLICATE = 0x19,
	RM_NO_RESOURCES = 0x1a,
	RM_INVALID_ARGUMENT = 0x1f,
	RM_INVALID_CLASS = 0x22,
	RM_INVALID_CLIENT = 0x23,
	RM_INVALID_DEVICE = 0x26,
	RM_INVALID_OBJECT_HANDLE = 0x33,
	RM_INVALID_PARENT = 0x36,
	RM_INVALID_PARAM_STRUCT = 0x3a,
	RM_NOT_SUPPORTED = 0x56,
	RM_NOT_FOUND = 0x57,
};

enum rm_class {
	RM_CLASS_CLIENT = 0x41,
	RM_CLASS_DEVICE = 0x80,
	RM_CLASS_CHANNEL_GROUP = 0xa06c,
	RM_CLASS_SUBDEVICE = 0x2080,
	RM_CLASS_CHANNEL = 0xc86f, /* HOPPER_CHANNEL_GPFIFO_A */
};

enum rm_engine { /* NV2080_ENGINE_TYPE_*: what an H200's program has groups for */
		 RM_ENGINE_GRAPHICS = 1,
		 RM_ENGINE_COPY2 = 11,
		 RM_ENGINE_COPY3 = 12,
		 RM_ENGINE_COPY4 = 13,
};

struct rm_free { /* NVOS00: with all objects below it */
	uint32_t client, parent, object, status;
};

struct rm_alloc { /* NVOS64; NVOS21 is the same up to params, then params_size and status */
	uint32_t client, parent, object, class;
	uint64_t params, rights;
	uint32_t params_size, flags, status, reserved;
};

struct rm_alloc_short {
	uint32_t client, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};

struct rm_control { /* NVOS54 */
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};

struct rm_device_params { /* of RM_CLASS_DEVICE */
	uint32_t device;  /* number of the GPU */
	uint32_t client_share, target_client, target_device, flags, reserved;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode, reserved2;
};

struct rm_subdevice_params { /* of RM_CLASS_SUBDEVICE, whose parent is a device */
	uint32_t subdevice;
};

struct rm_group_params { /* of RM_CLASS_CHANNEL_GROUP, whose parent is a device */
	uint32_t error, ecc_error, va_space, engine;
	uint8_t is_vgpu_plugin;
};

enum rm_command { /* controls of a channel group */
		  RM_GROUP_SCHEDULE = 0xa06c0101,
		  RM_GROUP_SET_TIMESLICE = 0xa06c0103,
		  RM_GROUP_GET_TIMESLICE = 0xa06c0104,
		  RM_GROUP_PREEMPT = 0xa06c0105,
		  RM_GROUP_GET_INFO = 0xa06c0106,
};

/* Control of a subdevice: channels, each by its client and handle. */
#define RM_DISABLE_CHANNELS	0x2080110b
#define RM_DISABLE_CHANNELS_MAX 64

struct rm_disable_channels {
	uint8_t disable;
	uint32_t n;
	uint8_t only_scheduling, rewind;
	uint64_t event; /* the kernel's; 0 from everybody else */
	uint32_t clients[RM_DISABLE_CHANNELS_MAX];
	uint32_t channels[RM_DISABLE_CHANNELS_MAX];
};

struct rm_schedule {
	uint8_t enable, skip_submit, skip_enable;
};

struct rm_timeslice {
	uint64_t us;
};

struct rm_preempt {
	uint8_t wait, manual_timeout;
	uint32_t timeout_us;
};

struct rm_info {
	uint32_t group; /* the hardware's number */
};

_Static_assert(sizeof(struct rm_free) == 16, "NVOS00");
_Static_assert(sizeof(struct rm_alloc) == 48, "NVOS64");
_Static_assert(sizeof(struct rm_alloc_short) == 32, "NVOS21");
_Static_assert(sizeof(struct rm_control) == 32, "NVOS54");
_Static_assert(sizeof(struct rm_device_params) == 56, "NV0080_ALLOC_PARAMETERS");
_Static_assert(sizeof(struct rm_group_params) == 20, "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS");
_Static_assert(sizeof(struct rm_disable_channels) == 536,
	       "NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS");
_Static_assert(sizeof(struct rm_preempt) == 8, "NVA06C_CTRL_PREEMPT_PARAMS");

/*
 * What the test library that stands for the kernel (ioctl.c) sends to simgpud for each ioctl: the
 * caller's structure and what its params point to, with a socket for the answer, which has the same
 * form. The connection itself is the open file: every duplicate of its descriptor, in any process,
 * is the same file.
 */
#define RM_PARAMS_MAX 1024

struct rm_packet {
	uint32_t nr;
	uint32_t size;	      /* of the structure */
	uint32_t params_size; /* 0 in an RM_ALLOC: as the class has it */
	int32_t error;	      /* answer: errno, 0: none */
	uint8_t arg[sizeof(struct rm_alloc)];
	uint8_t params[RM_PARAMS_MAX];
};

/* Name of the socket beside simgpud's, by which such a descriptor is known. */
#define RM_SOCKET "nvidiactl"

/* What libsimgpu-ioctl.so has for the simulated driver. Return: a descriptor of nvidiactl, or -1.
 */
int simgpu_control_open(void);

/* Bytes of a class's parameters, as far as they are simulated: a channel's are not. */
static inline uint32_t rm_params_size(uint32_t class) {
	return class == RM_CLASS_DEVICE		 ? sizeof(struct rm_device_params)
	       : class == RM_CLASS_SUBDEVICE	 ? sizeof(struct rm_subdevice_params)
	       : class == RM_CLASS_CHANNEL_GROUP ? sizeof(struct rm_group_params)
						 : 0;
}
