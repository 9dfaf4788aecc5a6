/*
 * sharing.h: the terms by the rule (plan_rule()) on one GPU, and what programs without a deadline
 * get beyond it: tells core/steer/share.h what the programs do, and asks it now and then what
 * follows. Where a plan holds (planning.h) it is off.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/timer.h"
#include "daemon/core/steer/share.h"
#include "daemon/session/scene.h"

struct event_base;
struct session;

struct sharing_known {
	struct share share; /* of those in `past` */
	struct scene_past past;
};

struct sharing {
	bool on; /* the GPU is shared; else what is known waits until it is */
	struct sharing_known known;
	struct sharing_known other; /* of other programs before: some may be started again */
	struct timer timer;	    /* set while it is on */
	nsec_t pause;		    /* until it comes; the longer the less there is to see */
	nsec_t looked;		    /* when sharing_look() was last called, 0: it was not */
	struct share_seen before[MODEL_TASKS_MAX]; /* the sessions' counters at the last look */
};

/* @fn is called when sharing_look() should be. */
void sharing_init(struct sharing *s, struct event_base *base, event_callback_fn fn, void *userdata);

/* @scene has other programs than before, and no plan: they share the GPU if they can, see
 * share_start(). What is known of them stays if those with a deadline, and their tasks, are the
 * same as when it was last shared, or the time before. */
void sharing_follow(struct sharing *s, const struct scene *scene);

/* They don't, for they are planned for. Also if they never did. */
void sharing_stop(struct sharing *s);

/* Writes the terms of the programs of @scene: the rule's, and what follows from what was measured
 * while they share the GPU. @ret: the same, of each. */
void sharing_write(const struct sharing *s, const struct scene *scene, struct terms *ret);

/* At the timer, with the same programs, @now. Writes other terms if they follow now. */
void sharing_look(struct sharing *s, const struct scene *scene, nsec_t now);
