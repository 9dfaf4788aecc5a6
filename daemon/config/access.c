/*
 * access.c: see access.h.
 */
#include "daemon/config/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/units.h"

/* A user's share. Sessions: more than a GPU's 48 contexts can ever be. Jobs: a quarter of the
 * engine's room, so that no user can fill it alone. Bytes: 2,000 sessions with all their kernels,
 * or some hundred unread status answers. Subscriptions: an eighth of all. */
const struct access_row access_table[_ACCESS_KEY_N] = {
	[ACCESS_SESSIONS] = {"sessions", "4096", "a number from 0 to 65536",
			     "connections at a time, of programs and of sbeetctl"},
	[ACCESS_JOBS] = {"jobs", "16384", "a number from 0 to 65536",
			 "jobs that wait or run at a time"},
	[ACCESS_BYTES] = {"bytes", "16M", "a number from 64K to 1G, with K, M or G if wanted",
			  "memory that sessions take of sbeetd"},
	[ACCESS_RATE] = {"rate", "0", "a number from 0 (no limit) to 1000000",
			 "packets a second from programs; those above it wait"},
	[ACCESS_SUBSCRIPTIONS] = {"subscriptions", "8", "a number from 0 to 64",
				  "connections that receive events at a time (monitor, top)"},
	[ACCESS_REALTIME] = {"realtime", "yes", "yes or no",
			     "whether tasks may be of the real-time class"},
	[ACCESS_PRIORITY_MAX] = {"priority-max", "1000", "a number from -1000 to 1000",
				 "the highest priority of tasks"},
};

static int parse_size(const char *text, int64_t min, int64_t max, int64_t *ret) {
	static const char units[] = "KMG";
	char number[ACCESS_TEXT_MAX];
	size_t n = strlen(text);
	const char *unit = n > 0 ? strchr(units, text[n - 1]) : NULL;
	int64_t value, factor = unit ? (int64_t)1 << 10 * (unit - units + 1) : 1;

	snprintf(number, sizeof(number), "%.*s", (int)(n - (unit != NULL)), text);
	if (n >= sizeof(number) || units_parse_int(number, 0, max / factor, &value) < 0 ||
	    value * factor < min) {
		return -EINVAL;
	}
	*ret = value * factor;
	return 0;
}

static int parse(enum access_key key, const char *text, int64_t *ret) {
	switch (key) {
	case ACCESS_SESSIONS:
	case ACCESS_JOBS:
		return units_parse_int(text, 0, 65536, ret);
	case ACCESS_BYTES:
		return parse_size(text, 64 * 1024, 1024 * 1024 * 1024, ret);
	case ACCESS_SUBSCRIPTIONS:
		return units_parse_int(text, 0, SUBSCRIBERS_MAX, ret);
	case ACCESS_RATE:
		return units_parse_int(text, 0, 1000000, ret);
	case ACCESS_REALTIME:
		if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0) {
			return -EINVAL;
		}
		*ret = *text == 'y';
		return 0;
	default:
		return units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, ret);
	}
}

static void set_value(struct access_rule *rule, enum access_key key, int64_t value,
		      const char *text, unsigned line) {
	rule->values[key].set = true;
	rule->values[key].line = line;
	rule->values[key].value = value;
	snprintf(rule->values[key].text, sizeof(rule->values[key].text), "%s", text);
}

void access_init(struct access *a) {
	struct access_rule *all = &a->rules[0];

	*a = (struct access){.n_rules = 1};
	snprintf(all->section, sizeof(all->section), "users");
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		int64_t value = 0;

		parse((enum access_key)i, access_table[i].fallback, &value);
		set_value(all, (enum access_key)i, value, access_table[i].fallback, 0);
	}
}

/* A number, or a name that this machine knows. */
static int find_id(const char *name, bool group, uint32_t *ret) {
	const struct passwd *user;
	const struct group *g;
	int64_t id;

	if (units_parse_int(name, 0, UINT32_MAX - 1, &id) == 0) {
		*ret = (uint32_t)id;
		return 0;
	}
	if (group) {
		g = getgrnam(name);
		if (g) {
			*ret = g->gr_gid;
			return 0;
		}
	} else {
		user = getpwnam(name);
		if (user) {
			*ret = user->pw_uid;
			return 0;
		}
	}
	return -ENOENT;
}

/* The rule of the section, made if need be. Return: 0, ACCESS_E_SECTION, _NOBODY, -E2BIG. */
static int find_rule(struct access *a, const char *section, struct access_rule **ret) {
	bool user = strncmp(section, "user ", 5) == 0, group = strncmp(section, "group ", 6) == 0;
	struct access_rule *rule;
	uint32_t id;

	for (size_t i = 0; i < a->n_rules; i++) {
		if (strcmp(a->rules[i].section, section) == 0) {
			*ret = &a->rules[i];
			return 0;
		}
	}
	if ((!user && !group) || strlen(section) >= sizeof(rule->section)) {
		return ACCESS_E_SECTION;
	}
	if (find_id(section + (user ? 5 : 6), group, &id) < 0) {
		return ACCESS_E_NOBODY;
	}
	if (a->n_rules == ACCESS_RULES_MAX) {
		return -E2BIG;
	}
	rule = &a->rules[a->n_rules++];
	rule->subject = user ? ACCESS_USER : ACCESS_GROUP;
	rule->id = id;
	snprintf(rule->section, sizeof(rule->section), "%s", section);
	*ret = rule;
	return 0;
}

int access_set(struct access *a, const char *section, const char *key, const char *value,
	       unsigned line, char *why, size_t why_size) {
	struct access_rule *rule;
	int64_t number;
	int r = find_rule(a, section, &rule);

	if (r == -E2BIG) {
		snprintf(why, why_size, "section '%s': expected at most %d users and groups",
			 section, ACCESS_RULES_MAX - 1);
		return -EINVAL;
	}
	if (r != 0) {
		return r;
	}
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		if (strcmp(access_table[i].key, key) != 0) {
			continue;
		}
		if (strlen(value) >= ACCESS_TEXT_MAX ||
		    parse((enum access_key)i, value, &number) < 0) {
			snprintf(why, why_size, "%s '%s': expected %s", key, value,
				 access_table[i].expected);
			return -EINVAL;
		}
		set_value(rule, (enum access_key)i, number, value, line);
		return 0;
	}
	return ACCESS_E_KEY;
}

int access_set_admins(struct access *a, const char *text,
		      void (*unknown)(void *userdata, const char *word), void *userdata) {
	static const char between[] = " \t,";
	char word[ACCESS_NAME_MAX + 2];

	a->n_admins = 0;
	for (; *(text += strspn(text, between)); text += strcspn(text, between)) {
		bool group = *text == '@';
		uint32_t id;

		snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, between), text);
		if (find_id(word + group, group, &id) < 0) {
			unknown(userdata, word);
			continue;
		}
		if (a->n_admins == ACCESS_ADMINS_MAX) {
			return -E2BIG;
		}
		a->admins[a->n_admins].group = group;
		a->admins[a->n_admins++].id = id;
	}
	return 0;
}

bool access_is_admin(const struct access *a, const struct peer *peer, bool power) {
	if (peer->cred.uid == 0 ? power : peer->cred.uid == geteuid()) {
		return true;
	}
	for (size_t i = 0; i < a->n_admins; i++) {
		if (a->admins[i].group ? peer_in_group(peer, a->admins[i].id)
				       : peer->cred.uid == a->admins[i].id) {
			return true;
		}
	}
	return false;
}

static bool applies(const struct access_rule *rule, const struct peer *peer) {
	return rule->subject == ACCESS_EVERYBODY ||
	       (rule->subject == ACCESS_USER && rule->id == peer->cred.uid) ||
	       (rule->subject == ACCESS_GROUP && peer_in_group(peer, rule->id));
}

void access_rights(const struct access *a, const struct peer *peer, struct access_rights *ret) {
	int64_t values[_ACCESS_KEY_N] = {0};

	/* From the most general to the most special: what comes later counts. */
	for (int subject = ACCESS_EVERYBODY; subject <= ACCESS_USER; subject++) {
		for (size_t i = 0; i < a->n_rules; i++) {
			const struct access_rule *rule = &a->rules[i];

			if ((int)rule->subject != subject || !applies(rule, peer)) {
				continue;
			}
			for (int k = 0; k < _ACCESS_KEY_N; k++) {
				if (rule->values[k].set) {
					values[k] = rule->values[k].value;
				}
			}
		}
	}
	*ret = (struct access_rights){
		.limits = {.most = {[QUOTA_SESSIONS] = (uint64_t)values[ACCESS_SESSIONS],
				    [QUOTA_JOBS] = (uint64_t)values[ACCESS_JOBS],
				    [QUOTA_BYTES] = (uint64_t)values[ACCESS_BYTES],
				    [QUOTA_SUBSCRIPTIONS] = (uint64_t)values[ACCESS_SUBSCRIPTIONS],
				    [QUOTA_PREEMPTED] = UINT64_MAX},
			   .rate = (uint64_t)values[ACCESS_RATE]},
		.realtime = values[ACCESS_REALTIME] != 0,
		.priority_max = (int)values[ACCESS_PRIORITY_MAX],
	};
}
