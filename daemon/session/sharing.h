/*
 * sharing.h: tells core/steer/share.h what the programs on one GPU do, as long as the rule places
 * them, and asks it now and then what follows.
 */
#pragma once

#include <stdbool.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "daemon/core/steer/share.h"
#include "daemon/session/scene.h"

struct event_base;
struct session;

struct sharing {
	bool on;	    /* the GPU is shared; else what is known waits until it is */
	struct share share; /* of those in `past` */
	struct scene_past past;
	struct event timer; /* pending while it is on */
	nsec_t pause;	    /* until it comes; the longer the less there is to see */
	nsec_t looked;	    /* when sharing_look() was last called, 0: it was not */
	struct share_seen before[MODEL_TASKS_MAX]; /* the sessions' counters at the last look */
};

/* @fn is called when sharing_look() should be. */
void sharing_init(struct sharing *s, struct event_base *base, event_callback_fn fn, void *userdata);

/* The programs of @scene share the GPU, see share_start(). What is known of them stays if those
 * with a deadline, and their tasks, are the same as when it was last shared. */
void sharing_start(struct sharing *s, const struct scene *scene);

/* Also if it never began. */
void sharing_stop(struct sharing *s);

/* At the timer, with the same programs, @now. Return: whether other terms follow now
 * (share_apply()). */
bool sharing_look(struct sharing *s, struct session *const *sessions, nsec_t now);
