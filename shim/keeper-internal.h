/*
 * keeper-internal.h: what the files of the keeper (keeper.h) share: keeper.c is its thread, and has
 * the docks; keeper-copies.c and keeper-kernels.c know what waits at the gates.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/board.h"
#include "proto/limits.h"
#include "proto/units.h"
#include "shim/seat.h"

#define COPIES_MAX 60 /* under way in one context */

/* Kernels that take about as long have a gate together: the first of these are for those that take
 * nobody knows how long, and for those that share one; each other one for twice as long ones. */
#define KERNEL_GATES 16

/* Between two looks where something may soon wait at a closed gate. With the least timer slack such
 * naps last 4 us longer, and take 12 % of a CPU (H200's host). */
#define KEEPER_NAP_NS (30 * NSEC_PER_USEC)

/* Pinned memory of a context; each gate has a cache line of its own. */
struct words {
	_Atomic uint32_t gate;
	uint32_t reserved[15];
	_Atomic uint32_t kernel_gates[KERNEL_GATES];
	_Atomic uint32_t done[COPIES_MAX];
	_Atomic uint32_t kernels_done;
};

/* A copy that is under way. */
struct flight {
	uint64_t due; /* late_due once it is too late for the first one */
	uint64_t late_due;
	nsec_t began;
	size_t bytes;
	size_t tail;  /* of these: they follow behind the word */
	size_t piece; /* waits for its gate, and what follows without a gate: of these at most */
	nsec_t spin_until;
	uint32_t number; /* of the copy: what is written behind it */
	bool held;
	nsec_t waited; /* for its gate */
	nsec_t looked; /* until when that is counted */
};

/* The copies of one context. */
struct dock {
	_Atomic(CUcontext) context; /* NULL: free, or gone */
	_Atomic bool going;	    /* it is not free yet */
	struct words *words;	    /* the driver's, as long as the context lives */
	CUdeviceptr at;
	_Atomic unsigned gpu;
	_Atomic uint64_t taken;	 /* flights, a bit each */
	_Atomic uint64_t flying; /* of those, the ones that the keeper has to look at */
	struct flight flights[COPIES_MAX];
	_Atomic CUdevice device; /* of the jobs that yield */
	/* What is behind each gate of kernels, see keeper_gate(); a bit for each that was ever used
	 */
	_Atomic nsec_t takes[KERNEL_GATES];
	_Atomic uint32_t used;
	_Atomic bool yields; /* the keeper looks after these */
	/* Of the job that is awaited: what is written behind its kernels, the job, and its device.
	 */
	_Atomic uint32_t end_value;
	_Atomic uint32_t end_job; /* 0: nothing is watched */
	_Atomic CUdevice end_device;
	_Atomic nsec_t end_since; /* it is */
	/* the keeper's */
	struct board_gate gate;
	struct board_yield yields_at[KERNEL_GATES];
};

/* What is under way in a dock, or several. */
struct keeper_view {
	nsec_t now, spin_until;
	uint64_t announced[PROTO_TERMS_GPUS_MAX]; /* the earliest; 0: none */
	nsec_t length[PROTO_TERMS_GPUS_MAX];
	bool any;
	bool others; /* copy too */
	bool closed; /* a gate */
	bool yields; /* jobs of ours do */
	bool ends;   /* kernels of ours will */
	nsec_t ends_since;
};

/* The one of @context. NULL: it has none yet. */
struct dock *keeper_find_dock(CUcontext context);

/* The same, made if need be, in @context, which is current. NULL: there is no room or no memory, or
 * the program captures. */
struct dock *keeper_dock(CUcontext context);

/* Gates of contexts that go, and of processes that exit, are open. */
void keeper_set_gate(struct dock *d, _Atomic uint32_t *gate, bool open);

/* By other threads: until the keeper has looked, or is late. */
void keeper_close_gate(struct dock *d, _Atomic uint32_t *gate, nsec_t now);

/* Wakes the keeper. */
void keeper_call(void);

bool keeper_is_leaving(void);

/* The keeper's looks, at a dock whose context does not go meanwhile. */

/* Takes off copies that are done. Return: what is held. */
struct board_copy keeper_look_at_copies(struct dock *d, struct keeper_view *v);

/* For as long as we have jobs that yield. Who opens one says so first, and calls us then. */
void keeper_look_at_kernels(struct dock *d, const struct seat *s, struct keeper_view *v);

/* Whether the kernels that others wait for are done. */
void keeper_look_at_end(struct dock *d, struct keeper_view *v);
