/*
 * json.c: see json.h.
 */
#include "client/base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int json_mode_parse(const char *text, enum json_mode *ret) {
	static const struct {
		const char *name;
		enum json_mode mode;
	} names[] = {{"short", JSON_SHORT}, {"pretty", JSON_PRETTY}, {"off", JSON_OFF}};

	if (!text) {
		*ret = JSON_AUTO;
		return 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i].name) == 0) {
			*ret = names[i].mode;
			return 0;
		}
	}
	return -EINVAL;
}

int json_write(json_t *object, enum json_mode mode, FILE *out) {
	size_t form = JSON_COMPACT;
	int r;

	if (!object) {
		return -ENOMEM;
	}
	if (mode == JSON_PRETTY || (mode == JSON_AUTO && isatty(fileno(out)))) {
		form = JSON_INDENT(2);
	}
	r = json_dumpf(object, out, form | JSON_REAL_PRECISION(12));
	json_decref(object);
	return r < 0 || putc('\n', out) == EOF ? -EIO : 0;
}

json_t *json_u64(uint64_t value) {
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *json_u64_known(uint64_t value) {
	return value == 0 ? json_null() : json_u64(value);
}

json_t *json_text(const char *text) {
	json_t *string;
	char *clean;

	if (!text) {
		return json_null();
	}
	string = json_string(text);
	if (string) {
		return string;
	}
	clean = strdup(text);
	if (!clean) {
		return NULL;
	}
	for (unsigned char *c = (unsigned char *)clean; *c; c++) {
		if (*c >= 0x80) {
			*c = '?';
		}
	}
	string = json_string(clean);
	free(clean);
	return string;
}
