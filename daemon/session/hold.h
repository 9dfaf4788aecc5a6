/*
 * hold.h: what becomes of a job that holds SMs for longer than --max-hold while another one waits
 * for its GPU.
 *
 * Nobody can tell from outside a long kernel (a training step of 20 s) from a program that has lost
 * its way: both hold SMs and report nothing. What runs on a GPU can't be stopped without ending its
 * process, and SMs given away while a kernel runs on them would be promised twice. So the time
 * alone never ends anything, and nothing happens at all as long as nobody waits (under a policy of
 * priorities, nobody of the same or a higher one). Instead, in this order:
 *
 *  1. The job is revoked: its program starts nothing more under it. What it has launched runs to
 * its end, however long that takes; then the SMs come back, and the program may ask again, to go on
 *     with the job if it can. This is all that happens to a program that only never pauses between
 *     its launches.
 *  2. The program is asked whether it is there (Ping). The library answers in a thread of its own,
 *     also while the program waits for a kernel: then the kernel is taken to be legitimate, and the
 *     question is asked again later.
 *  3. Only a program that leaves the question unanswered for HOLD_ANSWER_MAX (stopped, dead-locked
 * in the library, or no sbeet at all) loses its session and so its SMs. A library that knows no
 * Ping is never judged so, and time does not count in which we read nothing from the program
 * because its user sends too much.
 *
 * A look at all jobs at most every half of --max-hold, and only while jobs wait.
 */
#pragma once

#include "daemon/base/timer.h"
#include "proto/units.h"

struct sessions;

/* The library answers within its tracker's longest pause, some 10 ms; a loaded machine may stretch
 * that to seconds. */
#define HOLD_ANSWER_MAX (5 * NSEC_PER_SEC)

struct hold {
	struct sessions *all; /* borrowed, outlive us */
	nsec_t limit;	      /* --max-hold; 0: none. May change at any time */
	struct timer timer;
	nsec_t looked; /* last */
	nsec_t awake;  /* since then it has looked all the time */
};

void hold_init(struct hold *hold, struct sessions *all, nsec_t limit);
void hold_deinit(struct hold *hold);

/* To be called whenever a job may wait: sets the timer for the next look. */
void hold_watch(struct hold *hold);
