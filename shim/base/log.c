/*
 * log.c: see log.h. No lock and no stdio buffer of the program's: a line is one write(2).
 */
#include "shim/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer lines are cut. */
#define LINE_MAX_BYTES 1024

/* What standard error was when the library was loaded. */
static struct stat first; /* st_mode 0: it was closed */

static void find_stderr(void) {
	if (fstat(STDERR_FILENO, &first) < 0) {
		first = (struct stat){0};
	}
}

/* A program may close it, and then its next file gets the number. A copy of the descriptor would
 * keep a pipe open that the program means to close. */
static bool stderr_is_ours(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct stat now;

	pthread_once(&once, find_stderr);
	return first.st_mode != 0 && fstat(STDERR_FILENO, &now) == 0 &&
	       now.st_dev == first.st_dev && now.st_ino == first.st_ino;
}

__attribute__((constructor)) static void look_at_stderr(void) {
	stderr_is_ours();
}

static enum log_level find_level(void) {
	static const char *const names[_LOG_LEVEL_N] = {"error", "warn", "info", "debug"};
	const char *text = getenv("SBEET_LOG");

	for (int i = 0; text && i < _LOG_LEVEL_N; i++) {
		if (strcmp(text, names[i]) == 0) {
			return (enum log_level)i;
		}
	}
	return LOG_LEVEL_WARN;
}

static bool log_wants(enum log_level level) {
	static _Atomic int known = -1;
	int most = atomic_load_explicit(&known, memory_order_relaxed);

	if (most < 0) {
		most = (int)find_level();
		atomic_store_explicit(&known, most, memory_order_relaxed);
	}
	return (int)level <= most;
}

void log_line(enum log_level level, const char *format, ...) {
	char line[LINE_MAX_BYTES] = "sbeet: ";
	size_t used = strlen(line);
	int saved = errno, cancel;
	va_list args;
	int n;

	if (!log_wants(level)) {
		return;
	}
	va_start(args, format);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (n > 0) {
		used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
		line[used++] = '\n';
		/* write() is a place where a thread can be cancelled, and the caller may hold
		 * locks.
		 */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		if (stderr_is_ours() && write(STDERR_FILENO, line, used) < 0) {
			/* Nowhere to say it. */
		}
		pthread_setcancelstate(cancel, NULL);
	}
	errno = saved;
}
