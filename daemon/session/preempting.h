/*
 * preempting.h: programs on GPUs without MPS, which run by time slices and preempt each other: the
 * process that does it (daemon/preempt) is started, told of the programs and of what is known of
 * the GPUs, and what it has found out is kept.
 *
 * That process has RULE_OWNERS_MAX places. They are shared among users: while none is free, a
 * program takes one from a user that has at least two more than its own. The program that loses its
 * place, or finds none, asks for its jobs from then on, and gets a place as soon as there is one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"

struct event_base;
struct sched_policy;
struct session;
struct sessions;

struct preempting {
	struct sessions *sessions;	   /* borrowed */
	const struct sched_policy *policy; /* as of preempting_start() */
	struct event_base *base;	   /* borrowed */
	char state[PROTO_PATH_MAX];	   /* directory that keeps what is known of GPUs */
	bool may_start;			   /* --preempt, and it was not tried yet */
	nsec_t turn;			   /* --turn; 0: off */
	bool failed;			   /* to start */
	unsigned told_start;		   /* of the process, as of told_policy: it knows what */
	const struct sched_policy *told_policy; /* effect it may find out */
};

/* @turn, @state: as in struct preempting. Everything else outlives it. */
void preempting_init(struct preempting *p, struct sessions *sessions, struct event_base *base,
		     bool may_start, nsec_t turn, const char *state);

/* Keeps what was found out, and ends the process. */
void preempting_deinit(struct preempting *p);

/* How urgent the jobs of @s are among those of others, under the policy that holds. */
uint64_t preempting_urgency(const struct session *s);

/* Whether @gpu is shared by time slices: without MPS. */
bool preempting_is_sliced(const struct sessions *all, size_t gpu);

/* Starts the process if @policy needs it and a GPU that is there is shared by time slices, and
 * tells it what is known of the GPUs. @changed is called when it works, or does not any more. */
void preempting_start(struct preempting *p, const struct sched_policy *policy,
		      void (*changed)(void *userdata), void *userdata);

/* Gives places that are free to programs that were left out: before their terms are computed. May
 * end sessions. */
void preempting_readmit(struct preempting *p);

/* Asks all programs that run by time slices for their channel groups: after their terms were
 * computed. May end sessions. */
void preempting_hand_over(struct preempting *p);

/* A program that was asked has its first channel group, or a job for which others are to be
 * stopped: takes a place, or is left out (logged). */
void preempting_need_place(struct session *s);

/* How long turns on @gpu are; 0: programs take none there. */
nsec_t preempting_turn(const struct preempting *p, size_t gpu);

/*
 * Whether programs on @gpu preempt each other: "works"; "ready": none had to yet; "unseen": no
 * program has shown its channel groups; "refused": the driver does not do it; "no-effect": it does,
 * and jobs are not done sooner; "failed": the process that does it does not run; "off": --preempt;
 * "policy": it is not one that steers or stops jobs; "mps": it is shared through MPS.
 * @ret_programs: those that can be preempted now.
 */
const char *preempting_state(const struct preempting *p, size_t gpu, unsigned *ret_programs);

/* Whether @s can be preempted: "yes"; "unseen": it was asked for its channel groups and has shown
 * none; "no-place": it was left out. "": it does not run by time slices, or programs are not
 * preempted. */
const char *preempting_session_state(const struct session *s);
