/* book-csv.c: see book-csv.h. */
#include "client/sim/book-csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/csv.h"

/* The two files on their way into a book. */
struct import {
	struct csv csv;
	size_t n_before; /* profiles of the book that come from elsewhere */
};

static int cell_msec(const struct csv *c, size_t column, nsec_t *ret) {
	char text[CSV_CELL_MAX + 2];

	snprintf(text, sizeof(text), "%sms", c->cells[column]);
	if (units_parse_nsec(text, ret) < 0 || *ret > PROFILE_TIME_MAX) {
		return csv_fail(c, "expected milliseconds, at most an hour of them, found '%s'",
				c->cells[column]);
	}
	return 0;
}

/* Decimals such as "3.77" in thousandths; what comes after the third place is cut. */
static int cell_milli(const struct csv *c, size_t column, uint32_t max, uint32_t *ret) {
	const char *at = c->cells[column];
	uint64_t value = 0;
	int places = -1; /* after the point */
	bool digits = false;

	for (; *at; at++) {
		if (*at == '.' && places < 0) {
			places = 0;
			continue;
		}
		if (*at < '0' || *at > '9' || value > UINT32_MAX) {
			break;
		}
		digits = true;
		if (places < 3) {
			value = value * 10 + (uint64_t)(*at - '0');
			places += places >= 0;
		}
	}
	for (places = places < 0 ? 0 : places; places < 3; places++) {
		value *= 10;
	}
	if (*at || !digits || value > max) {
		return csv_fail(c, "expected a number from 0 to %u, found '%s'", max / 1000,
				c->cells[column]);
	}
	*ret = (uint32_t)value;
	return 0;
}

/* The table for the names in two cells, made if it is not there and @make is set. */
static int cell_table(const struct import *in, struct book *b, size_t app, size_t gpu, bool make,
		      struct book_table **ret) {
	const struct csv *c = &in->csv;
	const char *name = c->cells[app], *type = c->cells[gpu];
	struct book_profile *p = (struct book_profile *)book_find(b, name);
	struct book_table *t = p ? (struct book_table *)book_table(p, type) : NULL;
	int e = 0;

	if (!*name || strlen(name) > PROTO_NAME_MAX || !*type || strlen(type) > PROTO_NAME_MAX) {
		return csv_fail(c, "expected the names of an app and a gpu");
	}
	if (p && (size_t)(p - b->profiles) < in->n_before) {
		return csv_fail(c, "a second profile '%s'", name);
	}
	if (!t && !make) {
		return csv_fail(c, "no times of '%s' on '%s' in the other file", name, type);
	}
	if (!p) {
		e = b->n_profiles < BOOK_PROFILES_MAX
			    ? book_add_profile(b, name, &p)
			    : csv_fail(c, "more than %d profiles", BOOK_PROFILES_MAX);
	}
	if (e == 0 && !t) {
		e = p->n_tables < BOOK_TYPES_MAX ? book_add_table(p, type, &t)
						 : csv_fail(c, "too many types of GPU");
	}
	if (e == 0) {
		*ret = t;
	}
	return e;
}

static int read_wcet_row(struct import *in, struct book *b, const size_t *columns) {
	const struct csv *c = &in->csv;
	struct book_point point = {0};
	struct book_table *t;
	int64_t n_sms;
	int e;

	e = cell_table(in, b, columns[1], columns[0], true, &t);
	if (e < 0) {
		return e;
	}
	if (units_parse_int(c->cells[columns[2]], 1, PROTO_SMS_MAX, &n_sms) < 0) {
		return csv_fail(c, "expected 1 to %d SMs, found '%s'", PROTO_SMS_MAX,
				c->cells[columns[2]]);
	}
	point.n_sms = (unsigned)n_sms;
	if ((e = cell_msec(c, columns[3], &point.best)) < 0 ||
	    (e = cell_msec(c, columns[4], &point.worst)) < 0) {
		return e;
	}
	e = book_add_point(t, &point);
	if (e == -EEXIST) {
		return csv_fail(c, "a second line for '%s' on %u SMs of '%s'", c->cells[columns[1]],
				point.n_sms, c->cells[columns[0]]);
	}
	return e == -ERANGE ? csv_fail(c, "expected 0 < min_ms <= max_ms") : e;
}

static int read_wcet(struct import *in, struct book *b) {
	static const char *const names[] = {"gpu", "app", "sm", "min_ms", "max_ms", NULL};
	struct csv *c = &in->csv;
	size_t columns[5];
	int e = csv_read_header(c, names, columns);

	while (e == 0 && (e = csv_read_row(c, columns, 5)) > 0) {
		e = read_wcet_row(in, b, columns);
		if (e < 0) {
			return e;
		}
	}
	for (size_t i = in->n_before; e == 0 && i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			const struct book_table *t = &b->profiles[i].tables[k];
			char why[256];

			if (book_doubt(t, why, sizeof(why)) > 0) {
				return csv_fail(c, "'%s' on '%s': %s", b->profiles[i].name, t->type,
						why);
			}
		}
	}
	return e;
}

static int read_apps_row(struct import *in, struct book *b, const size_t *columns) {
	const struct csv *c = &in->csv;
	struct book_table *t;
	uint32_t per_sm = 0;
	int e;

	if ((e = cell_table(in, b, columns[0], columns[1], false, &t)) < 0 ||
	    (e = cell_milli(c, columns[2], PROFILE_POWER_MAX_MW / PROTO_SMS_MAX, &per_sm)) < 0 ||
	    (e = cell_msec(c, columns[3], &t->copy_in)) < 0 ||
	    (e = cell_msec(c, columns[4], &t->copy_out)) < 0) {
		return e;
	}
	if (t->complete) {
		return csv_fail(c, "a second line for '%s' on '%s'", c->cells[columns[0]],
				c->cells[columns[1]]);
	}
	t->complete = true;
	for (size_t i = 0; i < t->n_points; i++) {
		t->points[i].power_mw = per_sm * t->points[i].n_sms;
	}
	return 0;
}

static int read_apps(struct import *in, struct book *b) {
	static const char *const names[] = {"app",    "gpu",	"power_dynamic_w_per_sm",
					    "ghd_ms", "gdh_ms", NULL};
	struct csv *c = &in->csv;
	size_t columns[5];
	int e = csv_read_header(c, names, columns);

	while (e == 0 && (e = csv_read_row(c, columns, 5)) > 0) {
		e = read_apps_row(in, b, columns);
		if (e < 0) {
			return e;
		}
	}
	for (size_t i = in->n_before; e == 0 && i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			if (!b->profiles[i].tables[k].complete) {
				return csv_fail(c, "no line for '%s' on '%s'", b->profiles[i].name,
						b->profiles[i].tables[k].type);
			}
		}
	}
	return e;
}

int book_csv_read(struct book *b, const struct book_csv *wcet, const struct book_csv *apps,
		  char *error, size_t error_size) {
	struct import *in = calloc(1, sizeof(*in));
	int e;

	if (!in) {
		return -ENOMEM;
	}
	in->n_before = b->n_profiles;
	csv_begin(&in->csv, wcet->name, wcet->text, error, error_size);
	e = read_wcet(in, b);
	if (e == 0) {
		csv_begin(&in->csv, apps->name, apps->text, error, error_size);
		e = read_apps(in, b);
	}
	free(in);
	return e;
}

static void write_msec(nsec_t t, FILE *out) {
	fprintf(out, ",%llu.%06llu", (unsigned long long)(t / NSEC_PER_MSEC),
		(unsigned long long)(t % NSEC_PER_MSEC));
}

void book_csv_write_wcet(const struct book *b, FILE *out) {
	fprintf(out, "gpu,app,sm,min_ms,max_ms\n");
	for (size_t i = 0; i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			const struct book_table *t = &b->profiles[i].tables[k];

			for (size_t m = 0; m < t->n_points; m++) {
				csv_write_text(out, t->type);
				putc(',', out);
				csv_write_text(out, b->profiles[i].name);
				fprintf(out, ",%u", t->points[m].n_sms);
				write_msec(t->points[m].best, out);
				write_msec(t->points[m].worst, out);
				putc('\n', out);
			}
		}
	}
}

/* Watts per SM at the largest count: the form has one number for all. */
static uint32_t power_per_sm(const struct book_table *t) {
	const struct book_point *last = &t->points[t->n_points - 1];

	return last->power_mw / last->n_sms;
}

void book_csv_write_apps(const struct book *b, FILE *out) {
	fprintf(out, "app,gpu,power_dynamic_w_per_sm,ghd_ms,gdh_ms\n");
	for (size_t i = 0; i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			const struct book_table *t = &b->profiles[i].tables[k];
			uint32_t mw = t->n_points ? power_per_sm(t) : 0;

			if (t->n_points == 0) {
				continue;
			}
			csv_write_text(out, b->profiles[i].name);
			putc(',', out);
			csv_write_text(out, t->type);
			fprintf(out, ",%u.%03u", mw / 1000, mw % 1000);
			write_msec(t->copy_in, out);
			write_msec(t->copy_out, out);
			putc('\n', out);
		}
	}
}
