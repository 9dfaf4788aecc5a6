/*
 * table.h: aligned columns of text for people.
 *
 * Programs read JSON instead (json.h). Cells are added row by row, left to right; a failed
 * allocation is remembered and reported by table_print().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct table_column {
	const char *key; /* for --columns and --sort; the same name as in JSON where there is one */
	const char *header; /* with the unit, if there is one */
	bool right;	    /* numbers */
	bool elastic;	    /* may be cut, with an ellipsis, to fit a terminal */
	bool hidden;	    /* shown only when --columns asks for it */
	bool hides_empty;   /* left out, unless --columns asks for it, where no row has a value */
	unsigned drop;	    /* where a terminal is too narrow even so, the column with the highest
			     * number is left out first; 0: never */
};

struct table_style {
	bool no_legend; /* no header */
	bool colour;
	unsigned width; /* of the terminal; 0: cut nothing */
};

struct table;

/* @columns: borrowed, outlives the table. Return: 0 or -ENOMEM. */
int table_new(struct table **ret, const struct table_column *columns, size_t n_columns);
struct table *table_free(struct table *t); /* takes NULL, returns NULL */

/* The next cell: text (NULL or "" is shown as "-"), or a number, with which sorting is by value. */
void table_text(struct table *t, const char *text);
void table_number(struct table *t, int64_t value);

/* Nothing at all, for the rest of a row that only goes on with one of its cells. */
void table_blank(struct table *t);

/* A cell shown as @format says and sorted by @value. */
void table_value(struct table *t, int64_t value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A cell with a time in ms, one decimal; negative ones are in the past. */
void table_msec(struct table *t, int64_t nsec);

/* The same of a time that may not be there: 0 is shown as "-". */
void table_msec_known(struct table *t, uint64_t nsec);

/* A cell with a time of any size and its unit, three or four digits: "250ns", "1.5us", "20.0ms". */
void table_time(struct table *t, int64_t nsec);
void table_time_known(struct table *t, uint64_t nsec); /* likewise */

size_t table_rows(const struct table *t);

/* @list: "a,b,c". Return: 0; -EINVAL with one line in @error. */
int table_select(struct table *t, const char *list, char *error, size_t error_size);

/* @key: a column, "-column" for descending order. Rows that are equal keep their order. */
int table_sort(struct table *t, const char *key, char *error, size_t error_size);

/* Keeps the row @row only. */
void table_keep_row(struct table *t, size_t row);

/* All columns of all rows, also those that are hidden, a line each: its key and its value. Return
 * as table_print(). */
int table_print_fields(const struct table *t, FILE *out);

/* Return: 0, or -ENOMEM if the table is not complete; then nothing was printed. */
int table_print(const struct table *t, const struct table_style *style, FILE *out);
