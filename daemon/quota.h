/*
 * quota.h: what each user may take of the daemon: sessions, jobs, bytes.
 *
 * Everything that a client can make grow is charged before it is allocated and given back where it
 * is freed. A user is known here as long as something is charged or held.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/units.h"

enum quota_kind {
	QUOTA_SESSIONS, /* connections, to either socket */
	QUOTA_JOBS,	/* waiting and running */
	QUOTA_BYTES,	/* what sessions keep: kernels declared, answers not yet read */
	_QUOTA_KIND_N,
};

#define QUOTA_E_EXCEEDED 1

struct quota_limits {
	uint64_t most[_QUOTA_KIND_N];
	uint64_t rate; /* packets a second, all sessions together; 0: no limit */
};

struct quota; /* all users */
struct quota_user;

int quota_new(struct quota **ret, const struct quota_limits *limits);

/* Asserts that nothing is charged any more. */
struct quota *quota_free(struct quota *quota);

/* Whether no user is known: everything was given back. */
bool quota_empty(const struct quota *quota);

/* Holds the user @uid. Return: 0, -ENOMEM. */
int quota_user_ref(struct quota *quota, uid_t uid, struct quota_user **ret);

/* Replaces the limits of this user. What is charged above them stays so. */
void quota_user_set_limits(struct quota_user *user, const struct quota_limits *limits);

/* One packet of this user has come. Return: how long nothing more should be read of the user's
 * sessions; mostly 0. A second's worth may come at once. */
nsec_t quota_packet(struct quota_user *user, nsec_t now);

/* Takes NULL. What was charged must have been given back by the last holder. */
struct quota_user *quota_user_unref(struct quota_user *user);

/* Return: 0, or QUOTA_E_EXCEEDED (nothing is charged then). */
int quota_charge(struct quota_user *user, enum quota_kind kind, uint64_t n);
void quota_release(struct quota_user *user, enum quota_kind kind, uint64_t n);

uint64_t quota_charged(const struct quota_user *user, enum quota_kind kind);
uint64_t quota_limit(const struct quota_user *user, enum quota_kind kind);
