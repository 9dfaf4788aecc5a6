/*
 * rm.h: the ioctls of NVIDIA's resource manager that concern channel groups, as its open kernel
 * modules publish them (nvos.h, nv_escape.h, cl0080.h, alloc_channel.h, ctrla06c.h,
 * ctrl2080fifo.h). A channel group is what a GPU gives its time slices to: a context has one that
 * computes.
 *
 * Each is _IOWR(RM_TYPE, nr, structure) on the control device. It returns 0 whenever the structure
 * has the right size; what came of it is in the structure's status.
 */
#pragma once

#include <stdint.h>

/* /dev/nvidiactl, a character device. */
#define RM_DEVICE_MAJOR 195
#define RM_DEVICE_MINOR 255

#define RM_TYPE	      'F'
#define RM_FREE_NR    0x29
#define RM_CONTROL_NR 0x2A
#define RM_ALLOC_NR   0x2B

#define RM_CLASS_DEVICE	       0x0080u
#define RM_CLASS_CHANNEL_GROUP 0xA06Cu
#define RM_CLASS_SUBDEVICE     0x2080u

/* Each architecture has a class of its own: 0xC36F, 0xC46F, 0xC56F, 0xC86F, 0xC96F. */
#define RM_CLASS_IS_CHANNEL(class) (((class) & 0xFFu) == 0x6Fu)

/* Of a channel group. A time slice that was set holds once the group is scheduled again. */
#define RM_COMMAND_GROUP_SCHEDULE      0xA06C0101u
#define RM_COMMAND_GROUP_SET_TIMESLICE 0xA06C0103u
#define RM_COMMAND_GROUP_GET_TIMESLICE 0xA06C0104u
#define RM_COMMAND_GROUP_PREEMPT       0xA06C0105u

/* Of a subdevice, about channels of any client. */
#define RM_COMMAND_DISABLE_CHANNELS 0x2080110Bu
#define RM_DISABLE_CHANNELS_MAX	    64

/* NV2080_ENGINE_TYPE_GRAPHICS, which computes too, and those of a GPU in parts (MIG). */
#define RM_ENGINE_COMPUTE_FIRST 1u
#define RM_ENGINE_COMPUTE_LAST	8u

struct rm_free { /* NVOS00: the object with all below it */
	uint32_t client, parent, object, status;
};

struct rm_alloc { /* NVOS64 */
	uint32_t client, parent, object, class;
	uint64_t params, rights;
	uint32_t params_size, flags, status, reserved;
};

struct rm_alloc_short { /* NVOS21 */
	uint32_t client, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};

struct rm_control { /* NVOS54 */
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};

/* The beginning of NV0080_ALLOC_PARAMETERS. */
struct rm_device_params {
	uint32_t device; /* number of the GPU */
};

/* The beginning of NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS. The group's parent is a device. */
struct rm_group_params {
	uint32_t error, ecc_error, va_space, engine;
};

/* NVA06C_CTRL_PREEMPT_PARAMS */
struct rm_preempt {
	uint8_t wait, manual_timeout;
	uint32_t timeout_us;
};

/* NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS. Unless @only_scheduling they are off the GPU when the
 * call returns. It outlives its caller: they stay disabled until they are enabled or freed. */
struct rm_disable_channels {
	uint8_t disable;
	uint32_t n;
	uint8_t only_scheduling, rewind;
	uint64_t event; /* 0 */
	uint32_t clients[RM_DISABLE_CHANNELS_MAX];
	uint32_t channels[RM_DISABLE_CHANNELS_MAX];
};

/* NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS, as of driver 580 */
struct rm_schedule {
	uint8_t enable, skip_submit, skip_enable;
};

/* NVA06C_CTRL_TIMESLICE_PARAMS */
struct rm_timeslice {
	uint64_t us;
};

_Static_assert(sizeof(struct rm_free) == 16, "NVOS00");
_Static_assert(sizeof(struct rm_alloc) == 48, "NVOS64");
_Static_assert(sizeof(struct rm_alloc_short) == 32, "NVOS21");
_Static_assert(sizeof(struct rm_control) == 32, "NVOS54");
_Static_assert(sizeof(struct rm_disable_channels) == 536,
	       "NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS");
_Static_assert(sizeof(struct rm_preempt) == 8, "NVA06C_CTRL_PREEMPT_PARAMS");
