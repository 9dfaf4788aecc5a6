/*
 * settings.c: the table of settings and the readers of their forms. See settings.h.
 */
#include "daemon/config/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/loopback.h"
#include "daemon/book/suggest.h"

/* Of setting turn: shorter ones cost more than they bring. */
#define TURN_MIN_NS (10 * NSEC_PER_MSEC)
#define TURN_MAX_NS NSEC_PER_SEC

static int parse_time(const char *text, void *target) {
	return units_parse_nsec(text, target);
}

static int parse_time_above_0(const char *text, void *target) {
	nsec_t t;

	if (units_parse_nsec(text, &t) < 0 || t == 0) {
		return -EINVAL;
	}
	*(nsec_t *)target = t;
	return 0;
}

static int parse_spin(const char *text, void *target) {
	nsec_t t;

	if (units_parse_nsec(text, &t) < 0 || t > PROTO_SPIN_MAX_NS) {
		return -EINVAL;
	}
	*(nsec_t *)target = t;
	return 0;
}

static int parse_turn(const char *text, void *target) {
	nsec_t t = 0;

	if (strcmp(text, "off") != 0 &&
	    (units_parse_nsec(text, &t) < 0 || t < TURN_MIN_NS || t > TURN_MAX_NS)) {
		return -EINVAL;
	}
	*(nsec_t *)target = t;
	return 0;
}

static int parse_log_level(const char *text, void *target) {
	return log_level_parse(text, target);
}

static int parse_policy(const char *text, void *target) {
	const struct sched_policy *policy = sched_policy_find_live(text);

	if (!policy) {
		return -EINVAL;
	}
	*(const struct sched_policy **)target = policy;
	return 0;
}

static int parse_gpus(const char *text, void *target) {
	struct settings_gpus *gpus = target;
	int n = 0;

	if (strcmp(text, "nvml") != 0) {
		n = inventory_sms_parse(text, gpus->sms);
	}
	if (n < 0) {
		return -EINVAL;
	}
	gpus->n = (size_t)n;
	return 0;
}

static int parse_sharing(const char *text, void *target) {
	return inventory_sharing_parse(text, target);
}

static int parse_mps(const char *text, void *target) {
	return mps_mode_parse(text, target);
}

static int parse_path(const char *text, void *target) {
	if (*text && *text != '/') {
		return -EINVAL;
	}
	snprintf(target, SETTINGS_TEXT_MAX, "%s", text);
	return 0;
}

static int parse_metrics(const char *text, void *target) {
	union loopback_address address;
	socklen_t size;

	if (strcmp(text, "off") != 0 && loopback_parse(text, &address, &size) < 0) {
		return -EINVAL;
	}
	snprintf(target, SETTINGS_TEXT_MAX, "%s", text);
	return 0;
}

static int parse_yes(const char *text, void *target) {
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0) {
		return -EINVAL;
	}
	*(bool *)target = yes;
	return 0;
}

static int parse_preempt(const char *text, void *target) {
	bool on = strcmp(text, "auto") == 0;

	if (!on && strcmp(text, "off") != 0) {
		return -EINVAL;
	}
	*(bool *)target = on;
	return 0;
}

static int parse_text(const char *text, void *target) {
	snprintf(target, SETTINGS_TEXT_MAX, "%s", text);
	return 0;
}

const struct setting settings_table[_SETTING_N] = {
#define SETTING(NAME, member, type, parse, live, ...) \
	[SETTING_##NAME] = {__VA_ARGS__, live, parse, offsetof(struct settings, member)},
#include "daemon/config/settings.def"
};

void settings_init(struct settings *s) {
	*s = (struct settings){0};
	for (int i = 0; i < _SETTING_N; i++) {
		settings_set(s, (enum setting_id)i, settings_table[i].fallback, SETTING_DEFAULT, 0);
	}
}

int settings_set(struct settings *s, enum setting_id id, const char *text,
		 enum setting_source source, unsigned line) {
	const struct setting *row = &settings_table[id];

	if (strlen(text) >= SETTINGS_TEXT_MAX || row->parse(text, (char *)s + row->offset) < 0) {
		return -EINVAL;
	}
	snprintf(s->origin[id].text, sizeof(s->origin[id].text), "%s", text);
	s->origin[id].source = source;
	s->origin[id].line = line;
	return 0;
}

void settings_complain(enum setting_id id, const char *text, char *why, size_t size) {
	const struct setting *row = &settings_table[id];
	struct suggest s = suggest_start(text);

	for (size_t i = 0; id == SETTING_POLICY && sched_policies()[i]; i++) {
		suggest_offer(&s, sched_policies()[i]->name);
	}
	snprintf(why, size, "%s '%.*s': expected %s%s%s%s", row->key, SETTINGS_TEXT_MAX, text,
		 row->expected, s.best ? ". Did you mean '" : "", s.best ? s.best : "",
		 s.best ? "'?" : "");
}

int settings_find(const char *key) {
	for (int i = 0; i < _SETTING_N; i++) {
		if (strcmp(settings_table[i].key, key) == 0) {
			return i;
		}
	}
	return -1;
}

const char *settings_source_name(enum setting_source source) {
	static const char *const names[] = {
		[SETTING_DEFAULT] = "default",
		[SETTING_FILE] = "file",
		[SETTING_COMMAND_LINE] = "command line",
		[SETTING_REQUEST] = "request",
	};

	return names[source];
}

bool settings_differ(const struct settings *a, const struct settings *b, enum setting_id id) {
	return strcmp(a->origin[id].text, b->origin[id].text) != 0;
}
