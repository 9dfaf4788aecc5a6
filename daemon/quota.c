/*
 * quota.c: charges per user. See quota.h.
 */
#include "daemon/quota.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "daemon/base/pace.h"

/* Users are few; a list is searched once a connection. */
struct quota_user {
	LIST_ENTRY(quota_user) link;
	struct quota *quota; /* borrowed, outlives us */
	uid_t uid;
	unsigned n_refs;
	uint64_t charged[_QUOTA_KIND_N];
	struct quota_limits limits;
	struct pace packets;
};

struct quota {
	struct quota_limits limits;
	LIST_HEAD(, quota_user) users;
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

struct quota *quota_free(struct quota *quota) {
	if (quota) {
		assert(quota_empty(quota));
		free(quota);
	}
	return NULL;
}

bool quota_empty(const struct quota *quota) {
	return LIST_EMPTY(&quota->users);
}

int quota_user_ref(struct quota *quota, uid_t uid, struct quota_user **ret) {
	struct quota_user *user;

	LIST_FOREACH(user, &quota->users, link) {
		if (user->uid == uid) {
			user->n_refs++;
			*ret = user;
			return 0;
		}
	}
	user = calloc(1, sizeof(*user));
	if (!user) {
		return -ENOMEM;
	}
	user->quota = quota;
	user->uid = uid;
	user->limits = quota->limits;
	user->n_refs = 1;
	LIST_INSERT_HEAD(&quota->users, user, link);
	*ret = user;
	return 0;
}

struct quota_user *quota_user_unref(struct quota_user *user) {
	if (!user || --user->n_refs > 0) {
		return NULL;
	}
	for (int i = 0; i < _QUOTA_KIND_N; i++) {
		assert(user->charged[i] == 0);
	}
	LIST_REMOVE(user, link);
	free(user);
	return NULL;
}

void quota_user_set_limits(struct quota_user *user, const struct quota_limits *limits) {
	user->limits = *limits;
}

nsec_t quota_packet(struct quota_user *user, nsec_t now) {
	if (user->limits.rate == 0) {
		return 0;
	}
	return pace_add(&user->packets, NSEC_PER_SEC / user->limits.rate, NSEC_PER_SEC, now);
}

int quota_charge(struct quota_user *user, enum quota_kind kind, uint64_t n) {
	uint64_t most = user->limits.most[kind];

	if (user->charged[kind] > most || n > most - user->charged[kind]) {
		return QUOTA_E_EXCEEDED;
	}
	user->charged[kind] += n;
	return 0;
}

void quota_release(struct quota_user *user, enum quota_kind kind, uint64_t n) {
	assert(user->charged[kind] >= n);
	user->charged[kind] -= n;
}

uint64_t quota_charged(const struct quota_user *user, enum quota_kind kind) {
	return user->charged[kind];
}

uint64_t quota_limit(const struct quota_user *user, enum quota_kind kind) {
	return user->limits.most[kind];
}
