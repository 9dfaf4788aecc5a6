/*
 * log.c: messages to stderr. See log.h.
 */
#include "daemon/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/notify.h"
#include "proto/text.h"
#include "proto/units.h"

/* Of one budget; and of all together. */
#define LINE_COST      (NSEC_PER_SEC / 2)
#define LINE_COST_ALL  (LINE_COST / 10)
#define LINE_BURST     (20 * LINE_COST)
#define LINE_MAX_BYTES 1024

static const struct {
	const char *name;
	int syslog; /* sd-daemon(3) */
} levels[_LOG_LEVEL_N] = {
	[LOG_LEVEL_ERROR] = {"error", 3},
	[LOG_LEVEL_WARNING] = {"warning", 4},
	[LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

static struct {
	enum log_level level;
	bool journal;
	struct pace clients; /* lines of all budgets */
} logger = {.level = LOG_LEVEL_INFO};

/* systemd sets JOURNAL_STREAM to device and inode of the stream that it connected to stderr. */
static bool stderr_is_journal(void) {
	const char *stream = getenv("JOURNAL_STREAM");
	char expected[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0) {
		return false;
	}
	snprintf(expected, sizeof(expected), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return strcmp(stream, expected) == 0;
}

void log_init(enum log_level level) {
	logger.level = level;
	logger.journal = stderr_is_journal();
}

void log_set_level(enum log_level level) {
	logger.level = level;
}

int log_level_parse(const char *name, enum log_level *ret) {
	for (int i = 0; i < _LOG_LEVEL_N; i++) {
		if (strcmp(name, levels[i].name) == 0) {
			*ret = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool log_enabled(enum log_level level) {
	return level <= logger.level;
}

/* One write a line, so that lines of several processes do not mix. */
__attribute__((format(printf, 2, 0))) static void print_line(enum log_level level,
							     const char *format, va_list args) {
	char message[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	size_t n, room = sizeof(line) - 1; /* for the newline */

	vsnprintf(message, sizeof(message), format, args);
	if (logger.journal) {
		snprintf(line, room, "<%d>", levels[level].syslog);
	} else {
		snprintf(line, room, "sbeetd: %s: ", levels[level].name);
	}
	n = strlen(line);
	text_escape(message, line + n, room - n);
	n = strlen(line);
	line[n++] = '\n';
	/* When stderr is gone there is nobody left to tell. */
	if (write(STDERR_FILENO, line, n) < 0) {
		return;
	}
}

void log_print(enum log_level level, const char *format, ...) {
	va_list args;

	if (!log_enabled(level)) {
		return;
	}
	va_start(args, format);
	print_line(level, format, args);
	va_end(args);
}

bool log_budget_take(struct log_budget *budget, nsec_t now) {
	return pace_take(&budget->pace, LINE_COST, LINE_BURST, now);
}

nsec_t log_budget_full_at(const struct log_budget *budget) {
	return pace_full_at(&budget->pace, LINE_BURST);
}

/* Whether a line may be printed; tells first of those that might not. @total: NULL: this budget
 * alone counts. */
static bool begin_line(struct log_budget *budget, struct pace *total, enum log_level level) {
	nsec_t now = nsec_now();

	if (!log_enabled(level)) {
		return false;
	}
	if (!log_budget_take(budget, now) ||
	    (total && !pace_take(total, LINE_COST_ALL, LINE_BURST, now))) {
		budget->left_out++;
		return false;
	}
	if (budget->left_out > 0) {
		char user[32] = "clients";

		if (budget->uid != LOG_NO_USER) {
			snprintf(user, sizeof(user), "user %u", budget->uid);
		}
		log_print(level, "%u messages about %s were left out", budget->left_out, user);
		budget->left_out = 0;
	}
	return true;
}

void log_client(struct log_budget *budget, enum log_level level, const char *format, ...) {
	va_list args;

	if (begin_line(budget, &logger.clients, level)) {
		va_start(args, format);
		print_line(level, format, args);
		va_end(args);
	}
}

__attribute__((format(printf, 2, 3))) static void add_field(struct log_fields *fields,
							    const char *format, ...) {
	char *text = fields->texts[fields->n];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(fields->texts[0]), format, args);
	va_end(args);
	fields->list[fields->n].iov_base = text;
	fields->list[fields->n++].iov_len = strlen(text);
}

void log_fields_init(struct log_fields *fields, enum log_level level, const struct log_about *about,
		     const char *message) {
	fields->n = 0;
	add_field(fields, "MESSAGE=%s", message);
	add_field(fields, "PRIORITY=%d", levels[level].syslog);
	add_field(fields, "SYSLOG_IDENTIFIER=sbeetd");
	add_field(fields, "MESSAGE_ID=%s", about->id);
	add_field(fields, "SBEET_UID=%u", about->uid);
	if (about->task) {
		add_field(fields, "SBEET_TASK=%s", about->task);
	}
	if (about->gpu >= 0) {
		add_field(fields, "SBEET_GPU=%d", about->gpu);
	}
	if (about->job > 0) {
		add_field(fields, "SBEET_JOB=%llu", (unsigned long long)about->job);
	}
}

__attribute__((format(printf, 3, 0))) static void print_event(enum log_level level,
							      const struct log_about *about,
							      const char *format, va_list args) {
	char raw[LINE_MAX_BYTES], message[LINE_MAX_BYTES];
	struct log_fields fields;

	vsnprintf(raw, sizeof(raw), format, args);
	text_escape(raw, message, sizeof(message));
	if (logger.journal) {
		log_fields_init(&fields, level, about, message);
		if (notify_journal(fields.list, fields.n) == 0) {
			return;
		}
	}
	log_print(level, "%s", message);
}

void log_event(struct log_budget *budget, enum log_level level, const struct log_about *about,
	       const char *format, ...) {
	va_list args;

	if (begin_line(budget, &logger.clients, level)) {
		va_start(args, format);
		print_event(level, about, format, args);
		va_end(args);
	}
}

void log_change(struct log_budget *budget, const struct log_about *about, const char *format, ...) {
	va_list args;

	if (budget ? begin_line(budget, NULL, LOG_LEVEL_INFO) : log_enabled(LOG_LEVEL_INFO)) {
		va_start(args, format);
		print_event(LOG_LEVEL_INFO, about, format, args);
		va_end(args);
	}
}
