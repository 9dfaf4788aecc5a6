/*
 * quota.c: see quota.h.
 */
#include "daemon/base/quota.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "daemon/base/log.h"
#include "daemon/base/pace.h"

/* A second's worth of packets, and of work, may come at once. */
#define BURST (1 * NSEC_PER_SEC)

/* Twenty times what they take: some 50 us for a connection that comes and ends, some 2.5 us for an
 * item. */
#define CONNECTION_COST (1 * NSEC_PER_MSEC)
#define ITEM_COST	(50 * NSEC_PER_USEC)

/* A fifth of the time, and a fifth of this at once. */
#define ANSWER_SHARE 5
#define ANSWER_BURST (1 * NSEC_PER_MSEC)

/* Users are few; a list is searched once a connection. */
struct quota_user {
	LIST_ENTRY(quota_user) link;
	struct quota *quota; /* borrowed, outlives us */
	uid_t uid;
	unsigned n_refs;
	uint64_t charged[_QUOTA_KIND_N];
	struct quota_limits limits;
	struct pace packets, work, answers;
	struct log_budget log, changes, misses;
};

struct quota {
	struct quota_limits limits;
	uint64_t room[_QUOTA_KIND_N], charged[_QUOTA_KIND_N]; /* of all users; room 0: no end */
	LIST_HEAD(, quota_user) users;
	size_t n_users, n_idle; /* idle: nobody holds them */
};

int quota_new(struct quota **ret, const struct quota_limits *limits) {
	struct quota *quota = calloc(1, sizeof(*quota));

	if (!quota) {
		return -ENOMEM;
	}
	quota->limits = *limits;
	LIST_INIT(&quota->users);
	*ret = quota;
	return 0;
}

void quota_set_room(struct quota *quota, enum quota_kind kind, uint64_t most) {
	quota->room[kind] = most;
}

static void forget(struct quota_user *user) {
	user->quota->n_users--;
	user->quota->n_idle--;
	LIST_REMOVE(user, link);
	free(user);
}

struct quota *quota_free(struct quota *quota) {
	if (quota) {
		assert(quota_empty(quota));
		while (!LIST_EMPTY(&quota->users)) {
			forget(LIST_FIRST(&quota->users));
		}
		free(quota);
	}
	return NULL;
}

bool quota_empty(const struct quota *quota) {
	return quota->n_idle == quota->n_users;
}

size_t quota_n_users(const struct quota *quota) {
	return quota->n_users;
}

/* When nothing is left to remember of the user. */
static nsec_t paid_off_at(const struct quota_user *user) {
	const nsec_t times[] = {
		pace_full_at(&user->packets, BURST),	    pace_full_at(&user->work, BURST),
		pace_full_at(&user->answers, ANSWER_BURST), log_budget_full_at(&user->log),
		log_budget_full_at(&user->changes),	    log_budget_full_at(&user->misses),
	};
	nsec_t last = 0;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		last = times[i] > last ? times[i] : last;
	}
	return last;
}

/* Forgets all who owe nothing any more. */
static void forget_paid_off(struct quota *quota, nsec_t now) {
	struct quota_user *user, *next;

	for (user = LIST_FIRST(&quota->users); user; user = next) {
		next = LIST_NEXT(user, link);
		if (user->n_refs == 0 && paid_off_at(user) <= now) {
			forget(user);
		}
	}
}

static void forget_first_paid_off(struct quota *quota) {
	struct quota_user *user, *first = NULL;

	LIST_FOREACH(user, &quota->users, link) {
		if (user->n_refs == 0 && (!first || paid_off_at(user) < paid_off_at(first))) {
			first = user;
		}
	}
	forget(first);
}

int quota_user_ref(struct quota *quota, uid_t uid, nsec_t now, struct quota_user **ret) {
	struct quota_user *user;

	LIST_FOREACH(user, &quota->users, link) {
		if (user->uid == uid) {
			quota->n_idle -= user->n_refs == 0;
			user->n_refs++;
			*ret = user;
			return 0;
		}
	}
	user = calloc(1, sizeof(*user));
	if (!user) {
		return -ENOMEM;
	}
	forget_paid_off(quota, now);
	user->quota = quota;
	user->uid = user->log.uid = user->changes.uid = user->misses.uid = uid;
	user->limits = quota->limits;
	user->n_refs = 1;
	quota->n_users++;
	LIST_INSERT_HEAD(&quota->users, user, link);
	*ret = user;
	return 0;
}

struct quota_user *quota_user_unref(struct quota_user *user) {
	struct quota *quota;

	if (!user || --user->n_refs > 0) {
		return NULL;
	}
	for (int i = 0; i < _QUOTA_KIND_N; i++) {
		assert(user->charged[i] == 0);
	}
	quota = user->quota;
	quota->n_idle++;
	if (quota->n_idle > QUOTA_IDLE_MAX) {
		forget_first_paid_off(quota);
	}
	return NULL;
}

void quota_user_set_limits(struct quota_user *user, const struct quota_limits *limits) {
	user->limits = *limits;
}

nsec_t quota_packet(struct quota_user *user, nsec_t now) {
	if (user->limits.rate == 0) {
		return 0;
	}
	return pace_add(&user->packets, NSEC_PER_SEC / user->limits.rate, BURST, now);
}

int quota_first_packet(struct quota_user *user, nsec_t now, nsec_t *ret_wait) {
	struct pace before = user->packets;
	nsec_t wait = quota_packet(user, now);

	if (wait > QUOTA_WAIT_MAX) {
		user->packets = before;
		return QUOTA_E_EXCEEDED;
	}
	*ret_wait = wait;
	return 0;
}

void quota_work(struct quota_user *user, size_t n_connections, size_t n_items, nsec_t now) {
	nsec_t cost = n_connections * CONNECTION_COST + n_items * ITEM_COST;

	if (pace_add(&user->work, cost, BURST, now) > QUOTA_WAIT_MAX) {
		pace_settle(&user->work, now + QUOTA_WAIT_MAX);
	}
}

nsec_t quota_work_owed(const struct quota_user *user, nsec_t now) {
	return pace_owed(&user->work, now);
}

void quota_answered(struct quota_user *user, nsec_t took, nsec_t now) {
	pace_add(&user->answers, ANSWER_SHARE * took, ANSWER_BURST, now);
}

nsec_t quota_answers_owed(const struct quota_user *user, nsec_t now) {
	return pace_owed(&user->answers, now);
}

struct log_budget *quota_log(struct quota_user *user) {
	return &user->log;
}

struct log_budget *quota_log_misses(struct quota_user *user) {
	return &user->misses;
}

struct log_budget *quota_log_changes(struct quota_user *user) {
	return &user->changes;
}

/* Whether others have as much left as @user has with @n more. */
static bool leaves_share(const struct quota_user *user, enum quota_kind kind, uint64_t n) {
	uint64_t room = user->quota->room[kind], taken = user->quota->charged[kind];

	return room == 0 ||
	       (taken < room && n <= room - taken && user->charged[kind] + n <= room - taken);
}

int quota_charge(struct quota_user *user, enum quota_kind kind, uint64_t n) {
	uint64_t most = user->limits.most[kind];

	if (user->charged[kind] > most || n > most - user->charged[kind]) {
		return QUOTA_E_EXCEEDED;
	}
	if (!user->limits.unshared && !leaves_share(user, kind, n)) {
		return QUOTA_E_SHARE;
	}
	user->charged[kind] += n;
	user->quota->charged[kind] += n;
	return 0;
}

void quota_release(struct quota_user *user, enum quota_kind kind, uint64_t n) {
	assert(user->charged[kind] >= n);
	user->charged[kind] -= n;
	user->quota->charged[kind] -= n;
}

void quota_move(struct quota_user *from, struct quota_user *to, enum quota_kind kind, uint64_t n) {
	quota_release(from, kind, n);
	to->charged[kind] += n;
	to->quota->charged[kind] += n;
}

uid_t quota_user_uid(const struct quota_user *user) {
	return user->uid;
}

uint64_t quota_charged(const struct quota_user *user, enum quota_kind kind) {
	return user->charged[kind];
}

uint64_t quota_limit(const struct quota_user *user, enum quota_kind kind) {
	return user->limits.most[kind];
}
