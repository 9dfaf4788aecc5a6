/*
 * mps-watch.h: notices, without waking up in between, that a control daemon of MPS may have come to
 * one of the places that mps_find() looks in.
 */
#pragma once

struct event_base;
struct mps_directories;
struct mps_watch;

/* Something has changed there, or near there. Called from the loop, at most once a second. */
typedef void (*mps_watch_fn)(void *userdata);

/* @own: borrowed, outlives it. Return: 0 or negative errno: then nothing notices. */
int mps_watch_new(struct mps_watch **ret, struct event_base *base,
		  const struct mps_directories *own, mps_watch_fn changed, void *userdata);

/* Takes NULL. */
struct mps_watch *mps_watch_free(struct mps_watch *watch);

/* The next change from now on is told, once. Takes NULL: nothing is. */
void mps_watch_once(struct mps_watch *watch);

/* No change is told any more. Takes NULL. */
void mps_watch_stop(struct mps_watch *watch);
