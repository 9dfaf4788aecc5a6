/* book-csv.c: see book-csv.h. */
#include "client/book-csv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CELL_MAX    256
#define COLUMNS_MAX 64

/* A file being read, one line at a time. */
struct csv {
	const struct book_csv *file;
	const char *at;
	unsigned line; /* of the cells */
	char cells[COLUMNS_MAX][CELL_MAX];
	size_t n_cells;
	size_t n_before; /* profiles of the book that come from elsewhere */
	char *error;
	size_t error_size;
};

static int fail(const struct csv *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(const struct csv *c, const char *format, ...) {
	char what[400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(c->error, c->error_size, "%s:%u: %s", c->file->name, c->line, what);
	return -EINVAL;
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
		if (n == CELL_MAX - 1) {
			return fail(c, "a cell of more than %d bytes", CELL_MAX - 1);
		}
		cell[n++] = *c->at++;
	}
	if (quoted) {
		return fail(c, "a quote that does not end on its line");
	}
	if (n > 0 && cell[n - 1] == '\r') {
		n--;
	}
	cell[n] = '\0';
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
			int e = c->n_cells == COLUMNS_MAX
					? fail(c, "more than %d cells", COLUMNS_MAX)
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

/* Where the columns @names (NULL at the end) stand in the header. */
static int read_header(struct csv *c, const char *const *names, size_t *columns) {
	int e = read_line(c);

	if (e <= 0) {
		return e < 0 ? e : fail(c, "expected a line with the columns' names");
	}
	for (; *names; names++, columns++) {
		*columns = 0;
		while (*columns < c->n_cells && strcmp(c->cells[*columns], *names) != 0) {
			(*columns)++;
		}
		if (*columns == c->n_cells) {
			return fail(c, "the column '%s' is missing", *names);
		}
	}
	return 0;
}

static int read_row(struct csv *c, const size_t *columns, size_t n) {
	int e = read_line(c);

	for (size_t i = 0; e > 0 && i < n; i++) {
		if (columns[i] >= c->n_cells) {
			return fail(c, "expected at least %zu cells, found %zu", columns[i] + 1,
				    c->n_cells);
		}
	}
	return e;
}

static int cell_msec(const struct csv *c, size_t column, nsec_t *ret) {
	char text[CELL_MAX + 2];

	snprintf(text, sizeof(text), "%sms", c->cells[column]);
	if (units_parse_nsec(text, ret) < 0 || *ret > PROFILE_TIME_MAX) {
		return fail(c, "expected milliseconds, at most an hour of them, found '%s'",
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
		return fail(c, "expected a number from 0 to %u, found '%s'", max / 1000,
			    c->cells[column]);
	}
	*ret = (uint32_t)value;
	return 0;
}

/* The table for the names in two cells, made if it is not there and @make is set. */
static int cell_table(const struct csv *c, struct book *b, size_t app, size_t gpu, bool make,
		      struct book_table **ret) {
	const char *name = c->cells[app], *type = c->cells[gpu];
	struct book_profile *p = (struct book_profile *)book_find(b, name);
	struct book_table *t = p ? (struct book_table *)book_table(p, type) : NULL;
	int e = 0;

	if (!*name || strlen(name) > PROTO_NAME_MAX || !*type || strlen(type) > PROTO_NAME_MAX) {
		return fail(c, "expected the names of an app and a gpu");
	}
	if (p && (size_t)(p - b->profiles) < c->n_before) {
		return fail(c, "a second profile '%s'", name);
	}
	if (!t && !make) {
		return fail(c, "no times of '%s' on '%s' in the other file", name, type);
	}
	if (!p) {
		e = b->n_profiles < BOOK_PROFILES_MAX
			    ? book_add_profile(b, name, &p)
			    : fail(c, "more than %d profiles", BOOK_PROFILES_MAX);
	}
	if (e == 0 && !t) {
		e = p->n_tables < BOOK_TYPES_MAX ? book_add_table(p, type, &t)
						 : fail(c, "too many types of GPU");
	}
	if (e == 0) {
		*ret = t;
	}
	return e;
}

static int read_wcet_row(struct csv *c, struct book *b, const size_t *columns) {
	struct book_point point = {0};
	struct book_table *t;
	int64_t n_sms;
	int e;

	e = cell_table(c, b, columns[1], columns[0], true, &t);
	if (e < 0) {
		return e;
	}
	if (units_parse_int(c->cells[columns[2]], 1, PROTO_SMS_MAX, &n_sms) < 0) {
		return fail(c, "expected 1 to %d SMs, found '%s'", PROTO_SMS_MAX,
			    c->cells[columns[2]]);
	}
	point.n_sms = (unsigned)n_sms;
	if ((e = cell_msec(c, columns[3], &point.best)) < 0 ||
	    (e = cell_msec(c, columns[4], &point.worst)) < 0) {
		return e;
	}
	e = book_add_point(t, &point);
	if (e == -EEXIST) {
		return fail(c, "a second line for '%s' on %u SMs of '%s'", c->cells[columns[1]],
			    point.n_sms, c->cells[columns[0]]);
	}
	return e == -ERANGE ? fail(c, "expected 0 < min_ms <= max_ms") : e;
}

static int read_wcet(struct csv *c, struct book *b) {
	static const char *const names[] = {"gpu", "app", "sm", "min_ms", "max_ms", NULL};
	size_t columns[5];
	int e = read_header(c, names, columns);

	while (e == 0 && (e = read_row(c, columns, 5)) > 0) {
		e = read_wcet_row(c, b, columns);
		if (e < 0) {
			return e;
		}
	}
	return e;
}

static int read_apps_row(struct csv *c, struct book *b, const size_t *columns) {
	struct book_table *t;
	uint32_t per_sm = 0;
	int e;

	if ((e = cell_table(c, b, columns[0], columns[1], false, &t)) < 0 ||
	    (e = cell_milli(c, columns[2], PROFILE_POWER_MAX_MW / PROTO_SMS_MAX, &per_sm)) < 0 ||
	    (e = cell_msec(c, columns[3], &t->copy_in)) < 0 ||
	    (e = cell_msec(c, columns[4], &t->copy_out)) < 0) {
		return e;
	}
	if (t->complete) {
		return fail(c, "a second line for '%s' on '%s'", c->cells[columns[0]],
			    c->cells[columns[1]]);
	}
	t->complete = true;
	for (size_t i = 0; i < t->n_points; i++) {
		t->points[i].power_mw = per_sm * t->points[i].n_sms;
	}
	return 0;
}

static int read_apps(struct csv *c, struct book *b) {
	static const char *const names[] = {"app",    "gpu",	"power_dynamic_w_per_sm",
					    "ghd_ms", "gdh_ms", NULL};
	size_t columns[5];
	int e = read_header(c, names, columns);

	while (e == 0 && (e = read_row(c, columns, 5)) > 0) {
		e = read_apps_row(c, b, columns);
		if (e < 0) {
			return e;
		}
	}
	for (size_t i = c->n_before; e == 0 && i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			if (!b->profiles[i].tables[k].complete) {
				return fail(c, "no line for '%s' on '%s'", b->profiles[i].name,
					    b->profiles[i].tables[k].type);
			}
		}
	}
	return e;
}

int book_csv_read(struct book *b, const struct book_csv *wcet, const struct book_csv *apps,
		  char *error, size_t error_size) {
	struct csv *c = calloc(1, sizeof(*c));
	int e;

	if (!c) {
		return -ENOMEM;
	}
	c->n_before = b->n_profiles;
	c->error = error;
	c->error_size = error_size;
	c->file = wcet;
	c->at = wcet->text;
	e = read_wcet(c, b);
	if (e == 0) {
		c->file = apps;
		c->at = apps->text;
		c->line = 0;
		e = read_apps(c, b);
	}
	free(c);
	return e;
}

static void write_msec(nsec_t t, FILE *out) {
	fprintf(out, ",%llu.%06llu", (unsigned long long)(t / NSEC_PER_MSEC),
		(unsigned long long)(t % NSEC_PER_MSEC));
}

static void write_name(const char *name, FILE *out) {
	if (!strpbrk(name, ",\"")) {
		fputs(name, out);
		return;
	}
	putc('"', out);
	for (; *name; name++) {
		if (*name == '"') {
			putc('"', out);
		}
		putc(*name, out);
	}
	putc('"', out);
}

void book_csv_write_wcet(const struct book *b, FILE *out) {
	fprintf(out, "gpu,app,sm,min_ms,max_ms\n");
	for (size_t i = 0; i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			const struct book_table *t = &b->profiles[i].tables[k];

			for (size_t m = 0; m < t->n_points; m++) {
				write_name(t->type, out);
				putc(',', out);
				write_name(b->profiles[i].name, out);
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
			write_name(b->profiles[i].name, out);
			putc(',', out);
			write_name(t->type, out);
			fprintf(out, ",%u.%03u", mw / 1000, mw % 1000);
			write_msec(t->copy_in, out);
			write_msec(t->copy_out, out);
			putc('\n', out);
		}
	}
}
