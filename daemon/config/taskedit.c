/* taskedit.c: see taskedit.h. */
#include "daemon/config/taskedit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/util.h"

#define SECTION "[task]"

struct edit {
	const struct taskedit_value *values;
	size_t n_values;
	FILE *out;
	bool inside; /* of [task] */
	bool done;   /* the values are written */
};

static void write_values(struct edit *e) {
	for (size_t i = 0; !e->done && i < e->n_values; i++) {
		fprintf(e->out, "%s = %s\n", e->values[i].key, e->values[i].value);
	}
	e->done = true;
}

/* Whether "key = value" is of one of the values that are set. */
static bool is_replaced(const struct edit *e, const char *line, size_t n) {
	size_t length = 0;

	while (length < n && line[length] != '=' && line[length] != ':') {
		length++;
	}
	if (!e->inside || length == n) {
		return false;
	}
	while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) {
		length--;
	}
	for (size_t i = 0; i < e->n_values; i++) {
		if (strlen(e->values[i].key) == length &&
		    memcmp(e->values[i].key, line, length) == 0) {
			return true;
		}
	}
	return false;
}

/* One line, @n bytes with its end. */
static void edit_line(struct edit *e, const char *line, size_t n) {
	size_t blank = 0;

	while (blank < n && (line[blank] == ' ' || line[blank] == '\t')) {
		blank++;
	}
	if (blank < n && line[blank] == '[') {
		e->inside = n - blank >= strlen(SECTION) &&
			    memcmp(line + blank, SECTION, strlen(SECTION)) == 0;
	} else if (is_replaced(e, line + blank, n - blank)) {
		return;
	}
	fwrite(line, 1, n, e->out);
	if (n > 0 && line[n - 1] != '\n') {
		fputc('\n', e->out);
	}
	if (e->inside) {
		write_values(e);
	}
}

int taskedit_apply(const char *text, size_t n, const char *head,
		   const struct taskedit_value *values, size_t n_values, char **ret,
		   size_t *ret_n) {
	struct edit e = {.values = values, .n_values = n_values};
	_cleanup_free_ char *result = NULL;
	size_t size = 0;
	bool failed;

	e.out = open_memstream(&result, &size);
	if (!e.out) {
		return -ENOMEM;
	}
	if (n == 0) {
		fprintf(e.out, "# %s\n", head);
	}
	for (size_t at = 0, length; at < n; at += length) {
		const char *end = memchr(text + at, '\n', n - at);

		length = end ? (size_t)(end - text) + 1 - at : n - at;
		edit_line(&e, text + at, length);
	}
	if (!e.done) {
		fprintf(e.out, "%s" SECTION "\n", n > 0 ? "\n" : "");
		write_values(&e);
	}
	failed = ferror(e.out) != 0;
	if (fclose(e.out) != 0 || failed) {
		return -ENOMEM;
	}
	*ret = TAKE_PTR(result);
	*ret_n = size;
	return 0;
}
