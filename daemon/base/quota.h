/*
 * quota.h: the account of each user: what the user holds of the daemon, and what the user costs it.
 *
 * Whatever a client can make grow is charged before it is allocated and released where it is freed.
 * Packets, connections, their ends, answers and log lines are a debt that time pays off (pace.h).
 *
 * An account outlives the user's last connection, so that leaving and coming back pays no debt. It
 * is forgotten when all its debts are paid. At most QUOTA_IDLE_MAX accounts without a connection
 * are kept: beyond that the one that would be paid off first is forgotten. A user has one account,
 * so one user can't displace others, and whoever owns many uids only displaces users who owe less
 * than each of those.
 *
 * Knows no clock: times are passed in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/units.h"

enum quota_kind {
	QUOTA_SESSIONS,	     /* connections, to either socket */
	QUOTA_JOBS,	     /* waiting and running */
	QUOTA_BYTES,	     /* what sessions keep: kernels declared, answers not yet read */
	QUOTA_SUBSCRIPTIONS, /* connections that receive events */
	QUOTA_PREEMPTED,     /* programs that the process that preempts knows: see preempting.h */
	_QUOTA_KIND_N,
};

#define QUOTA_E_EXCEEDED 1
#define QUOTA_E_SHARE	 2 /* others would have less left than this user has */

/* 28 KiB. */
#define QUOTA_IDLE_MAX 256

/* A connection waits at most this long because its user sends too much; one that would have to wait
 * longer is refused. Well below the time for which the library waits to be welcomed. */
#define QUOTA_WAIT_MAX (1 * NSEC_PER_SEC)

struct quota_limits {
	uint64_t most[_QUOTA_KIND_N];
	uint64_t rate; /* packets a second, all sessions together; 0: no limit */
	bool unshared; /* may have what others need: see quota_set_room() */
};

struct log_budget;
struct quota; /* all users */
struct quota_user;

int quota_new(struct quota **ret, const struct quota_limits *limits);

/*
 * There is room for @most of this kind, of all users together. A user may have as much as is left
 * for all others then: the first one half of it, the next one half of the rest. So it takes many
 * users to leave nothing to a new one. 0, as at first: there is no end.
 */
void quota_set_room(struct quota *quota, enum quota_kind kind, uint64_t most);

/* Asserts that nothing is charged any more. */
struct quota *quota_free(struct quota *quota);

/* Whether no account is held: everything was released. */
bool quota_empty(const struct quota *quota);

/* How many accounts there are, held or not. */
size_t quota_n_users(const struct quota *quota);

/* Holds the account of @uid. Return: 0, -ENOMEM. */
int quota_user_ref(struct quota *quota, uid_t uid, nsec_t now, struct quota_user **ret);

/* Replaces the limits of this user. What is charged above them stays charged. */
void quota_user_set_limits(struct quota_user *user, const struct quota_limits *limits);

/* Pays for the next packet of one of the user's sessions. A second's worth may come at once.
 * Return: how long to wait before it is read; mostly 0. */
nsec_t quota_packet(struct quota_user *user, nsec_t now);

/* Pays for the first packet of a new connection. @ret_wait as above, at most QUOTA_WAIT_MAX.
 * Return: 0, or QUOTA_E_EXCEEDED: it would have to wait for longer (nothing is paid then). */
int quota_first_packet(struct quota_user *user, nsec_t now, nsec_t *ret_wait);

/*
 * The user has caused @n_connections connections to end and @n_items items (jobs in a Hello, jobs
 * left behind, sessions and jobs listed for a subscriber) to be handled, each time in one piece,
 * while everybody else waited. Up to a twentieth of the daemon's time may go into that for each
 * user, and 50 ms at once.
 */
void quota_work(struct quota_user *user, size_t n_connections, size_t n_items, nsec_t now);

/* How long the user has to wait before more such work is begun; at most QUOTA_WAIT_MAX, mostly 0.
 */
nsec_t quota_work_owed(const struct quota_user *user, nsec_t now);

/* Answering the user's control connections has taken @took of the daemon's time, while programs
 * waited: of that each user may have a fifth, and 0.2 ms at once. */
void quota_answered(struct quota_user *user, nsec_t took, nsec_t now);

/* How long the user has to wait for the next answer; mostly 0. */
nsec_t quota_answers_owed(const struct quota_user *user, nsec_t now);

/* The lines that the log may have about the user's programs, about their missed deadlines, and about
 * what the user changes. */
struct log_budget *quota_log(struct quota_user *user);
struct log_budget *quota_log_misses(struct quota_user *user);
struct log_budget *quota_log_changes(struct quota_user *user);

/* Takes NULL. What was charged must have been released by the last holder. */
struct quota_user *quota_user_unref(struct quota_user *user);

/* Return: 0; QUOTA_E_EXCEEDED, QUOTA_E_SHARE (nothing is charged then). */
int quota_charge(struct quota_user *user, enum quota_kind kind, uint64_t n);
void quota_release(struct quota_user *user, enum quota_kind kind, uint64_t n);

/* What @from is charged for is @to's from now on, even above the limit of @to. */
void quota_move(struct quota_user *from, struct quota_user *to, enum quota_kind kind, uint64_t n);

uid_t quota_user_uid(const struct quota_user *user);
uint64_t quota_charged(const struct quota_user *user, enum quota_kind kind);
uint64_t quota_limit(const struct quota_user *user, enum quota_kind kind);
