/*
 * book.h: measured profiles by name and type of GPU, as files hold them: raw points, before they
 * are laid out for GPUs of a certain size (daemon/core/profile.h does that).
 *
 * Read from JSON and from pairs of CSV files, written in both forms.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/book/reader.h"
#include "daemon/core/profile.h"

/* More than any collection of kernels; keeps mistakes from taking all memory. */
#define BOOK_PROFILES_MAX 4096
#define BOOK_TYPES_MAX	  64 /* types of GPU in one profile */

/* Launches in one job, and how short each of them may be. */
#define BOOK_LAUNCHES_MAX 100000
#define BOOK_LAUNCH_MIN	  NSEC_PER_USEC

/*
 * What can't be true: more SMs don't make a worst case longer by more than half of it and this,
 * which a busy machine may take to start work and to tell that it ended.
 */
#define BOOK_SLACK NSEC_PER_MSEC

struct book_point {
	unsigned n_sms;
	nsec_t best, worst;
	nsec_t mean, ci95; /* of measured ones: of all such times the mean is within ci95 of this
			    * one, with 95 % confidence; 0: not known */
	uint32_t power_mw; /* of all SMs together */
};

/* One profile on one type of GPU. */
struct book_table {
	char *type; /* owned */
	nsec_t copy_in, copy_out;
	unsigned launches; /* as in profile.h; 0: not given */
	nsec_t block;
	nsec_t linear_work;	   /* not 0: G_e(m) = work / m, no points */
	uint32_t power_mw_per_sm;  /* of a linear one */
	struct book_point *points; /* owned; by SM count */
	size_t n_points;
	bool complete; /* of CSV files: both had it */
};

struct book_profile {
	char *name;		   /* owned */
	struct book_table *tables; /* owned */
	size_t n_tables;
};

struct book {
	struct book_profile *profiles; /* owned */
	size_t n_profiles;
};

void book_deinit(struct book *b);

/* Only the first @n profiles stay, of at least so many. */
void book_truncate(struct book *b, size_t n);

const struct book_profile *book_find(const struct book *b, const char *name);
const struct book_table *book_table(const struct book_profile *p, const char *type);

/* Adds the profiles of the array @at ("profiles" of a file). Return: 0; -EINVAL with the reader's
 * error; -ENOMEM. What was added before a failure stays. */
int book_read(struct book *b, const struct reader *r, const struct reader_node *at);

/* An entry that is not there yet. Return: 0, -EEXIST, -ENOMEM; *ret good until the next addition.
 */
int book_add_profile(struct book *b, const char *name, struct book_profile **ret);
int book_add_table(struct book_profile *p, const char *type, struct book_table **ret);

/* Return: 0; -ERANGE: out of profile.h's bounds; -EEXIST; -ENOMEM. */
int book_add_point(struct book_table *t, const struct book_point *point);

/*
 * Whether the points can't be true: a worst case that is longer on more SMs (see BOOK_SLACK), or a
 * mean of which so little is known that its interval, twice ci95, is wider than the mean. Return:
 * 0, or the SMs of the point that is in doubt, with one line in @why.
 */
unsigned book_doubt(const struct book_table *t, char *why, size_t size);

/* {"profiles": [...]}, a new reference; NULL: no memory. */
json_t *book_json(const struct book *b);

/*
 * Lays @t out for a GPU of @n_sms. Return: 0; -ERANGE: a point has more SMs than the GPU, or a
 * linear one is out of profile.h's bounds there.
 */
int book_lay_out(const struct book_table *t, unsigned n_sms, struct profile_table *ret);
