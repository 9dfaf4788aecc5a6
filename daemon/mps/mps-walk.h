/*
 * mps-walk.h: several questions to MPS's control daemon that make one answer: who its clients are,
 * and the end of one of them. Each question has its time limit, so the walk has one.
 */
#pragma once

#include <stdbool.h>

#include "daemon/mps/mps-ask.h"

struct mps_walk;

/* Servers that are asked for their clients: one, or one for each user. */
#define MPS_SERVERS_MAX 32

struct mps_result {
	unsigned n_servers, n_clients;
	unsigned n_faulty;	 /* servers that take no more clients until theirs have ended */
	unsigned thread_percent; /* what each client gets of a GPU's threads; 0: not known */
	bool terminated;	 /* the one that was to end */
	char why[160];		 /* what went wrong; empty: nothing */
};

/* @error: 0; -ETIMEDOUT; -ECONNREFUSED: its program finds no control daemon, or none that takes
 * orders of our user; -EIO: it can't be asked otherwise, or its answer makes no sense. */
typedef void (*mps_walked_fn)(void *userdata, int error, const struct mps_result *result);

/*
 * @terminate: the process to end as a client, or 0: only counts. @done is called once, from the
 * loop; the walk may be freed in it. Return: 0 or negative errno, as mps_ask_new().
 */
int mps_walk_new(struct mps_walk **ret, struct event_base *base,
		 const struct mps_directories *directories, pid_t terminate, nsec_t limit,
		 mps_walked_fn done, void *userdata);

/* Takes NULL. */
struct mps_walk *mps_walk_free(struct mps_walk *walk);
