/*
 * log.h: one line a message on stderr, with the priority in front where the journal reads it.
 *
 * Messages are sentences without a full stop; objects stand in 'ticks'. Whoever decides what to do
 * about a failure logs it, once.
 */
#pragma once

#include <stdbool.h>

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

/* For what a client can cause at will: at most 20 lines at once and 2 a second, so that nobody
 * fills the disk; what was left out is counted and said. */
void log_client(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_print(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                           \
	do {                                                     \
		if (log_enabled(LOG_LEVEL_DEBUG)) {              \
			log_print(LOG_LEVEL_DEBUG, __VA_ARGS__); \
		}                                                \
	} while (0)
