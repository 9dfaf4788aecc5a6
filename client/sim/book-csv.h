/*
 * book-csv.h: a book of profiles as two CSV files with header lines.
 *
 * One has the execution times: gpu, app, sm, min_ms, max_ms; the other the power and the copies:
 * app, gpu, power_dynamic_w_per_sm, ghd_ms, gdh_ms. Further columns are skipped when reading.
 */
#pragma once

#include <stdio.h>

#include "daemon/book/book.h"

struct book_csv {
	const char *name; /* for errors */
	const char *text; /* terminated */
};

/* Return: 0; -EINVAL with one line that names file and line in @error; -ENOMEM. What was added
 * before a failure stays. */
int book_csv_read(struct book *b, const struct book_csv *wcet, const struct book_csv *apps,
		  char *error, size_t error_size);

/* Linear profiles have no points and stay out: the caller tells. */
void book_csv_write_wcet(const struct book *b, FILE *out);
void book_csv_write_apps(const struct book *b, FILE *out);
