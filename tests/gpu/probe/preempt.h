/*
 * preempt.h: channel groups of the programs of a probe and the driver's control that preempts them.
 *
 * Each program (an owner) has a place of 64 bytes on the shared page (probe.h); preempt-network.py
 * reads and writes the same words. preempt.c, preloaded, fills in the group; a program whose work
 * is urgent sets open while it has a job; preempt-loop.c preempts the groups of all owners of a
 * lower level meanwhile.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

#define OWNERS_MAX 16

struct owner {
	volatile uint32_t ready;   /* the group's fields are set */
	volatile uint32_t pid, fd; /* process, its descriptor of the resource manager's client */
	volatile uint32_t client, object;
	volatile uint32_t engine; /* NV2080_ENGINE_TYPE_*: 1 is graphics and compute */
	volatile uint32_t groups; /* channel groups that this process has allocated */
	volatile uint32_t level;  /* higher is more urgent */
	volatile uint32_t open;	  /* has a job open */
	volatile uint32_t active; /* told to work */
	volatile uint32_t warm;	  /* has run its work once */
	volatile uint32_t reserved;
	volatile uint64_t done; /* units of work */
	volatile uint64_t reserved2;
};

struct preempt_page {
	volatile uint32_t stop;	 /* all programs end */
	volatile uint32_t loops; /* preempt-loop runs */
	volatile uint32_t reserved[14];
	struct owner owner[OWNERS_MAX];
};

/* The resource manager's ioctl for controls: "F", nr 0x2A, 32 bytes. */
#define RM_CONTROL	    0xC020462AUL
#define RM_ALLOC_NR	    0x2B
#define CHANNEL_GROUP_CLASS 0xA06C
#define GROUP_PREEMPT	    0xA06C0105
#define GROUP_SET_TIMESLICE 0xA06C0103
#define GROUP_GET_TIMESLICE 0xA06C0104
#define GROUP_GET_INFO	    0xA06C0106

struct rm_control {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t size, status;
};

struct rm_preempt {
	uint8_t wait, manual_timeout;
	uint32_t timeout_us;
};

/* Return: 0, the resource manager's status, or -1. */
static inline int rm_control(int fd, const struct owner *o, uint32_t command, void *params,
			     uint32_t size) {
	struct rm_control c = {o->client, o->object, command, 0, (uint64_t)(uintptr_t)params,
			       size,	  0};

	return ioctl(fd, RM_CONTROL, &c) < 0 ? -1 : (int)c.status;
}

static inline int group_preempt(int fd, const struct owner *o, int wait) {
	struct rm_preempt p = {(uint8_t)wait, 0, 0};

	return rm_control(fd, o, GROUP_PREEMPT, &p, sizeof(p));
}
