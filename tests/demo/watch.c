/*
 * watch.c: looks at `sbeetctl status --json` again and again while programs run, and tells at the
 *end what it has seen, one fact a line, for scripts:
 *
 *	polls N                        how often it looked
 *	gpu INDEX SHARING SMS NAME     each GPU of the daemon
 *	task NAME JOBS LAUNCHES MISSES OUTSIDE
 *	                               as last seen, summed up over the task's sessions
 *	set NAME GPU SMS ENFORCEMENT N running jobs of the task were seen N times on this set
 *	pair WHERE GPU SMS:TASK SMS:TASK ENFORCEMENT
 *	                               two jobs were seen at once on one GPU, both confined, their
 *sets disjoint; WHERE: "processes" or "threads" (of one process) overlap GPU SMS:TASK SMS:TASK  the
 *same SM was promised to two jobs: must never be inexact NAME GPU SMS           `count` shown as
 *the very SMs: must never be
 *
 * It ends when its standard input does. Exit 0 if it could look at least once.
 *
 * usage: watch SBEETCTL [PAUSE_MS]
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/smset.h"
#include "proto/units.h"

#define SESSIONS_MAX 256
#define FACTS_MAX    256

/* Counters of one session, from the last status that showed it. */
struct session {
	int64_t id;
	char task[80];
	int64_t jobs, launches, misses, outside_blocks;
};

/* A line that is printed once, with how often it was so. */
struct fact {
	char text[2048];
	uint64_t times;
	bool show_times;
};

static struct session sessions[SESSIONS_MAX];
static unsigned n_sessions;
static struct fact facts[FACTS_MAX];
static unsigned n_facts;

__attribute__((format(printf, 2, 3))) static void note(bool show_times, const char *format, ...) {
	char text[sizeof(facts[0].text)];
	va_list args;
	unsigned i;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (i = 0; i < n_facts && strcmp(facts[i].text, text) != 0; i++) {
	}
	if (i == FACTS_MAX) {
		return; /* enough said */
	}
	if (i == n_facts) {
		snprintf(facts[n_facts++].text, sizeof(text), "%s", text);
	}
	facts[i].times++;
	facts[i].show_times = show_times;
}

static const char *text_of(const json_t *object, const char *key) {
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "-";
}

static int64_t number_of(const json_t *object, const char *key) {
	return json_integer_value(json_object_get(object, key));
}

static void see_gpus(const json_t *status) {
	const json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(status, "gpus"), i, gpu) {
		note(false, "gpu %" PRId64 " %s %" PRId64 " %s", number_of(gpu, "index"),
		     text_of(gpu, "sharing"), number_of(gpu, "n_sms"), text_of(gpu, "name"));
	}
}

static void see_sessions(const json_t *status) {
	const json_t *s;
	size_t i;

	json_array_foreach(json_object_get(status, "sessions"), i, s) {
		int64_t id = number_of(s, "id");
		unsigned k = 0;

		while (k < n_sessions && sessions[k].id != id) {
			k++;
		}
		if (k == SESSIONS_MAX) {
			continue;
		}
		if (k == n_sessions) {
			n_sessions++;
			sessions[k].id = id;
		}
		/* Not known before the session's first packet. */
		snprintf(sessions[k].task, sizeof(sessions[k].task), "%s", text_of(s, "task"));
		sessions[k].jobs = number_of(s, "jobs");
		sessions[k].launches = number_of(s, "launches");
		sessions[k].misses = number_of(s, "misses");
		sessions[k].outside_blocks = number_of(s, "outside_blocks");
	}
}

/* Whether the job holds SMs, and which. */
static bool running(const json_t *job, struct smset *ret) {
	const char *sms = json_string_value(json_object_get(job, "sms"));

	return sms && smset_parse(sms, ret) == 0 && !smset_empty(ret);
}

/* The set as it may be shown: a number of SMs where nothing more is enforced. */
static const char *shown_sms(const json_t *job, char text[static 600]) {
	if (json_is_true(json_object_get(job, "exact"))) {
		snprintf(text, 600, "%s", text_of(job, "sms"));
	} else {
		snprintf(text, 600, "any-%" PRId64, number_of(job, "n_sms"));
	}
	return text;
}

static bool confined(const char *enforcement) {
	return strcmp(enforcement, "smid") == 0 || strcmp(enforcement, "count") == 0 ||
	       strcmp(enforcement, "green") == 0;
}

/* Two jobs that run at once on one GPU. */
static void see_pair(const json_t *a, const struct smset *sms_a, const json_t *b,
		     const struct smset *sms_b) {
	const char *how = text_of(a, "enforcement");
	bool one_process = number_of(a, "session") == number_of(b, "session");
	char shown_a[600], shown_b[600];

	if (!smset_disjoint(sms_a, sms_b)) {
		note(true, "overlap %" PRId64 " %s:%s %s:%s", number_of(a, "gpu"),
		     text_of(a, "sms"), text_of(a, "task"), text_of(b, "sms"), text_of(b, "task"));
	} else if (strcmp(how, text_of(b, "enforcement")) == 0 && confined(how)) {
		note(true, "pair %s %" PRId64 " %s:%s %s:%s %s",
		     one_process ? "threads" : "processes", number_of(a, "gpu"),
		     shown_sms(a, shown_a), text_of(a, "task"), shown_sms(b, shown_b),
		     text_of(b, "task"), how);
	}
}

static void see_jobs(const json_t *status) {
	const json_t *jobs = json_object_get(status, "jobs");
	const json_t *a, *b;
	size_t i;

	json_array_foreach(jobs, i, a) {
		struct smset sms_a, sms_b;
		char shown[600];

		if (!running(a, &sms_a)) {
			continue;
		}
		note(true, "set %s %" PRId64 " %s %s", text_of(a, "task"), number_of(a, "gpu"),
		     shown_sms(a, shown), text_of(a, "enforcement"));
		if (strcmp(text_of(a, "enforcement"), "count") == 0 &&
		    json_is_true(json_object_get(a, "exact"))) {
			note(true, "inexact %s %" PRId64 " %s", text_of(a, "task"),
			     number_of(a, "gpu"), text_of(a, "sms"));
		}
		for (size_t k = i + 1; k < json_array_size(jobs); k++) {
			b = json_array_get(jobs, k);
			if (running(b, &sms_b) && number_of(a, "gpu") == number_of(b, "gpu")) {
				see_pair(a, &sms_a, b, &sms_b);
			}
		}
	}
}

/* Return: whether sbeetctl gave a status. */
static bool look(const char *command) {
	json_error_t error;
	json_t *status;
	FILE *pipe;
	bool ok;

	pipe = popen(command, "r");
	if (!pipe) {
		return false;
	}
	status = json_loadf(pipe, 0, &error);
	ok = pclose(pipe) == 0 && status;
	if (ok) {
		see_gpus(status);
		see_sessions(status);
		see_jobs(status);
	}
	json_decref(status);
	return ok;
}

static void print_tasks(void) {
	for (unsigned i = 0; i < n_sessions; i++) {
		struct session sum = sessions[i];
		bool told = false;

		for (unsigned k = 0; k < n_sessions; k++) {
			if (k == i || strcmp(sessions[k].task, sum.task) != 0) {
				continue;
			}
			told = told || k < i;
			sum.jobs += sessions[k].jobs;
			sum.launches += sessions[k].launches;
			sum.misses += sessions[k].misses;
			sum.outside_blocks += sessions[k].outside_blocks;
		}
		if (!told) {
			printf("task %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
			       sum.task, sum.jobs, sum.launches, sum.misses, sum.outside_blocks);
		}
	}
}

int main(int argc, char **argv) {
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char command[4096];
	uint64_t polls = 0;
	int64_t pause_ms = 20;
	int n;

	if (argc < 2 || argc > 3 ||
	    (argc == 3 && units_parse_int(argv[2], 1, 10000, &pause_ms) < 0)) {
		fprintf(stderr, "usage: watch SBEETCTL [PAUSE_MS]\n");
		return 2;
	}
	n = snprintf(command, sizeof(command), "'%s' status --json=short 2>/dev/null", argv[1]);
	if (n < 0 || (size_t)n >= sizeof(command) || strchr(argv[1], '\'')) {
		fprintf(stderr, "watch: '%s' is no path that a shell takes in quotes\n", argv[1]);
		return 2;
	}
	for (;;) {
		polls += look(command);
		/* The pause is only politeness; the end of the input is what ends it. */
		if (poll(&input, 1, (int)pause_ms) > 0) {
			char rest[64];

			if (read(STDIN_FILENO, rest, sizeof(rest)) <= 0) {
				break;
			}
		}
	}
	printf("polls %" PRIu64 "\n", polls);
	print_tasks();
	for (unsigned i = 0; i < n_facts; i++) {
		if (facts[i].show_times) {
			printf("%s %" PRIu64 "\n", facts[i].text, facts[i].times);
		} else {
			printf("%s\n", facts[i].text);
		}
	}
	return polls > 0 ? 0 : 1;
}
