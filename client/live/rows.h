/*
 * rows.h: what measuring a program at several numbers of SMs has given, a row each; kept in a file
 * until all are there, so that an interrupted run goes on where it was.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "client/live/measure.h"
#include "client/live/sample.h"
#include "daemon/book/book.h"

struct row {
	unsigned n_sms; /* that its jobs were granted */
	unsigned asked;
	struct sample copy_in, exec, copy_out;
	bool metered;	  /* watts means something */
	double watts;	  /* of the whole GPU while a job runs */
	double watts_off; /* by how much that may be off */
};

struct rows {
	char gpu[96]; /* its type */
	unsigned gpu_index, gpu_sms;
	bool metered;	  /* static_w means something */
	double static_w;  /* of the GPU when nothing runs */
	struct row *list; /* owned */
	size_t n;
};

void rows_deinit(struct rows *r);

/* Return: 0 or -ENOMEM. */
int rows_add(struct rows *r, const struct row *row);
bool rows_have(const struct rows *r, unsigned asked);

/* What the series says of GPU @r->gpu_index, which all its jobs ran on. Return: 0 or -ENOMEM. */
int rows_make(const struct rows *r, const struct measure_series *s, unsigned asked,
	      struct row *ret);

/* What a job on @row's SMs costs above static power, its copies back included. */
double rows_job_j(const struct rows *r, const struct row *row);

/* Dynamic power on @row's SMs, P_d(m), when each SM that is not used draws @idle_w: what is above
 * static power and theirs, at least 0. */
double rows_dynamic_w(const struct rows *r, const struct row *row, double idle_w);

/*
 * P_idle(1), by a straight line through the power at all rows: with no SM used it is P_s + M *
 * P_idle. Return: 0; -EDOM: fewer than two rows with power. @ret_off: the largest distance of a row
 * from the line, as a share.
 */
int rows_fit(const struct rows *r, double *ret_idle_w, double *ret_per_sm_w, double *ret_off);

/* The profile @name with these rows: the worst case of each is its longest time and @margin_percent
 * more, because the longest possible time is rarely seen; copies are the longest ones. Return: 0,
 * -ENOMEM, -ERANGE: a time is out of a profile's bounds. */
int rows_profile(const struct rows *r, const char *name, double idle_w, unsigned margin_percent,
		 struct book *ret);

/* Whether the rows can't be true: power below static power by more than a meter errs, or what
 * book_doubt() says of @profile, made of them. Return: 0, or the SMs of the row that is in doubt,
 * with one line in @why. @ret_power: it is for its power. */
unsigned rows_doubt(const struct rows *r, const struct book *profile, bool *ret_power, char *why,
		    size_t size);

/* Removes the row of so many SMs; or all rows if its power is below static power, which is measured
 * before the first row and may be what is wrong. */
void rows_drop(struct rows *r, unsigned n_sms);

/* Writes all rows to @path, which is replaced as a whole. @key: what was measured, and how. Return:
 * 0 or a negative errno. */
int rows_save(const struct rows *r, const char *path, const char *key);

/* Adds the rows of a file that rows_save() has written with the same key. Return: 0; -ENOENT: there
 * is none; -EBADMSG: no such file; -EKEYREJECTED: of another key; a negative errno. */
int rows_load(struct rows *r, const char *path, const char *key);

/* An array; NULL: no memory. */
json_t *rows_json(const struct rows *r, double idle_w);
