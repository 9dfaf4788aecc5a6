/*
 * turn.h: this program takes turns on a GPU without MPS with others that have work all the time
 * (daemon/preempt/turns.h): while its slot on the board says that it is to wait (proto/board.h),
 * its channels are disabled, so that the GPU never comes to it.
 *
 * It disables and enables them itself, and nobody else does: what is disabled is enabled again when
 * the time is over that the board says, whatever has become of sbeetd and of the process that
 * preempts; and a program that has died has no channels.
 */
#pragma once

#include <stdint.h>

/* sbeetd wants turns, over the connection of this number. */
void turn_wanted(uint32_t connection);

/* The program's groups, which are on @device, were told: from now on it takes turns, if that is
 * wanted. By the tracker. */
void turn_begin(int device);

/* The process exits, or the thread is to end (own-thread.h): it waits for no turn. */
void turn_leave(void);

/* After fork, in the child. */
void turn_after_fork(void);
