/*
 * releases.h: when the next job of a program comes that has a job each period, and how exactly that
 * is known, by its releases until now. For guard bands (proto/board.h): kernels and copies of
 * others should be over when a job comes, and wait for one that is a little late.
 *
 * The grid of releases follows those that are seen by a quarter of what they are off. Jitter is
 * tracked, too. 99 of 100 jobs come no earlier than `early` before the grid says: more would cost
 * others time before each job. `late` is the latest of all, slowly forgotten: it costs others only
 * what a job is late. One that is off by a quarter of its period starts a new grid.
 *
 * Pure: no clock, no I/O, no lock.
 */
#pragma once

#include "proto/units.h"

/* All 0 at first. */
struct releases {
	nsec_t next;	    /* by the grid; 0: there is none yet */
	nsec_t early, late; /* than that */
};

/* A job came at @release. @period: from one to the next, at least 1. */
void releases_note(struct releases *r, nsec_t release, nsec_t period);

/* When the next job comes at the earliest, and at the latest; after releases_note(). */
nsec_t releases_from(const struct releases *r);
nsec_t releases_until(const struct releases *r);
