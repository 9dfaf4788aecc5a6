/*
 * slices.h: how long the time slices of each channel group should be.
 *
 * The driver gives every group 2 ms. While a program with more urgency than others is there, it
 * keeps the GPU for long once it has it, and a single other one that works gets the GPU back for a
 * short time only: so the urgent program's next kernel begins soon, without a preemption, and the
 * other loses nothing, for a group alone keeps the GPU whatever its time slice. Several others that
 * work share by the driver's time slices: they would lose more by switching than they do.
 * tests/gpu/RESULTS.md has the numbers.
 *
 * A program between others keeps the GPU for long, too, for the ends of its time slices are what
 * lets those below it in; those above preempt it whatever its time slice. Not where short time
 * slices do that for them.
 *
 * Pure: no I/O, no allocation, the clock is passed in.
 */
#pragma once

#include "daemon/preempt/rule.h"

#define SLICES_SHORT_NS RULE_SHORT_SLICE_NS
#define SLICES_LONG_NS	(20 * NSEC_PER_MSEC)

/* What the driver sets, should a group have one of ours from before we were started. */
#define SLICES_DRIVER_NS (2048 * NSEC_PER_USEC)

/* An owner that was seen without work for so long does not count as one that works. */
#define SLICES_QUIET_NS NSEC_PER_SEC

/* What @group of @rule, which is in use, should have at @now; 0: what the driver gave it. */
nsec_t slices_wanted(const struct rule *rule, unsigned group, nsec_t now);

/* Whether @o has worked of late. */
bool slices_works(const struct rule_owner *o, unsigned gpu, nsec_t now);

/* The one owner of the highest urgency of those that don't wait, of which others are less urgent.
 * @ret_working: how many of these work. Return: whether there is one. */
bool slices_top(const struct rule *rule, unsigned gpu, nsec_t now, unsigned *ret_owner,
		unsigned *ret_working);

/* When to ask again at the latest, though no job opens and nobody comes or goes; RULE_NEVER. */
nsec_t slices_again(const struct rule *rule, unsigned gpu, nsec_t now);
