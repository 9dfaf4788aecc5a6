/*
 * mps.h: NVIDIA's Multi-Process Service: where its control daemon is, whether it lives, who its
 * clients are, and, where sbeetd is to run it, its start and restart.
 *
 *	OFF     none is looked for
 *	ABSENT ----> ASKED ----> UP ----> DOWN ----> ASKED     one that others run
 *	          STARTING ----> UP ----> DOWN ----> STARTING  (after a while, longer each time)
 *
 * One that comes is noticed where it may be (mps-watch.h), and looked for when a program connects
 * or the status is asked for; one that ends is noticed by its process, or then.
 *
 * The next sbeetd may start while the control daemon of the one before still ends. None is started
 * beside that one: STARTING lasts until it has ended or answers, and what fails is tried again.
 *
 * A control daemon is trusted only if it is root's or our own user's: whoever owns it sees every
 * client's memory. Nothing here waits: questions are put by a child process with a time limit.
 *
 * One that sbeetd started outlives it, as programs hang on it: the next sbeetd finds it where it
 * is. It is ended with sbeetd only when no program is connected.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "proto/units.h"

struct event_base;
struct mps;

/* Contexts that the hardware serves on one GPU at a time (documented, Volta and later). */
#define MPS_CLIENTS_MAX 48

enum mps_mode {
	MPS_MODE_AUTO,	/* use one that runs */
	MPS_MODE_START, /* run one */
	MPS_MODE_OFF,	/* use none */
};

enum mps_state {
	MPS_OFF,
	MPS_ABSENT,   /* there is none, or none to be trusted */
	MPS_ASKED,    /* there is one, and it has not answered yet */
	MPS_STARTING, /* ours: it does not answer yet */
	MPS_UP,
	MPS_DOWN, /* it was up, and is gone or does not answer */
	_MPS_STATE_N,
};

struct mps_info {
	enum mps_state state;
	const char *pipe_directory, *log_directory; /* empty: none known */
	bool ours;				    /* sbeetd started it, or is to */
	uid_t owner;		 /* whose it is; root's serves every user, others' their own */
	bool one_user;		 /* it serves one at a time: CUDA lets programs of others wait */
	bool counted;		 /* the two below are known */
	unsigned n_clients;	 /* of all users */
	unsigned thread_percent; /* what each client gets of a GPU; 0: not known */
	unsigned n_restarts;
	const char *note; /* what is wrong and what to do; empty: nothing */
};

/* "auto", "start", "off". Return: 0, -EINVAL. */
int mps_mode_parse(const char *text, enum mps_mode *ret);
const char *mps_state_name(enum mps_state state);

/* Called first when it is known whether there is MPS, then each time that it is UP or DOWN. From
 * the loop, from mps_start(), mps_look() or mps_refresh(). */
typedef void (*mps_changed_fn)(void *userdata);

/* @directory: where one of our own is to live (in "mps" there). Return: 0, -ENOMEM. */
int mps_new(struct mps **ret, struct event_base *base, enum mps_mode mode, const char *directory);

/* Looks for one, or starts it. Nothing of this can fail but what mps_info() tells. */
void mps_start(struct mps *mps, mps_changed_fn changed, void *userdata);

/* Takes NULL. @in_use: programs hang on it, so one that we started goes on. */
struct mps *mps_free(struct mps *mps, bool in_use);

/* Takes NULL: then OFF. */
struct mps_info mps_info(const struct mps *mps);

/* A program connects: is there one by now, or still? Takes NULL. */
void mps_look(struct mps *mps);

/* Somebody wants to know now: the same, and counts anew if that is some time ago. Takes NULL. */
void mps_refresh(struct mps *mps);

/* Whether a process of this user is served: it is there, and root's or that user's. Takes NULL. */
bool mps_serves(const struct mps *mps, uid_t uid);

/*
 * Ends @pid as a client, so that its neighbours live on; the process itself does too. @done: with
 * false and why not. Called once and within seconds, perhaps from within; not after mps_free().
 * Return: 0, -EAGAIN: too many at once, -ENOTCONN: there is no MPS that could.
 */
typedef void (*mps_terminated_fn)(void *userdata, bool terminated, const char *why);
int mps_terminate(struct mps *mps, pid_t pid, mps_terminated_fn done, void *userdata);
/* Nobody wants to know about these any more. Takes NULL. */
void mps_forget(struct mps *mps, const void *userdata);
