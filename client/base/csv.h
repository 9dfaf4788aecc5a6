/*
 * csv.h: the rows of a text with a header line, cell by cell, and errors that name file and line; and
 * cells of text, as they are written.
 * Knows nothing of what the columns mean.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define CSV_CELL_MAX	256
#define CSV_COLUMNS_MAX 64

/* A file being read, one line at a time. */
struct csv {
	const char *name; /* of the file, for errors; borrowed like all here */
	const char *at;
	unsigned line; /* of the cells */
	char cells[CSV_COLUMNS_MAX][CSV_CELL_MAX];
	size_t n_cells;
	char *error;
	size_t error_size;
};

/*
 * Writes a cell of text, in quotes. A spreadsheet would take one that begins with = + - @, a tab or a carriage
 * return for a formula, which may run programs: it gets an apostrophe in front, which csv_read_row()
 * takes away again.
 */
void csv_write_text(FILE *out, const char *text);

/* @text is terminated. */
void csv_begin(struct csv *c, const char *name, const char *text, char *error, size_t error_size);

/* "NAME:LINE: what" in the error. Return: -EINVAL. */
int csv_fail(const struct csv *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where the columns @names (NULL at the end) stand in the header. Return: 0, -EINVAL. */
int csv_read_header(struct csv *c, const char *const *names, size_t *columns);

/* The next line that is not empty; it has a cell in each of the @n columns. Return: 1; 0 at the
 * end; -EINVAL. */
int csv_read_row(struct csv *c, const size_t *columns, size_t n);
