/*
 * green.h: partitions of a GPU as green contexts: a set of SMs, exact, and the same SMs in every
 * process that shares the GPU, which %smid under MPS is not.
 *
 * The driver cuts a GPU into groups of a few SMs, always in the same order. Number the SMs by that
 * order, and group i of size `step` is {i * step .. i * step + step - 1}, and what is left over
 * comes last: that is what the sets of a grant with ENFORCEMENT_GREEN mean. A partition is the
 * union of whole groups. It costs about a millisecond and 5.5 MiB of device memory to make (H200),
 * so it is made once, when a job is first granted its set, and kept.
 *
 * Groups of 8 on Hopper: finer ones can be had if the driver is told to ignore which SMs can hold a
 * thread-block cluster together, but then kernels with clusters run in no part of the GPU (measured
 * on an H200, driver 580), and cuBLAS is full of them.
 *
 * Only primary contexts can be cut. Where the driver is too old, or the context the program's own,
 * green_get() says so and jobs don't offer it.
 *
 * Not for the launch path but for green_get() and green_find(), which take no lock. One lock of
 * this file guards changes and is held across calls into the driver, which wants one thread at a
 * time for a green context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/real.h"

#include "proto/limits.h"
#include "proto/smset.h"

/* A few more than the daemon plans with: it may change its mind. */
#define GREEN_PARTITIONS_MAX (PROTO_GREEN_ROWS_MAX + 8)

/* Of the GPU's free memory, partitions that are made ahead may take one part in so many. */
#define GREEN_AHEAD_PART 64

struct green;

/* Where work can go: a set of SMs, and the level of its streams. Partitions of one set share its
 * green context; one without a set has streams of the whole GPU. */
struct partition;

/* What can be cut out of @context; made on first sight. NULL: nothing. */
struct green *green_get(CUcontext context);

/* Whether any context of this process could be cut. Takes no lock. */
bool green_possible(void);

/* Sets are made of groups of so many SMs, from SM 0 on. */
unsigned green_step(const struct green *g);

/* SMs of the GPU. */
unsigned green_sms(const struct green *g);

/* The partition that green_make() made for @set and @level. NULL: there is none. Takes no lock. */
struct partition *green_find(const struct green *g, const struct smset *set, unsigned level);

/*
 * Makes the partition of @set, of a GPU with @gpu_sms SMs, if there is none yet.
 * @set: empty: the whole GPU. @level: 0 to PROTO_TERMS_LEVEL_MAX.
 * Return: 0; -EINVAL for a set that is not made of whole groups, or a GPU of another size; -ENOSPC
 * above GREEN_PARTITIONS_MAX sets; -ENOMEM; -EIO for anything else that the driver says.
 */
int green_make(struct green *g, const struct smset *set, unsigned level, unsigned gpu_sms);

/* Whether it has a set, and so less than the whole GPU. */
bool green_confines(const struct partition *p);

/* Its level. */
unsigned green_level(const struct partition *p);

/* The partition, of any level, that stands for the green context of @p's set. */
struct partition *green_owner(struct partition *p);

/* Rows of groups of SMs that a program will be granted on a GPU. */
struct green_rows {
	const uint8_t *uuid; /* of the GPU, PROTO_UUID_BYTES */
	unsigned group, last_group;
	bool anywhere; /* else those that begin or end with the GPU */
};

/* Remembers them for green_make_ahead(). Called by one thread at a time. */
void green_expect(const struct green_rows *rows);

/*
 * Makes the partitions that are expected on the GPU @uuid, which is that of @g, the first time that
 * it is called: before a job asks for SMs, because a millisecond or two for each of them is longer
 * than many jobs are. What can't be made is made when it is granted. Return: how many were made.
 */
unsigned green_make_ahead(struct green *g, const uint8_t *uuid);

/* A new stream of @p, whose context is current; non-blocking as all of its streams; owned by the
 * caller. It has the priority of the level plus @priority (0 or below, as CUDA counts), as far as
 * the GPU goes. NULL: the driver refuses. */
CUstream green_stream_new(struct partition *p, int priority);

/* The set of @p as a context, to be made current by one thread at a time. NULL: it has none, or the
 * driver refuses. */
CUcontext green_context(struct partition *p);

/* Gives the partitions of @context back: no stream of theirs is left. */
void green_context_destroying(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void green_after_fork(void);
