/*
 * mark.h: what the program has marked (sbeet.h), of the process or, in thread scope, of one thread.
 *
 * Marks nest: what counts is the outermost job, and the outermost segment in it. Where threads of
 * one process race to mark, the last one's release counts.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

struct mark {
	_Atomic uint32_t jobs;	   /* begun and not ended */
	_Atomic uint32_t segments; /* likewise, in the present job */
	_Atomic bool segmented;	   /* the present job has had a segment */
	_Atomic bool alone;	   /* marks alone make jobs (SBEET_JOB=marks) */
	_Atomic nsec_t release;	   /* of the present job; 0: none, or taken already */
	_Atomic nsec_t deadline;   /* from there; 0: its task's */
	_Atomic int chosen; /* GPU of the present job (choice.h), from 1; 0: its program says */
};

/* A job begins. @release: 0 or beyond @now: @now. @deadline: 0 if it has none of its own. */
void mark_begin(struct mark *m, nsec_t release, nsec_t deadline, nsec_t now);

/* Return: whether no job is marked any more: this was the last end. */
bool mark_end(struct mark *m);

void mark_segment_begin(struct mark *m);
/* Return: whether the segment is over. */
bool mark_segment_end(struct mark *m);

/* Within a job that marks alone make. */
static inline bool mark_is_inside(const struct mark *m) {
	return atomic_load(&m->jobs) > 0 && atomic_load(&m->alone);
}

/* An open job goes on, whether it is complete or not. */
static inline bool mark_holds(const struct mark *m) {
	return mark_is_inside(m) && (!atomic_load(&m->segmented) || atomic_load(&m->segments) > 0);
}

/* Marks alone make jobs, and there is none: what comes now belongs to none. */
bool mark_is_outside(const struct mark *m);

/* A job opens: its release and its own deadline, if the program has told; 0 each if not. Where jobs
 * are made without marks too, only the first job after the mark has them. */
void mark_take(struct mark *m, nsec_t *ret_release, nsec_t *ret_deadline);
