/*
 * seat.h: our slot on the board of our user (proto/board.h), where copies are announced (keeper.h),
 * and the jobs that are open, with their deadlines if they are awaited, and when the next one is
 * expected if we are guarded, and the next copy if ours go first.
 *
 * Takes no lock. A job that begins or ends costs a few stores; its begin also a system call, where
 * others are to be preempted for it, and its end, where a turn may end by it (proto/board.h).
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "proto/board.h"

/* A board and our slot there. One of an earlier connection is never freed: somebody may be about to
 * write into it. */
struct seat {
	struct board *board;
	unsigned slot;
	const struct seat *before; /* the last one, so that it is not lost */
};

/* The board, whose descriptor is closed, and our slot on it; instead of the last one. What is no
 * sealed page of the right size is not used. Under conn.c's lock. */
void seat_take(int fd, unsigned slot);

/* NULL: there is no board. */
const struct seat *seat_get(void);

/* A job on @device has opened, or is over. @rings: as its terms say. */
void seat_job_opened(CUdevice device, bool rings);
void seat_job_closed(CUdevice device);

/* An operation on @device belongs to no job. */
void seat_note_unseen(CUdevice device);

/* lane->due_ns of a lane of @device has changed. */
void seat_due_changed(CUdevice device);

/* When the job that has just opened on @device, and the next one, need the SMs: see struct
 * board_needs. 0: that is not known. */
struct seat_needs {
	uint64_t from, next_from, next_until, next_due;
};

void seat_needs(CUdevice device, const struct seat_needs *needs);

/* When the next copy to @device is expected, if ours go first: @from, or up to @late later; it must
 * be done by @due. */
struct seat_copy {
	uint64_t from, due;
	uint32_t late;
};

void seat_expect_copy(CUdevice device, const struct seat_copy *copy);

/* The number of the only job that is open on @device; 0: there is none, or several. */
uint32_t seat_only_job(CUdevice device);

/* The kernels of @job on @device are done, as far as it has any yet; 0: there are more now. */
void seat_kernels_done(CUdevice device, uint32_t job);

/* A job on @device is over. */
void seat_needs_over(CUdevice device);

/* The earliest of them; 0: there is none. */
uint64_t seat_due(CUdevice device);

/* The device that all jobs so far were on; -1: there were none, or on several. */
int seat_only_device(void);

/* The process exits: no jobs are open. */
void seat_leave(void);

/* After fork, in the child: there is none. */
void seat_after_fork(void);
