/*
 * header.c: see header.h.
 */
#include "shim/ptx/header.h"

#include <string.h>

#define VERSION ".version"
#define TARGET	".target"

/* Of no architecture there is, and far from overflow. */
#define SM_MAX 1000

/* White space and comments. Returns the rest. */
static const char *skip(const char *p, const char *end) {
	for (;;) {
		while (p < end && *p && strchr(" \t\r\n\v\f", *p)) {
			p++;
		}
		if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
			const char *line = memchr(p, '\n', (size_t)(end - p));

			p = line ? line : end;
		} else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
			const char *q = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);

			if (!q) {
				return end;
			}
			p = q + 2;
		} else {
			return p;
		}
	}
}

static bool starts(const char *p, const char *end, const char *what) {
	size_t n = strlen(what);

	return (size_t)(end - p) >= n && !memcmp(p, what, n);
}

static const char *skip_digits(const char *p, const char *end) {
	while (p < end && *p >= '0' && *p <= '9') {
		p++;
	}
	return p;
}

/* "9.0", or nothing: then @p itself is returned. */
static const char *skip_number(const char *p, const char *end) {
	const char *point = skip_digits(p, end), *rest;

	if (point == p || point == end || *point != '.') {
		return p;
	}
	rest = skip_digits(point + 1, end);
	return rest == point + 1 ? p : rest;
}

/* What follows `.version` at @p, as far as it is as it should be. @ret_stop: how far was looked.
 * Return: whether the architecture was reached. */
static bool read_rest(const char *p, const char *end, struct header *ret, const char **ret_stop) {
	struct header h = {0};
	const char *number, *digits;

	number = skip(p + strlen(VERSION), end);
	p = skip_number(number, end);
	if (p > number) {
		p = skip(p, end);
	}
	*ret_stop = p;
	if (p == number || !starts(p, end, TARGET)) {
		return false;
	}
	p = skip(p + strlen(TARGET), end);
	*ret_stop = p;
	if (!starts(p, end, "sm_")) {
		return false;
	}
	digits = p + strlen("sm_");
	for (p = digits; p < end && *p >= '0' && *p <= '9' && h.sm < SM_MAX; p++) {
		h.sm = 10 * h.sm + (unsigned)(*p - '0');
	}
	if (p < end && (*p == 'a' || *p == 'f')) {
		h.suffix = *p;
	}
	*ret_stop = p;
	if (p == digits) {
		return false;
	}
	*ret = h;
	return true;
}

bool header_read(const char *text, const char *end, struct header *ret) {
	struct header h = {0};
	const char *stop;

	text = skip(text, end);
	if (!starts(text, end, VERSION)) {
		return false;
	}
	read_rest(text, end, &h, &stop);
	*ret = h;
	return true;
}

/* The text in the terminated string [@string, @nul), where `.version` stands first at @hit. */
static const char *find_in_string(const char *string, const char *hit, const char *nul) {
	const char *p = skip(string, nul), *stop;
	struct header h;

	/* The comments at the top may speak of `.version` too. */
	if (starts(p, nul, VERSION) && read_rest(p, nul, &h, &stop)) {
		return string;
	}
	while (hit) {
		if (read_rest(hit, nul, &h, &stop)) {
			return hit;
		}
		/* On from where reading stopped, so that no byte is read for two of them. */
		hit = memmem(stop, (size_t)(nul - stop), VERSION, strlen(VERSION));
	}
	return NULL;
}

bool header_scan_next(struct header_scan *scan, const char **ret_text, size_t *ret_size) {
	const char *hit, *nul, *before, *string, *text;

	for (;;) {
		hit = memmem(scan->next, (size_t)(scan->end - scan->next), VERSION,
			     strlen(VERSION));
		nul = hit ? memchr(hit, 0, (size_t)(scan->end - hit)) : NULL;
		if (!nul) {
			scan->next = scan->end;
			return false;
		}
		before = memrchr(scan->next, 0, (size_t)(hit - scan->next));
		string = before ? before + 1 : scan->next;
		text = find_in_string(string, hit, nul);
		scan->next = nul + 1;
		if (text) {
			*ret_text = text;
			*ret_size = (size_t)(nul - text);
			return true;
		}
	}
}
