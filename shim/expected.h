/*
 * expected.h: what others see on the board (proto/board.h) of when a job needs the SMs and the
 * link, and of the next one, if terms say that we are awaited, guarded, or copy first: guard bands.
 *
 * Takes no lock. Called for a lane that is OPENING, or CLOSING, by who has made it so.
 */
#pragma once

#include "shim/books.h"
#include "shim/lane.h"

/* @job of @lane has opened, and the board says so already. */
void expected_opened(struct lane *lane, const struct books_job *job);

/* The job of @lane is over. */
void expected_closed(struct lane *lane);
