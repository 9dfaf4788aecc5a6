/*
 * turns.h: programs without deadlines that have work all the time take turns of some tens of
 * milliseconds, while one urgent program works beside them.
 *
 * The driver gives the GPU to the next program's time slice after each preemption, so an urgent job
 * has to wait for as many preemptions as there are others. Of programs that take turns only one is
 * not told to wait, and an urgent job has to wait for that one.
 *
 * Turns are for owners that may take them, all of one urgency, which have had a job open for three
 * quarters of the time; the others are never told to wait. There are none unless exactly one owner
 * is more urgent, and works. Each has the GPU equally long. To hand it over takes the driver half a
 * millisecond or more, in which an urgent job should not begin: so a turn that is due ends at the
 * moment when such a job ends, which must be known at once (turns_want_end()), or after twice its
 * length. Nor does it end shortly before the next job should open, as long after the last one as
 * that one after the one before, lest we have heard of an end too late. When it has opened it may:
 * the driver has begun to give it the GPU.
 *
 * Where short time slices do what preempting does, an owner whose turn has ended keeps the GPU
 * until something else has work there, and does not get it back: nobody takes it off. So it works
 * until the next one's channels are enabled, which is asked for a moment later, for the driver must
 * disable its own first: both together would take the GPU from each other. Elsewhere it is taken
 * off at once, and before it is the next one goes on: meanwhile nobody would have the GPU.
 *
 * For one GPU. Pure: no I/O, no allocation, the clock is passed in.
 */
#pragma once

#include "daemon/preempt/rule.h"

/* While there may be turns we look this often, for most jobs that end don't ring. */
#define TURNS_LOOK_NS (5 * NSEC_PER_MSEC)

/* The next one goes on so long after the one before was told to stay off. In that time that one has
 * begun to ask the driver, which does one thing at a time. 50 to 400 us make no difference. */
#define TURNS_HAND_OVER_NS (100 * NSEC_PER_USEC)

/* The GPU is handed over in this time. */
#define TURNS_CLEAR_NS NSEC_PER_MSEC

/* What is measured of an owner holds for so long. */
#define TURNS_WINDOW_NS (100 * NSEC_PER_MSEC)

/* All 0 at first. */
struct turns {
	nsec_t looked; /* last; 0: there was no reason to */
	nsec_t window; /* since when open_ns is counted */
	nsec_t began;  /* the present turn; 0: nobody's */
	nsec_t due;    /* it should end */
	nsec_t goes;   /* its owner waits no more */
	unsigned turn; /* whose it is */
	nsec_t opened; /* the last job of the more urgent owner */
	nsec_t every;  /* so long after the one before; 0: there was none */
	uint32_t n_opened;
	bool urgent; /* a job that takes no turns was open at the last look */
	struct turns_owner {
		nsec_t open_ns; /* it had a job open */
		bool open;	/* at the last look */
		bool busy;	/* in the last window */
		bool stays;	/* while it waits: nobody takes it off the GPU */
	} owners[RULE_OWNERS_MAX];
};

/* Sets who waits on @gpu from @now on: @rule's owners' waits. After rule_look(). Return: whether
 * another owner's turn has begun. */
bool turns_look(struct turns *t, struct rule *rule, unsigned gpu, nsec_t now);

/* Whether the turn ends with the next urgent job, so that its end should be known at once. */
bool turns_want_end(const struct turns *t);

/* When to look again at the latest; RULE_NEVER. */
nsec_t turns_again(const struct turns *t);
