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

#define CLIENT_BURST	20
#define CLIENT_INTERVAL (NSEC_PER_SEC / 2)
#define LINE_MAX_BYTES	1024

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
	unsigned client_left; /* lines that clients may still cause */
	unsigned client_suppressed;
	nsec_t client_refilled;
} logger = {.level = LOG_LEVEL_INFO, .client_left = CLIENT_BURST};

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

static bool client_may_log(void) {
	nsec_t now = nsec_now();
	nsec_t earned = (now - logger.client_refilled) / CLIENT_INTERVAL;

	if (earned > 0) {
		logger.client_left = earned >= CLIENT_BURST - logger.client_left
					     ? CLIENT_BURST
					     : logger.client_left + (unsigned)earned;
		logger.client_refilled = now;
	}
	if (logger.client_left == 0) {
		logger.client_suppressed++;
		return false;
	}
	logger.client_left--;
	return true;
}

/* Whether a line that a client causes may be printed; tells first of those that might not. */
static bool begin_client_line(enum log_level level) {
	if (!log_enabled(level) || !client_may_log()) {
		return false;
	}
	if (logger.client_suppressed > 0) {
		log_print(level, "%u messages about clients were left out",
			  logger.client_suppressed);
		logger.client_suppressed = 0;
	}
	return true;
}

void log_client(enum log_level level, const char *format, ...) {
	va_list args;

	if (begin_client_line(level)) {
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

void log_event(enum log_level level, const struct log_about *about, const char *format, ...) {
	char raw[LINE_MAX_BYTES], message[LINE_MAX_BYTES];
	struct log_fields fields;
	va_list args;

	if (!begin_client_line(level)) {
		return;
	}
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	text_escape(raw, message, sizeof(message));
	if (logger.journal) {
		log_fields_init(&fields, level, about, message);
		if (notify_journal(fields.list, fields.n) == 0) {
			return;
		}
	}
	log_print(level, "%s", message);
}
