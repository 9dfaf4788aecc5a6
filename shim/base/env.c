/*
 * env.c: SBEET_* of the program's environment. See env.h.
 */
#include "shim/base/env.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/validate.h"
#include "shim/base/log.h"

/* How long SBEET_REQUIRE=1 waits for a daemon before it fails: longer than a restart takes. */
#define REQUIRE_DEFAULT_NS (10 * NSEC_PER_SEC)

/* SBEET_WAIT, which is longer than a restart takes, too, with NVML to be initialised. */
#define WAIT_DEFAULT_NS (3 * NSEC_PER_SEC)

static struct env env;

static const char *find(const char *name) {
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Kept for good: programs that set their title write over the environment. */
static const char *keep(const char *text) {
	return text ? strdup(text) : NULL;
}

static void complain(const char *name, const char *text, const char *expected) {
	log_line(LOG_LEVEL_WARN, "%s='%s' is not %s, ignoring", name, text, expected);
}

static bool read_flag(const char *name) {
	const char *text = find(name);

	if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
		complain(name, text, "0 or 1");
		return false;
	}
	return text && *text == '1';
}

static nsec_t read_nsec(const char *name) {
	const char *text = find(name);
	nsec_t t = 0;

	if (text && units_parse_nsec(text, &t) < 0) {
		complain(name, text, "a duration such as 33ms");
	}
	return t;
}

/* The index of @name's value among @n @words, 0 if it is not set or none of them. */
static int read_word(const char *name, const char *const *words, int n, const char *expected) {
	const char *text = find(name);

	for (int i = 0; text && i < n; i++) {
		if (strcmp(text, words[i]) == 0) {
			return i;
		}
	}
	if (text) {
		complain(name, text, expected);
	}
	return 0;
}

static void read_require(void) {
	const char *text = find("SBEET_REQUIRE");

	if (!text || strcmp(text, "0") == 0) {
		return;
	}
	env.require = true;
	env.require_ns = REQUIRE_DEFAULT_NS;
	if (strcmp(text, "1") != 0 && units_parse_nsec(text, &env.require_ns) < 0) {
		complain("SBEET_REQUIRE", text, "1 or how long to wait for sbeetd; waiting 10s");
	}
}

/* Return: 0 if it is not there or no such number. */
static unsigned read_sms(const char *name) {
	const char *text = find(name);
	int64_t n = 0;

	if (text && units_parse_int(text, 1, PROTO_SMS_MAX, &n) < 0) {
		complain(name, text, "a number of SMs from 1 to 256");
		return 0;
	}
	return (unsigned)n;
}

static void read_wait(void) {
	const char *text = find("SBEET_WAIT");

	env.wait_ns = WAIT_DEFAULT_NS;
	if (text && units_parse_nsec(text, &env.wait_ns) < 0) {
		complain("SBEET_WAIT", text, "a duration such as 500ms; waiting 3s");
	}
}

static void read_task(void) {
	static const char *const classes[] = {"best-effort", "realtime"};
	const char *text = find("SBEET_TASK");
	int64_t priority = 0;

	if (text && validate_name(text) < 0) {
		complain("SBEET_TASK", text,
			 "a task name (letters, digits and ._@:+-, at most 64)");
		text = NULL;
	}
	env.task = keep(text);
	env.task_class = (Sbeet__TaskClass)read_word("SBEET_CLASS", classes, 2,
						     "'realtime' or 'best-effort'");
	env.period_ns = read_nsec("SBEET_PERIOD");
	env.deadline_ns = read_nsec("SBEET_DEADLINE");
	env.offset_ns = read_nsec("SBEET_OFFSET");
	text = find("SBEET_PRIORITY");
	if (text && units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &priority) < 0) {
		complain("SBEET_PRIORITY", text, "a whole number from -1000 to 1000");
	}
	env.priority = (int)priority;
	env.min_sms = read_sms("SBEET_MIN_SMS");
	env.max_sms = read_sms("SBEET_MAX_SMS");
}

static void read_all(void) {
	static const char *const scopes[] = {"process", "thread"};

	env.disable = read_flag("SBEET_DISABLE");
	if (env.disable) {
		return;
	}
	env.whole = read_flag("SBEET_WHOLE");
	read_require();
	read_wait();
	env.scope = (Sbeet__Scope)read_word("SBEET_SCOPE", scopes, 2, "'process' or 'thread'");
	env.socket = keep(find("SBEET_SOCKET"));
	read_task();
}

const struct env *env_get(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &env;
}
