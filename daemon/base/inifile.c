/*
 * inifile.c: around libinih. See inifile.h.
 */
#include "daemon/base/inifile.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/util.h"
#include "proto/validate.h"

struct source {
	const char *at, *end;
	unsigned line; /* number of the last one read, from 1 */
	inifile_entry_fn entry;
	void *userdata;
	int r; /* first failure */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 3, 4))) static void fail(struct source *s, int r, const char *format,
						       ...) {
	va_list args;
	int n;

	if (s->r == 0) {
		s->r = r;
		n = snprintf(s->why, s->why_size, "%u: ", s->line);
		if (n >= 0 && (size_t)n < s->why_size) {
			va_start(args, format);
			vsnprintf(s->why + n, s->why_size - (size_t)n, format, args);
			va_end(args);
		}
	}
}

/* libinih takes an indented line for more of the one before; we have no such values. */
static void copy_line(const char *from, size_t n, char *to) {
	while (n > 0 && (*from == ' ' || *from == '\t')) {
		from++;
		n--;
	}
	for (size_t i = 0; i < n; i++) {
		to[i] = from[i] == '\t' ? ' ' : from[i];
	}
	if (n > 0 && to[n - 1] == '\r') {
		n--;
	}
	to[n] = '\0';
}

/* As fgets(), a line a call; NULL: the end, or the first line that is none. */
static char *next_line(char *to, int size, void *stream) {
	struct source *s = stream;
	const char *newline;
	size_t n;

	if (s->at == s->end || s->r) {
		return NULL;
	}
	s->line++;
	newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
	n = (size_t)((newline ? newline : s->end) - s->at);
	if (n + 3 > (size_t)size) {
		fail(s, -EBADMSG, "the line has %zu bytes, expected at most %d", n, size - 3);
		return NULL;
	}
	if (memchr(s->at, '\0', n)) {
		fail(s, -EBADMSG, "the line has a NUL byte, expected text");
		return NULL;
	}
	copy_line(s->at, n, to);
	if (validate_text(to, (size_t)size) < 0) {
		fail(s, -EBADMSG, "the line has a byte that is no printable UTF-8");
		return NULL;
	}
	s->at = newline ? newline + 1 : s->end;
	return to;
}

static int on_entry(void *userdata, const char *section, const char *key, const char *value) {
	struct source *s = userdata;

	if (s->r == 0) {
		s->r = s->entry(s->userdata, section, key, value ? value : "", s->line);
	}
	return s->r == 0;
}

int inifile_read(const char *text, size_t n, inifile_entry_fn entry, void *userdata, char *why,
		 size_t why_size) {
	struct source s = {.at = text,
			   .end = text + n,
			   .entry = entry,
			   .userdata = userdata,
			   .why = why,
			   .why_size = why_size};
	int line;

	if (n > INIFILE_SIZE_MAX) {
		snprintf(why, why_size, "0: the file has %zu bytes, expected at most %d", n,
			 INIFILE_SIZE_MAX);
		return -EBADMSG;
	}
	line = ini_parse_stream(next_line, &s, on_entry, &s);
	if (s.r == 0 && line != 0) {
		s.line = line > 0 ? (unsigned)line : 0;
		fail(&s, line > 0 ? -EBADMSG : -ENOMEM, "expected '[section]' or 'key = value'");
	}
	return s.r;
}
