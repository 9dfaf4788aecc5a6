/* locate.c: see locate.h. */
#include "daemon/book/locate.h"

#include <stdbool.h>
#include <string.h>

/* A place in the text. */
struct cursor {
	const char *at, *end;
};

/* Whether there is a next character, and it is one of @set. */
static bool next_is(const struct cursor *c, const char *set) {
	return c->at < c->end && *c->at && strchr(set, *c->at);
}

static void skip_space(struct cursor *c) {
	while (next_is(c, " \t\r\n")) {
		c->at++;
	}
}

/* From its first quote to behind its last one. */
static void skip_string(struct cursor *c) {
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
		c->at += *c->at == '\\';
	}
	c->at++;
}

/* A value of any kind. Counts brackets instead of calling itself: documents may be deep. */
static void skip_value(struct cursor *c) {
	size_t depth = 0;

	for (;;) {
		skip_space(c);
		if (c->at >= c->end) {
			return;
		}
		if (next_is(c, "\"")) {
			skip_string(c);
		} else if (next_is(c, "[{")) {
			depth++;
			c->at++;
		} else if (next_is(c, "]}")) {
			depth--;
			c->at++;
		} else if (next_is(c, ",:")) {
			c->at++;
			continue;
		} else {
			while (c->at < c->end && !next_is(c, " \t\r\n,:]}")) {
				c->at++;
			}
		}
		if (depth == 0) {
			return;
		}
	}
}

/* @c is at "{" or "[": moves it to the value one @step further in. Return: whether it is there. */
static bool enter(struct cursor *c, const struct locate_step *step) {
	c->at++;
	for (size_t i = 0;; i++) {
		skip_space(c);
		if (c->at >= c->end || next_is(c, "]}")) {
			return false;
		}
		if (step->key) {
			const char *name = c->at + 1;
			size_t length;

			skip_string(c);
			length = (size_t)(c->at - name - 1);
			skip_space(c);
			c->at++; /* ":" */
			skip_space(c);
			if (strlen(step->key) == length && memcmp(step->key, name, length) == 0) {
				return true;
			}
		} else if (i == step->index) {
			return true;
		}
		skip_value(c);
		skip_space(c);
		if (next_is(c, ",")) {
			c->at++;
		}
	}
}

unsigned locate_line(const char *text, size_t size, const struct locate_step *path,
		     size_t n_steps) {
	struct cursor c = {.at = text, .end = text + size};
	unsigned line = 1;

	skip_space(&c);
	for (size_t i = 0; i < n_steps; i++) {
		struct cursor inside = c;

		if (!enter(&inside, &path[i])) {
			break;
		}
		c = inside;
	}
	for (const char *p = text; p < c.at && p < c.end; p++) {
		line += *p == '\n';
	}
	return line;
}
