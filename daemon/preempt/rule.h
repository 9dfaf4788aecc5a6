/*
 * rule.h: whose channel groups must be preempted now, so that jobs of more urgent programs run.
 *
 * An owner is a program. It has jobs open on a GPU or not, and channel groups there. While an owner
 * has a job open, the groups of less urgent owners of the GPU that have work are preempted, once
 * when the job opens, those with a job first, and again and again: a preempted group has its next
 * turn soon. Owners of the same urgency share the GPU by time slices. An owner that can wait is no
 * reason to preempt others until its job has been open for that long. One that waits for its turn
 * (turns.h) is off the GPU already.
 *
 * GPUs have nothing to do with each other. Pure: no I/O, no allocation, the clock is passed in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"

/* The same group again, begin to begin: every 300 us a long urgent job has 87 % of the GPU, every
 * 600 us a tenth less; more often brings nothing (tests/gpu/HARDWARE.md, 5 and 6). */
#define RULE_AGAIN_NS (300 * NSEC_PER_USEC)

/* The same of a group whose owner may have work that it does not mark, but has no job open and has
 * begun nothing for RULE_QUIET_NS. Mostly it has none, and each preemption keeps the driver from
 * those that have: it is preempted as often as the driver's time slices would end. */
#define RULE_UNSEEN_NS (2 * NSEC_PER_MSEC)
#define RULE_QUIET_NS  NSEC_PER_SEC

/* Between two preemptions on one GPU, once each group was preempted RULE_BURST times for a job: the
 * driver does one thing at a time, and must come to what programs ask of it. Before that, a pause
 * keeps four others on the GPU for 0.9 ms longer. */
#define RULE_PAUSE_NS (100 * NSEC_PER_USEC)
#define RULE_BURST    2

/* A time slice that may do what preempting does, see struct rule's slices_suffice. */
#define RULE_SHORT_SLICE_NS (100 * NSEC_PER_USEC)

/* As many boards as the kernel lets a thread wait for, beside one word of its own. */
#define RULE_OWNERS_MAX 127
#define RULE_GROUPS_MAX (RULE_OWNERS_MAX * PROTO_GROUPS_MAX)

struct rule_owner {
	bool used;
	uint64_t urgency; /* more is more urgent */
	nsec_t patience;  /* how long its jobs are open before others are preempted for them */
	nsec_t turn; /* it takes turns of so long with others of its urgency, see turns.h; 0: it
			does not */
	uint64_t jobs[PROTO_GPUS_MAX]; /* as board_slot.jobs; the caller's to keep up to date */
	uint32_t turn_state[PROTO_GPUS_MAX]; /* the same of board_slot.turn_state */
	nsec_t unseen[PROTO_GPUS_MAX];	     /* the same of board_slot.unseen_ns */
	uint32_t seen[PROTO_GPUS_MAX];	     /* jobs that were opened when we last looked */
	nsec_t since[PROTO_GPUS_MAX];	     /* jobs have been open without a break; 0: none is */
	nsec_t worked[PROTO_GPUS_MAX];	     /* when it was last seen to work; 0: never */
	bool waits[PROTO_GPUS_MAX];	     /* it is another one's turn */
};

struct rule_group {
	bool used;
	unsigned owner; /* index */
	unsigned gpu;
	nsec_t began;	/* its last preemption; 0: not for the jobs that are open now */
	unsigned times; /* that it was preempted for these jobs */
	nsec_t slice;	/* its time slice; 0: what the driver gave it. See slices.h */
};

/* All 0 at first. */
struct rule {
	struct rule_owner owners[RULE_OWNERS_MAX];
	struct rule_group groups[RULE_GROUPS_MAX];
	unsigned n_owners, n_groups;	     /* places that were ever used */
	nsec_t ended[PROTO_GPUS_MAX];	     /* the last preemption there; 0: there was none */
	bool slices_suffice[PROTO_GPUS_MAX]; /* groups with short ones need no preempting */
};

/* No group is to be preempted. */
#define RULE_NONE -1

/* Nothing will change unless a job opens. */
#define RULE_NEVER UINT64_MAX

/* Takes in what the owners' jobs on @gpu are at @now. */
void rule_look(struct rule *rule, unsigned gpu, nsec_t now);

/* Looks, too. Return: the group on @gpu to preempt now, or RULE_NONE; then *@ret_again is when to
 * ask again at the latest, RULE_NEVER while no job is open there that others are less urgent than.
 */
int rule_next(struct rule *rule, unsigned gpu, nsec_t now, nsec_t *ret_again);

/* @group was preempted, from @began to @ended. */
void rule_done(struct rule *rule, int group, nsec_t began, nsec_t ended);

/* A free place, or -1. */
int rule_add_owner(struct rule *rule, uint64_t urgency, nsec_t patience);
int rule_add_group(struct rule *rule, unsigned owner, unsigned gpu);

/* Whether its time slice is short. */
bool rule_is_short(const struct rule_group *g);

/* Whether @owner waits for its turn on @gpu, and is off it. */
bool rule_is_off(const struct rule *rule, unsigned owner, unsigned gpu);

/* Whether @owner has one. */
bool rule_has_group(const struct rule *rule, unsigned owner, unsigned gpu);

/* Whether anybody has a group on @gpu. */
bool rule_has_groups(const struct rule *rule, unsigned gpu);

/* With its groups. */
void rule_remove_owner(struct rule *rule, unsigned owner);
