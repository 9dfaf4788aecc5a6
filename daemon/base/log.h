/*
 * log.h: one line a message on stderr, with the priority in front where the journal reads it.
 *
 * Messages are sentences without a full stop; objects stand in 'ticks'. Whoever decides what to do
 * about a failure logs it, once. Every message is escaped (proto/text.h), so any text may be part
 * of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "daemon/base/pace.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	_LOG_LEVEL_N,
};

/* Finds out whether stderr is the journal. Until then: level info, plain lines. */
void log_init(enum log_level level);

void log_set_level(enum log_level level);

/* Return: 0, or -EINVAL if @name is none of error, warning, info, debug. */
int log_level_parse(const char *name, enum log_level *ret);

bool log_enabled(enum log_level level);

void log_print(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * For what a client can cause at will, so that nobody fills the disk: each budget has room for 20
 * lines at once and 2 a second, and all budgets together for ten times that. The next line of the
 * same budget is preceded by the number of those left out.
 */
struct log_budget {
	struct pace pace;
	unsigned left_out;
	uint32_t uid; /* of the user whose lines these are; LOG_NO_USER: of no certain one */
};

#define LOG_NO_USER UINT32_MAX

/* Pays for one line. Return: whether it may be printed. */
bool log_budget_take(struct log_budget *budget, nsec_t now);

/* When @budget is as good as new. */
nsec_t log_budget_full_at(const struct log_budget *budget);

/* A line about something that the budget's user did wrong, or that went wrong for it. */
void log_client(struct log_budget *budget, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* MESSAGE_ID= of the journal; systemd/sbeet.catalog explains each. */
#define LOG_ID_PEER   "6d8a1f0b3c5e4972a1d40e7b92c6f358" /* a program did something wrong */
#define LOG_ID_CHANGE "b27e94c05f1d4a6c8e3072d1fa9b5c46" /* sbeetctl changed something */
#define LOG_ID_HOLD                                                                   \
	"e04d7a3f9b2846c1b5f86c1d2a90e7b3" /* a program held SMs that others wait for \
					    */

#define LOG_ID_MISS "3f9c51d27a8e4b06b8d4e2716fc0a95b" /* a job was complete after its deadline */

/* What a line is about, as fields of the journal: SBEET_TASK and so on. */
struct log_about {
	const char *id;	  /* LOG_ID_* */
	const char *task; /* NULL: no certain one */
	int gpu;	  /* -1: no certain one */
	uint64_t job;	  /* 0: no certain one */
	uint32_t uid;	  /* of the user who is the cause */
};

#define LOG_FIELDS_MAX 8

struct log_fields {
	char texts[LOG_FIELDS_MAX][1024 + 16];
	struct iovec list[LOG_FIELDS_MAX];
	int n;
};

/* The fields of one line, as the journal takes them. */
void log_fields_init(struct log_fields *fields, enum log_level level, const struct log_about *about,
		     const char *message);

/* As log_client(), with fields where the journal reads. */
void log_event(struct log_budget *budget, enum log_level level, const struct log_about *about,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* For the record: somebody changed something. @budget: of the user's changes, apart from that of
 * its mistakes; NULL: an admin's, which is always printed. */
void log_change(struct log_budget *budget, const struct log_about *about, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(...)	 log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_print(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                           \
	do {                                                     \
		if (log_enabled(LOG_LEVEL_DEBUG)) {              \
			log_print(LOG_LEVEL_DEBUG, __VA_ARGS__); \
		}                                                \
	} while (0)
