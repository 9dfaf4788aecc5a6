/* reader.c: see reader.h. */
#include "daemon/book/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/locate.h"
#include "daemon/book/suggest.h"
#include "proto/limits.h"
#include "proto/validate.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

int reader_parse(const struct reader *r, const char *text, size_t size, json_t **ret) {
	json_error_t error;
	json_t *document = NULL;

	if (size > READER_SIZE_MAX) {
		snprintf(r->error, r->error_size, "%s: too large: at most %u MiB", r->file,
			 READER_SIZE_MAX / 1024 / 1024);
		return -EINVAL;
	}
	document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (!document) {
		snprintf(r->error, r->error_size, "%s:%d:%d: %s", r->file, error.line, error.column,
			 error.text);
		return -EINVAL;
	}
	*ret = document;
	return 0;
}

/* From the outside in: the path of what is above comes first. Returns the length so far. */
static size_t print_path(const struct reader_node *at, char *text, size_t size) {
	size_t used;
	int n;

	if (!at->up) {
		return 0;
	}
	used = print_path(at->up, text, size);
	if (used >= size) {
		return used;
	}
	if (at->key) {
		n = snprintf(text + used, size - used, "%s%s", used ? "." : "", at->key);
	} else {
		n = snprintf(text + used, size - used, "[%zu]", at->index);
	}
	return used + (n > 0 ? (size_t)n : 0);
}

static unsigned line_of(const struct reader *r, const struct reader_node *at) {
	struct locate_step path[16];
	size_t depth = 0;

	for (const struct reader_node *node = at; node->up; node = node->up) {
		depth++;
	}
	for (size_t i = depth; at->up; at = at->up) { /* of a very deep one: what is around it */
		if (--i < N(path)) {
			path[i] = (struct locate_step){at->key, at->index};
		}
	}
	return locate_line(r->text, r->size, path, depth < N(path) ? depth : N(path));
}

int reader_fail(const struct reader *r, const struct reader_node *at, const char *format, ...) {
	char path[256] = "", what[512], line[16] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	print_path(at, path, sizeof(path));
	if (r->text && at->up) {
		snprintf(line, sizeof(line), ":%u", line_of(r, at));
	}
	snprintf(r->error, r->error_size, "%s%s: %s%s%s", r->file, line, path, *path ? ": " : "",
		 what);
	return -EINVAL;
}

/* What was found, for messages. */
static const char *describe(const json_t *value, char text[64]) {
	switch (json_typeof(value)) {
	case JSON_INTEGER:
		snprintf(text, 64, "%lld", (long long)json_integer_value(value));
		break;
	case JSON_REAL:
		snprintf(text, 64, "%g", json_real_value(value));
		break;
	case JSON_STRING:
		snprintf(text, 64, "\"%.40s\"%s", json_string_value(value),
			 json_string_length(value) > 40 ? "..." : "");
		break;
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_NULL:
		return "null";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	}
	return text;
}

static int fail_type(const struct reader *r, const struct reader_node *at, const char *expected) {
	char text[64];

	return reader_fail(r, at, "expected %s, found %s", expected, describe(at->value, text));
}

int reader_object(const struct reader *r, const struct reader_node *at, const char *const *keys) {
	const char *key;
	json_t *value;

	if (!json_is_object(at->value)) {
		return fail_type(r, at, "an object");
	}
	json_object_foreach(at->value, key, value) {
		struct suggest s = suggest_start(key);
		size_t i = 0;

		for (; keys[i] && strcmp(keys[i], key) != 0; i++) {
			suggest_offer(&s, keys[i]);
		}
		if (!keys[i] && s.best) {
			return reader_fail(r, at, "unknown key '%.64s'. Did you mean '%s'?", key,
					   s.best);
		}
		if (!keys[i]) {
			return reader_fail(r, at, "unknown key '%.64s'", key);
		}
	}
	return 0;
}

int reader_array(const struct reader *r, const struct reader_node *at, size_t max) {
	if (!json_is_array(at->value)) {
		return fail_type(r, at, "an array");
	}
	if (json_array_size(at->value) > max) {
		return reader_fail(r, at, "expected at most %zu elements, found %zu", max,
				   json_array_size(at->value));
	}
	return 0;
}

bool reader_get(const struct reader_node *at, const char *key, struct reader_node *ret) {
	json_t *value = json_object_get(at->value, key);

	if (!value) {
		return false;
	}
	*ret = (struct reader_node){.up = at, .key = key, .value = value};
	return true;
}

int reader_need(const struct reader *r, const struct reader_node *at, const char *key,
		struct reader_node *ret) {
	return reader_get(at, key, ret) ? 0 : reader_fail(r, at, "'%s' is missing", key);
}

struct reader_node reader_element(const struct reader_node *at, size_t index) {
	return (struct reader_node){
		.up = at, .index = index, .value = json_array_get(at->value, index)};
}

int reader_time(const struct reader *r, const struct reader_node *at, nsec_t min, nsec_t max,
		nsec_t *ret) {
	const char *text = json_string_value(at->value);
	char low[32], high[32];
	nsec_t t = 0;
	int e;

	if (!text || strlen(text) != json_string_length(at->value)) {
		return fail_type(r, at, "a time with its unit, such as \"2.5ms\"");
	}
	e = units_parse_nsec(text, &t);
	if (e == -EINVAL) {
		return fail_type(r, at, "a time with its unit, such as \"2.5ms\"");
	}
	if (e < 0 || t < min || t > max) {
		char expected[96];

		units_print_nsec(min, low, sizeof(low));
		units_print_nsec(max, high, sizeof(high));
		snprintf(expected, sizeof(expected), "a time from %s to %s", low, high);
		return fail_type(r, at, expected);
	}
	*ret = t;
	return 0;
}

int reader_int(const struct reader *r, const struct reader_node *at, int64_t min, int64_t max,
	       int64_t *ret) {
	json_int_t value = json_integer_value(at->value);
	char expected[96];

	if (!json_is_integer(at->value) || value < min || value > max) {
		snprintf(expected, sizeof(expected), "a whole number from %lld to %lld",
			 (long long)min, (long long)max);
		return fail_type(r, at, expected);
	}
	*ret = value;
	return 0;
}

int reader_milli(const struct reader *r, const struct reader_node *at, const char *unit,
		 uint32_t max, uint32_t *ret) {
	double value = json_number_value(at->value);
	char expected[96];

	if (!json_is_number(at->value) || !(value >= 0 && value * 1000 <= max)) {
		snprintf(expected, sizeof(expected), "a number of %s from 0 to %u", unit,
			 max / 1000);
		return fail_type(r, at, expected);
	}
	*ret = (uint32_t)(value * 1000 + 0.5);
	return 0;
}

int reader_string(const struct reader *r, const struct reader_node *at, const char **ret) {
	const char *text = json_string_value(at->value);

	if (!text || strlen(text) != json_string_length(at->value)) {
		return fail_type(r, at, "a string");
	}
	*ret = text;
	return 0;
}

int reader_name(const struct reader *r, const struct reader_node *at, const char **ret) {
	const char *text = NULL; /* set when reader_string() succeeds; gcc can't see it */
	int e = reader_string(r, at, &text);

	if (e < 0) {
		return e;
	}
	if (*text == '\0' || strlen(text) > PROTO_NAME_MAX) {
		return reader_fail(r, at, "expected a name of 1 to %d bytes", PROTO_NAME_MAX);
	}
	if (validate_text(text, PROTO_NAME_MAX) < 0) {
		return reader_fail(r, at, "expected a name of printable UTF-8");
	}
	*ret = text;
	return 0;
}
