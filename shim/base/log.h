/*
 * log.h: lines on stderr, as far as SBEET_LOG asks for them (default: warn). Keeps errno.
 *
 * Only to what stderr was when the library was loaded: after close(2) or a redirection within the
 * program nothing is written any more.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	_LOG_LEVEL_N,
};

/* One line, "sbeet: ...", in one write. @format in sentence case, without a full stop. */
void log_line(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* The first time only: a guest does not repeat itself. */
#define log_once(level, ...)                                \
	do {                                                \
		static atomic_flag said = ATOMIC_FLAG_INIT; \
		if (!atomic_flag_test_and_set(&said)) {     \
			log_line((level), __VA_ARGS__);     \
		}                                           \
	} while (0)
