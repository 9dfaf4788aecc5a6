/*
 * explain.h: what the last decisions were and why: for each job that was looked at, the places that
 * were compared, what each would have led to, and what spoke for the one taken or for waiting.
 *
 * A ring of fixed size, allocated when it is asked for; writing into it allocates nothing and has
 * no effect on decisions. Without one (NULL) the functions of policies return at once.
 *
 * A policy says what it compares while it looks at a job: explain_begin(), explain_try() for each
 * place, explain_because(). sched.c completes the entry when the job is granted or left waiting,
 * and writes one for jobs that the policy did not look at. A job that goes on waiting for the same
 * reason keeps its one entry, which counts: else a job that waits long would push all others out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/units.h"

/* Choices kept of one decision: sbeet tries every second one of 132 SM counts, lookahead nine on
 * each GPU. Those that are left out are counted. */
#define EXPLAIN_TRIES_MAX 72

enum explain_reason {
	EXPLAIN_NONE,

	/* it starts */
	EXPLAIN_START_NEXT,
	EXPLAIN_START_CHEAPEST,
	EXPLAIN_START_FEWEST_MISSES,
	EXPLAIN_START_LEAST_BAD,
	EXPLAIN_START_LATE,
	EXPLAIN_START_AWAY,
	EXPLAIN_START_WHOLE,
	EXPLAIN_START_FILLER,
	EXPLAIN_START_OVERDUE,
	EXPLAIN_START_ALLOCATED,
	EXPLAIN_START_TABLE,

	/* it waits */
	EXPLAIN_WAIT_FULL,
	EXPLAIN_WAIT_OWNER,
	EXPLAIN_WAIT_DRAINED,
	EXPLAIN_WAIT_TURN,
	EXPLAIN_WAIT_BETTER,
	EXPLAIN_WAIT_INFEASIBLE,
	EXPLAIN_WAIT_LATE,
	EXPLAIN_WAIT_DEADLINES,
	EXPLAIN_WAIT_PRIORITY,
	EXPLAIN_WAIT_STOPPING,
	EXPLAIN_WAIT_TABLE,
	_EXPLAIN_REASON_N,
};

/* "start-cheapest"; never changes its meaning. */
const char *explain_reason_name(enum explain_reason reason);

/* One sentence for people, without a full stop. */
const char *explain_reason_text(enum explain_reason reason);

/* One choice for a job, and what was expected of it. */
struct explain_try {
	bool chosen;
	bool wait;     /* not to start now, but at @start, if at all */
	bool feasible; /* it is in time, or has no deadline; and where the policy looks ahead, no
			* job that it knows of is made late */
	uint8_t gpu;
	uint16_t n_sms;
	unsigned loss; /* misses to come, weighed as the policy does */
	nsec_t start;
	nsec_t finish;	   /* 0: nobody can tell */
	int64_t energy_pj; /* by which the policy compares: of this choice, above static power */
};

struct explain_entry {
	uint64_t number; /* of the decision about a job, from 1 */
	/* of the job: see struct sched_job */
	uint64_t order, owner, tag;
	char label[PROTO_NAME_MAX + 1];
	nsec_t release, requested, deadline;

	const char *policy; /* its name; static */
	nsec_t first, last; /* when it was decided, first and last */
	uint64_t times;	    /* how often, with this outcome */
	enum explain_reason reason;
	int gpu; /* where it starts; -1: it waits */
	struct smset sms;
	nsec_t finish;	   /* predicted; 0: nobody can tell */
	int64_t energy_pj; /* the same: of this job alone, above static power */
	const char *stop;  /* what can stop it once it runs: sched_stop_name(); NULL: not told */
	nsec_t stop_takes; /* at most so far; 0: not measured */
	nsec_t ended;	   /* when it was reported over; 0: not yet, or not known */
	bool completed;	   /* else cancelled, or its process died */

	size_t n_tries, n_left_out;
	struct explain_try tries[EXPLAIN_TRIES_MAX]; /* of the last time */
};

struct explain;

/* Room for @n entries, at least 1. Return: 0, -EINVAL, -ENOMEM. */
int explain_new(struct explain **ret, size_t n);
struct explain *explain_free(struct explain *e); /* takes NULL, returns NULL */

/* How many entries are kept; the @i-th, oldest first. Good until the next decision. */
size_t explain_count(const struct explain *e);
const struct explain_entry *explain_get(const struct explain *e, size_t i);

/* ---- for policies; @e may be NULL ---- */

/* From now on it is about job @order. */
void explain_begin(struct explain *e, uint64_t order);
void explain_try(struct explain *e, const struct explain_try *try);

/* The last try of this kind is the one taken: to wait, or to start on so many SMs of this GPU. */
void explain_choose(struct explain *e, bool wait, unsigned gpu, unsigned n_sms);
void explain_because(struct explain *e, enum explain_reason reason);

/* ---- for sched.c ---- */

/* What has been said about job @order since explain_begin(); EXPLAIN_NONE: nothing. */
enum explain_reason explain_drafted(const struct explain *e, uint64_t order);

/*
 * Takes the draft, if it is about this job, into the ring. Of @entry all but number, first, times
 * and tries is read; @previous is the number of the job's last entry (0: none), which is written
 * over if it is still there and says the same. Return: the entry's number.
 */
uint64_t explain_commit(struct explain *e, const struct explain_entry *entry, uint64_t previous);

/* The short way where many wait: if nothing was drafted about job @order, and @number is its entry
 * and says already that it waits for @reason under @policy, that is counted once more. Return:
 * whether that is so; else explain_commit() is to be called. */
bool explain_again(struct explain *e, uint64_t number, uint64_t order, const char *policy,
		   enum explain_reason reason, nsec_t now);

/* The entry @number is about a job that runs: @stop, a static text, can stop it, which took @takes at
 * most so far (0: not measured). */
void explain_stop(struct explain *e, uint64_t number, const char *stop, nsec_t takes);

/* The entry @number has been about a job that has now ended. */
void explain_ended(struct explain *e, uint64_t number, nsec_t now, bool completed);
