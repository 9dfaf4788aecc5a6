/*
 * terms.h: where sbeetd wants the work of this program to run, without asking: the page that comes
 * with the Welcome (proto/terms.h), and the partitions that it names.
 *
 * The page lies at one address for good. The page of a new connection takes the place of the last
 * one in a single step, and an empty one does when the terms lapse, so a reader needs no lock.
 *
 * Partitions are made by the tracker, never on the way of a launch, and so are the variants of the
 * program's graphs (graph.h), by their own thread. Until what the terms name is there, jobs stay
 * where they were last: at first in the program's own streams.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/terms.h"
#include "proto/units.h"

struct lane_found;
struct partition;

/* The page of a connection that has just been welcomed: @fd, which is closed in any case; -1: none
 * came. What is no sealed page of the right size is not used. Under conn.c's lock. */
void terms_take(int fd);

/* No daemon stands behind the page any more: jobs are asked for again. */
void terms_lapse(void);

/* Whether there is a page that has not lapsed. Takes no lock. */
bool terms_held(void);

/* Whether somebody watches single operations of jobs under terms. Takes no lock. */
bool terms_record_ops(void);

/* Whether the page steers this program on any GPU. Takes no lock. */
bool terms_steer_any(void);

/* The word of the terms for @device, whose context is current; 0: they don't steer. Takes no lock,
 * and enters the driver only for the first look at a device. @known: what it returned before, or 0.
 */
uint64_t terms_now(CUdevice device, uint64_t known);

/* Where @device stands in the page. Return: whether that is known: by now some job has had terms
 * there. */
bool terms_place(CUdevice device, unsigned *ret_place);

/* How long after a job's release its copy to @device must be done; 0: nobody waits for it, or the
 * place of @device is not known. */
nsec_t terms_copy_due(CUdevice device);

/* The same once it can't be done by then; 0: it stays as it is. */
nsec_t terms_copy_late_due(CUdevice device);

/* The same for the job itself; 0: it has no deadline, or none that anybody should wait for. */
nsec_t terms_deadline(CUdevice device);

/* Of the next job, for guard bands. */
struct terms_next {
	nsec_t period; /* from a job's release to the next one's */
	nsec_t lead;   /* from there until that one's first kernel may begin */
	nsec_t spare;  /* so much later it may be done if nobody disturbs it; the period: not known
			*/
};

/* Return: whether that is known. */
bool terms_next(CUdevice device, struct terms_next *ret);

/* How long one of our kernels runs there, by itself; 0: not known. */
nsec_t terms_kernel_ns(CUdevice device);

/* The partition of the terms *@word in @context of @device. While it, or a variant of a graph for
 * it, is being made: of the terms that led to a partition last, and *@word says which. NULL: the
 * program's own streams, because the terms are the whole GPU at level 0, or because there is no
 * partition yet. Takes no lock. @found: what it found for the same lane before; zeroed at first. */
struct partition *terms_partition(CUdevice device, CUcontext context, uint64_t *word,
				  struct lane_found *found);

/* By the tracker: makes the partitions that the page names by now. */
void terms_prepare(void);

/*
 * By the tracker: a job that was opened by the terms @word in @context of @device goes on in
 * *@where. Changes that to the set of the present terms, at the level of @word, for a level changes
 * between jobs. Makes the partition if need be; *@where stays if that fails. NULL: the program's
 * own streams.
 */
void terms_follow(CUdevice device, CUcontext context, uint64_t word,
		  _Atomic(struct partition *) *where);

/* Called before the driver's own function: no job goes on in a partition of @context, and none is
 * made. */
void terms_context_destroying(CUcontext context);

/* After fork, in the child: the page is the parent's. */
void terms_after_fork(void);
