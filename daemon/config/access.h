/*
 * access.h: who may do what and how much of it: rules of sbeetd.conf, for everybody, for groups and
 * for users.
 *
 * Key by key, a user's own section beats those of groups, and those beat [users]; of two groups the
 * later one counts. The table of keys drives reader, `sbeetctl config` and the man page's test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/peer.h"
#include "daemon/base/quota.h"

/* Most that follow events at once, each user within a limit of its own: each costs the loop the
 * packing of every event. The last ones are for admins (subscriber.c). */
#define SUBSCRIBERS_MAX 64

#define ACCESS_RULES_MAX  64
#define ACCESS_ADMINS_MAX 32
#define ACCESS_NAME_MAX	  32
#define ACCESS_TEXT_MAX	  24

enum access_key {
	ACCESS_SESSIONS,
	ACCESS_JOBS,
	ACCESS_BYTES,
	ACCESS_RATE,
	ACCESS_SUBSCRIPTIONS,
	ACCESS_REALTIME,
	ACCESS_PRIORITY_MAX,
	_ACCESS_KEY_N,
};

/* Rows by enum access_key. */
extern const struct access_row {
	const char *key, *fallback, *expected, *help;
} access_table[_ACCESS_KEY_N];

enum access_subject {
	ACCESS_EVERYBODY,
	ACCESS_GROUP,
	ACCESS_USER,
};

struct access_rule {
	enum access_subject subject;
	uint32_t id;
	char section[8 + ACCESS_NAME_MAX]; /* as written: "user alice" */
	struct {
		bool set;
		unsigned line;
		int64_t value;
		char text[ACCESS_TEXT_MAX];
	} values[_ACCESS_KEY_N];
};

struct access {
	struct access_rule rules[ACCESS_RULES_MAX]; /* the first is everybody's */
	size_t n_rules;
	struct {
		bool group;
		uint32_t id;
	} admins[ACCESS_ADMINS_MAX];
	size_t n_admins;
};

struct access_rights {
	struct quota_limits limits;
	bool realtime;	  /* may its tasks be of that class */
	int priority_max; /* of its tasks */
};

/* Everybody has the defaults. */
void access_init(struct access *a);

#define ACCESS_E_SECTION 1 /* this is no section of ours */
#define ACCESS_E_NOBODY	 2 /* there is no such user or group here */
#define ACCESS_E_KEY	 3 /* no such key */

/* "key = value" in a section. Return: 0; one of the above; -EINVAL: @why says what was expected. */
int access_set(struct access *a, const char *section, const char *key, const char *value,
	       unsigned line, char *why, size_t why_size);

/* "alice @group 1000": who is an admin, in place of those before. @unknown is called for each word
 * that names nobody. Return: 0 or -E2BIG. */
int access_set_admins(struct access *a, const char *text,
		      void (*unknown)(void *userdata, const char *word), void *userdata);

/* Root, the user that we run as, and those of access_set_admins(). @power: of root, see
 * peer_has_power(). */
bool access_is_admin(const struct access *a, const struct peer *peer, bool power);

void access_rights(const struct access *a, const struct peer *peer, struct access_rights *ret);
