/* csv.c: see csv.h. */
#include "client/base/csv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void csv_begin(struct csv *c, const char *name, const char *text, char *error, size_t error_size) {
	c->name = name;
	c->at = text;
	c->line = 0;
	c->n_cells = 0;
	c->error = error;
	c->error_size = error_size;
}

int csv_fail(const struct csv *c, const char *format, ...) {
	char what[400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(c->error, c->error_size, "%s:%u: %s", c->name, c->line, what);
	return -EINVAL;
}

/* The apostrophe is one of them, so that what is written is read as it was. */
static bool needs_apostrophe(const char *text) {
	return *text && strchr("=+-@\t\r'", *text);
}

void csv_write_text(FILE *out, const char *text) {
	putc('"', out);
	if (needs_apostrophe(text)) {
		putc('\'', out);
	}
	for (; *text; text++) {
		if (*text == '"') {
			putc('"', out);
		}
		putc(*text, out);
	}
	putc('"', out);
}

/* One cell up to its comma or the end of its line. In quotes, two quotes stand for one. */
static int read_cell(struct csv *c) {
	bool quoted = *c->at == '"';
	char *cell = c->cells[c->n_cells];
	size_t n = 0;

	c->at += quoted;
	while (*c->at && *c->at != '\n' && (quoted || *c->at != ',')) {
		if (quoted && *c->at == '"') {
			c->at++;
			if (*c->at != '"') {
				quoted = false;
				continue;
			}
		}
		if (n == CSV_CELL_MAX - 1) {
			return csv_fail(c, "a cell of more than %d bytes", CSV_CELL_MAX - 1);
		}
		cell[n++] = *c->at++;
	}
	if (quoted) {
		return csv_fail(c, "a quote that does not end on its line");
	}
	if (n > 0 && cell[n - 1] == '\r') {
		n--;
	}
	cell[n] = '\0';
	if (*cell == '\'' && needs_apostrophe(cell + 1)) {
		memmove(cell, cell + 1, n);
	}
	c->n_cells++;
	return 0;
}

/* Return: 1; 0 at the end; -EINVAL. Empty lines are skipped. */
static int read_line(struct csv *c) {
	for (;;) {
		c->line++;
		c->n_cells = 0;
		if (!*c->at) {
			return 0;
		}
		for (;;) {
			int e = c->n_cells == CSV_COLUMNS_MAX
					? csv_fail(c, "more than %d cells", CSV_COLUMNS_MAX)
					: read_cell(c);

			if (e < 0) {
				return e;
			}
			if (*c->at != ',') {
				break;
			}
			c->at++;
		}
		c->at += *c->at == '\n';
		if (c->n_cells > 1 || *c->cells[0]) {
			return 1;
		}
	}
}

int csv_read_header(struct csv *c, const char *const *names, size_t *columns) {
	int e = read_line(c);

	if (e <= 0) {
		return e < 0 ? e : csv_fail(c, "expected a line with the columns' names");
	}
	for (; *names; names++, columns++) {
		*columns = 0;
		while (*columns < c->n_cells && strcmp(c->cells[*columns], *names) != 0) {
			(*columns)++;
		}
		if (*columns == c->n_cells) {
			return csv_fail(c, "the column '%s' is missing", *names);
		}
	}
	return 0;
}

int csv_read_row(struct csv *c, const size_t *columns, size_t n) {
	int e = read_line(c);

	for (size_t i = 0; e > 0 && i < n; i++) {
		if (columns[i] >= c->n_cells) {
			return csv_fail(c, "expected at least %zu cells, found %zu", columns[i] + 1,
					c->n_cells);
		}
	}
	return e;
}
