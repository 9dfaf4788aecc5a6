/*
 * settings.c: the table of settings and the readers of their forms. See settings.h.
 */
#include "daemon/config/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/loopback.h"
#include "daemon/book/suggest.h"

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
	struct settings *s = target;
	int n = 0;

	if (strcmp(text, "nvml") != 0) {
		n = inventory_sms_parse(text, s->gpu_sms);
	}
	if (n < 0) {
		return -EINVAL;
	}
	s->n_gpus = (size_t)n;
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

static int parse_text(const char *text, void *target) {
	snprintf(target, SETTINGS_TEXT_MAX, "%s", text);
	return 0;
}

#define TARGET(field) .offset = offsetof(struct settings, field)

const struct setting settings_table[_SETTING_N] = {
	[SETTING_POLICY] = {"policy", "NAME", "even", "one of those that --help lists",
			    "how jobs are placed", true, parse_policy, TARGET(policy)},
	[SETTING_GPUS] = {"gpus", "N[,N]...", "nvml",
			  "'nvml', or a list of 1 to 16 SM counts from 1 to 256, such as '80,40'",
			  "GPUs of N SMs each instead of those that NVML finds", false, parse_gpus,
			  .offset = 0},
	[SETTING_SHARING] = {"sharing", "MODE", "auto",
			     "auto, mps, exclusive, or a list such as '0=mps,1=exclusive'",
			     "auto, mps or exclusive, or one for each GPU:\n0=mps,1=exclusive",
			     false, parse_sharing, TARGET(sharing)},
	[SETTING_SPIN] = {"spin", "TIME", "200us", "a time up to 1s with a unit, such as 200us",
			  "how long sbeetd stays awake for the next request, and a\nprogram for "
			  "its grant; 0s: not at all",
			  true, parse_spin, TARGET(spin)},
	[SETTING_LEARN] = {"learn", "YES|NO", "no", "yes or no",
			   "whether the times of completed jobs lengthen or make up\nprofiles",
			   false, parse_yes, TARGET(learn)},
	[SETTING_MPS] = {"mps", "MODE", "auto", "auto, start or off",
			 "use an MPS control daemon that runs (auto), run one\n(start), or use "
			 "none (off)",
			 false, parse_mps, TARGET(mps)},
	[SETTING_LINGER] = {"linger", "TIME", "100us", "a time with a unit, such as 100us",
			    "how long a program must be quiet for its job to end", true, parse_time,
			    TARGET(linger)},
	[SETTING_DRAIN] = {"drain", "TIME", "1min", "a time above 0 with a unit, such as 1min",
			   "how long a running program that has hung up keeps its\nSMs", true,
			   parse_time_above_0, TARGET(drain)},
	[SETTING_PROFILE_DIR] = {"profile-dir", "DIR", "", "an absolute path",
				 "profiles of tasks and GPUs, *.json (default: profiles/\nin the "
				 "configuration's folder)",
				 false, parse_path, TARGET(profile_dir)},
	[SETTING_RUNTIME_DIR] = {"runtime-dir", "DIR", "", "an absolute path",
				 "where the sockets are (default: /run/sbeet for root,\nelse "
				 "$XDG_RUNTIME_DIR/sbeet)",
				 false, parse_path, TARGET(runtime_dir)},
	[SETTING_MAX_HOLD] = {"max-hold", "TIME", "10s",
			      "a time with a unit, such as 10s; 0s: no limit",
			      "how long a job keeps SMs that others wait for before its\n"
			      "program may start nothing more under it; 0s: no limit",
			      true, parse_time, TARGET(max_hold)},
	[SETTING_LOG_LEVEL] = {"log-level", "LEVEL", "info", "error, warning, info or debug",
			       "error, warning, info or debug", true, parse_log_level,
			       TARGET(log_level)},
	[SETTING_METRICS] =
		{"metrics", "WHERE", "off",
		 "off, unix:/PATH, or a loopback address such as 127.0.0.1:9400",
		 "where OpenMetrics are served over HTTP: unix:/PATH or\n127.0.0.1:PORT", false,
		 parse_metrics, TARGET(metrics)},
	[SETTING_ADMINS] = {"admins", NULL, "", "names or numbers of users and @groups",
			    "who may change what is others': users and @groups", true, parse_text,
			    TARGET(admins)},
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
	};

	return names[source];
}

bool settings_differ(const struct settings *a, const struct settings *b, enum setting_id id) {
	return strcmp(a->origin[id].text, b->origin[id].text) != 0;
}
