/*
 * twin.h: what a transformed kernel (the "twin") and the code that launches it agree on.
 *
 * A twin takes the original's parameters and, last, one struct twin_arg by value. It is launched
 * with a one-dimensional grid of n_workers blocks and the original's block size. The layouts are
 * read by PTX text that transform.c emits: change both together.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/smset.h"

/* The twin of kernel NAME is the entry TWIN_PREFIX + NAME. */
#define TWIN_PREFIX "sbeet_twin_"

/* .const array of u64 in a twin module: addresses, in the original module, of the module-scope
 * variables that its kernels use. Filled in by the launcher before the first launch, in the order
 * of struct transform.vars. Absent if there are none. */
#define TWIN_VARS_NAME "sbeet_twin_vars"

struct twin_arg {
	uint64_t ctl;	   /* device address of a struct twin_ctl, 16-byte aligned */
	uint64_t set;	   /* device address of a struct twin_set, 16-byte aligned */
	uint64_t n_blocks; /* of the virtual grid: grid_x * grid_y * grid_z */
	uint32_t grid_x;   /* what the kernel sees as %nctaid: at most 2^31 - 1, 65535, 65535 */
	uint32_t grid_y;
	uint32_t grid_z;
	uint32_t n_workers;   /* blocks launched */
	uint32_t reserved[2]; /* 0 */
};

/* Which SMs may work. Written by the host, read by workers on arrival and at each claim; the host
 * may change it while kernels run. */
struct twin_set {
	uint64_t sms[SMSET_WORDS]; /* by %smid */
	uint32_t stop;		   /* not 0: claim nothing more */
	uint32_t reserved[3];
};

/*
 * One launch at a time uses a control block: the last worker to leave puts it back to its initial
 * state, so the kernel that comes next on the same stream can use it and nobody has to clear it
 * from the host. All zero at the start. n_workers slots follow it.
 *
 * A launch runs its whole grid, whatever happens to the set: if every worker has left and blocks
 * are left over, the last one runs them where it is, and counts them as outside. Only twin_set.stop
 * or an empty set end it earlier: then `next` keeps the first block that was not claimed, `stops`
 * counts instead of `launches`, and a launch with the same arguments goes on there. So nothing else
 * may be launched with the same control block before that: who stops must have one launch in flight
 * on each stream whose set it is. Programs queue several, so the shim stops jobs between launches
 * (lane.h) and leaves the flag at 0; tests and measure-twins use it.
 *
 * The host may give the block to another stream once `launches` and `stops` together are the number
 * of launches begun and `next` is 0.
 */
struct twin_ctl {
	/* In the low TWIN_NEXT_BITS the first virtual block that is not claimed yet, and above the
	 * grid's end one more for each worker that found none; in the rest, workers that left
	 * before the end. So every worker counts here once when it goes. */
	uint64_t next;
	uint64_t outside;  /* virtual blocks run outside the set; only ever counted up */
	uint64_t launches; /* launches that ran to the end of their grid; only ever counted up */
	uint64_t stops;	   /* launches that ended before it; only ever counted up */
			   /* struct twin_slot slots[n_workers] */
};

#define TWIN_NEXT_BITS	 48
#define TWIN_BLOCKS_MAX	 (1ull << 47) /* a day and a half, at one block a nanosecond */
#define TWIN_WORKERS_MAX 65535u

/* How the claiming thread tells the others of its block, a half for each claim in turn. Private to
 * the twin; need not be cleared. */
struct twin_slot {
	uint32_t half[2][2]; /* x; y and z in 16 bits each */
};

static inline size_t twin_ctl_size(uint32_t n_workers) {
	return sizeof(struct twin_ctl) + (size_t)n_workers * sizeof(struct twin_slot);
}

_Static_assert(sizeof(struct twin_arg) == 48, "read by PTX");
_Static_assert(sizeof(struct twin_slot) == 16, "read by PTX");
_Static_assert(sizeof(struct twin_ctl) == 32, "read by PTX");
_Static_assert(sizeof(struct twin_set) == 48, "read by PTX");
