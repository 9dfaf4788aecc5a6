/*
 * table.c: see table.h.
 */
#include "client/base/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/terminal.h"
#include "daemon/book/suggest.h"
#include "proto/units.h"

#define GAP	    2
#define ELLIPSIS    "..."
#define ELASTIC_MIN 8 /* columns below which cutting leaves nothing to read */

struct cell {
	char *text; /* owned */
	int64_t value;
	bool is_number;
};

struct table {
	const struct table_column *columns; /* borrowed */
	size_t n_columns;
	struct cell *cells; /* owned: rows of n_columns, the last row may be unfinished */
	size_t n_cells, allocated;
	size_t *shown; /* owned: indices of columns, in the order of display */
	size_t n_shown;
	bool chosen;	 /* the user asked for these columns, so all of them are shown */
	bool incomplete; /* an allocation failed */
};

int table_new(struct table **ret, const struct table_column *columns, size_t n_columns) {
	struct table *t = calloc(1, sizeof(*t));

	if (!t) {
		return -ENOMEM;
	}
	t->columns = columns;
	t->n_columns = n_columns;
	t->shown = calloc(n_columns, sizeof(*t->shown));
	if (!t->shown) {
		free(t);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_columns; i++) {
		if (!columns[i].hidden) {
			t->shown[t->n_shown++] = i;
		}
	}
	*ret = t;
	return 0;
}

struct table *table_free(struct table *t) {
	if (!t) {
		return NULL;
	}
	for (size_t i = 0; i < t->n_cells; i++) {
		free(t->cells[i].text);
	}
	free(t->cells);
	free(t->shown);
	free(t);
	return NULL;
}

static void add(struct table *t, struct cell cell) {
	if (!cell.text) {
		t->incomplete = true;
		return;
	}
	if (t->n_cells == t->allocated) {
		size_t n = t->allocated ? t->allocated * 2 : 64;
		struct cell *cells = reallocarray(t->cells, n, sizeof(*cells));

		if (!cells) {
			t->incomplete = true;
			free(cell.text);
			return;
		}
		t->cells = cells;
		t->allocated = n;
	}
	terminal_clean(cell.text);
	t->cells[t->n_cells++] = cell;
}

void table_text(struct table *t, const char *text) {
	add(t, (struct cell){.text = strdup(text && *text ? text : "-")});
}

void table_blank(struct table *t) {
	add(t, (struct cell){.text = strdup("")});
}

void table_value(struct table *t, int64_t value, const char *format, ...) {
	struct cell cell = {.value = value, .is_number = true};
	va_list args;

	va_start(args, format);
	if (vasprintf(&cell.text, format, args) < 0) {
		cell.text = NULL;
	}
	va_end(args);
	add(t, cell);
}

void table_number(struct table *t, int64_t value) {
	table_value(t, value, "%lld", (long long)value);
}

void table_msec(struct table *t, int64_t nsec) {
	uint64_t size = nsec < 0 ? -(uint64_t)nsec : (uint64_t)nsec;
	uint64_t tenths = (size + 50000) / 100000;

	table_value(t, nsec, "%s%llu.%llu", nsec < 0 ? "-" : "", (unsigned long long)tenths / 10,
		    (unsigned long long)tenths % 10);
}

void table_time(struct table *t, int64_t nsec) {
	static const struct {
		nsec_t from, unit;
		const char *name;
	} units[] = {{10 * NSEC_PER_SEC, NSEC_PER_SEC, "s"},
		     {NSEC_PER_MSEC, NSEC_PER_MSEC, "ms"},
		     {NSEC_PER_USEC, NSEC_PER_USEC, "us"}};
	uint64_t size = nsec < 0 ? -(uint64_t)nsec : (uint64_t)nsec;
	const char *sign = nsec < 0 ? "-" : "";

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		nsec_t unit = units[i].unit;
		uint64_t tenths = size / unit * 10 + (size % unit * 10 + unit / 2) / unit;

		if (size >= units[i].from) {
			table_value(t, nsec, "%s%llu.%llu%s", sign, (unsigned long long)tenths / 10,
				    (unsigned long long)tenths % 10, units[i].name);
			return;
		}
	}
	table_value(t, nsec, "%s%lluns", sign, (unsigned long long)size);
}

void table_msec_known(struct table *t, uint64_t nsec) {
	if (nsec) {
		table_msec(t, (int64_t)nsec);
	} else {
		table_text(t, NULL);
	}
}

void table_time_known(struct table *t, uint64_t nsec) {
	if (nsec) {
		table_time(t, (int64_t)nsec);
	} else {
		table_text(t, NULL);
	}
}

size_t table_rows(const struct table *t) {
	return t->n_columns ? t->n_cells / t->n_columns : 0;
}

static int find_column(const struct table *t, const char *key, size_t len, size_t *ret, char *error,
		       size_t error_size) {
	char typed[64];
	struct suggest s;

	snprintf(typed, sizeof(typed), "%.*s", (int)len, key);
	s = suggest_start(typed);
	for (size_t i = 0; i < t->n_columns; i++) {
		if (strcmp(t->columns[i].key, typed) == 0) {
			*ret = i;
			return 0;
		}
		suggest_offer(&s, t->columns[i].key);
	}
	if (s.best) {
		snprintf(error, error_size, "no column '%s'. Did you mean '%s'?", typed, s.best);
		return -EINVAL;
	}
	snprintf(error, error_size, "no column '%s'; there are:", typed);
	for (size_t i = 0; i < t->n_columns; i++) {
		size_t used = strlen(error);

		snprintf(error + used, error_size - used, " %s", t->columns[i].key);
	}
	return -EINVAL;
}

int table_select(struct table *t, const char *list, char *error, size_t error_size) {
	size_t *shown, n = 1, at = 0;
	int r = 0;

	for (const char *c = list; *c; c++) {
		n += *c == ',';
	}
	shown = calloc(n, sizeof(*shown));
	if (!shown) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	for (const char *key = list; r == 0 && at < n; at++) {
		size_t len = strcspn(key, ",");

		r = find_column(t, key, len, &shown[at], error, error_size);
		key += len + 1;
	}
	if (r < 0) {
		free(shown);
		return r;
	}
	free(t->shown);
	t->shown = shown;
	t->n_shown = n;
	t->chosen = true;
	return 0;
}

struct order {
	const struct cell *row;
	size_t index;
	size_t column;
	int sign;
};

static int compare(const void *left, const void *right) {
	const struct order *a = left, *b = right;
	const struct cell *x = &a->row[a->column], *y = &b->row[b->column];
	int r;

	if (x->is_number != y->is_number) {
		return x->is_number ? -1 : 1; /* what has no value comes last, either way */
	}
	r = x->is_number ? (x->value > y->value) - (x->value < y->value) : strcmp(x->text, y->text);
	if (r != 0) {
		return r * a->sign;
	}
	return (a->index > b->index) - (a->index < b->index);
}

int table_sort(struct table *t, const char *key, char *error, size_t error_size) {
	size_t n = table_rows(t), column;
	struct order *order;
	struct cell *cells;
	int sign = 1, r;

	if (*key == '-' || *key == '+') {
		sign = *key == '-' ? -1 : 1;
		key++;
	}
	r = find_column(t, key, strlen(key), &column, error, error_size);
	if (r < 0 || n == 0) {
		return r;
	}
	order = calloc(n, sizeof(*order));
	cells = calloc(t->allocated, sizeof(*cells));
	if (!order || !cells) {
		free(order);
		free(cells);
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		order[i] = (struct order){&t->cells[i * t->n_columns], i, column, sign};
	}
	qsort(order, n, sizeof(*order), compare);
	for (size_t i = 0; i < n; i++) {
		memcpy(&cells[i * t->n_columns], order[i].row, t->n_columns * sizeof(*cells));
	}
	free(order);
	free(t->cells);
	t->cells = cells;
	return 0;
}

/* What is printed: columns, by their index in the table, and how wide they are. */
struct layout {
	size_t *columns; /* owned */
	size_t *widths;	 /* owned */
	size_t n;
};

static size_t line_width(const struct layout *l) {
	size_t total = 0;

	for (size_t i = 0; i < l->n; i++) {
		total += l->widths[i] + (i > 0 ? GAP : 0);
	}
	return total;
}

/* How far a line can be cut: the narrowest it can be with all of its columns. */
static size_t line_width_min(const struct table *t, const struct layout *l) {
	size_t total = line_width(l);

	for (size_t i = 0; i < l->n; i++) {
		if (t->columns[l->columns[i]].elastic && l->widths[i] > ELASTIC_MIN) {
			total -= l->widths[i] - ELASTIC_MIN;
		}
	}
	return total;
}

/* Leaves out what can best be done without. Return: whether there was anything. */
static bool drop_one(const struct table *t, struct layout *l) {
	size_t first = SIZE_MAX;

	for (size_t i = 0; i < l->n; i++) {
		unsigned drop = t->columns[l->columns[i]].drop;

		if (drop > 0 && (first == SIZE_MAX || drop > t->columns[l->columns[first]].drop)) {
			first = i;
		}
	}
	if (first == SIZE_MAX) {
		return false;
	}
	l->n--;
	memmove(&l->columns[first], &l->columns[first + 1], (l->n - first) * sizeof(size_t));
	memmove(&l->widths[first], &l->widths[first + 1], (l->n - first) * sizeof(size_t));
	return true;
}

/* Leaves columns out until the others can be made to fit, then makes the widest ones narrower. */
static void fit(const struct table *t, struct layout *l, unsigned width) {
	while (!t->chosen && line_width_min(t, l) > width && drop_one(t, l)) {
	}
	for (size_t total = line_width(l); total > width; total--) {
		size_t widest = SIZE_MAX;

		for (size_t i = 0; i < l->n; i++) {
			if (t->columns[l->columns[i]].elastic && l->widths[i] > ELASTIC_MIN &&
			    (widest == SIZE_MAX || l->widths[i] > l->widths[widest])) {
				widest = i;
			}
		}
		if (widest == SIZE_MAX) {
			return;
		}
		l->widths[widest]--;
	}
}

static void print_cell(const struct table *t, const struct layout *l, size_t i, const char *text,
		       FILE *out) {
	size_t len = terminal_text_width(text), width = l->widths[i];
	size_t pad = len < width ? width - len : 0;

	if (t->columns[l->columns[i]].right) {
		fprintf(out, "%*s", (int)pad, "");
		pad = 0;
	}
	if (len > width) {
		fprintf(out, "%.*s%s", (int)terminal_text_cut(text, width - strlen(ELLIPSIS)), text,
			ELLIPSIS);
	} else {
		fputs(text, out);
	}
	/* No spaces at the end of a line. */
	if (i + 1 < l->n) {
		fprintf(out, "%*s", (int)pad + GAP, "");
	}
}

static void measure(const struct table *t, const struct table_style *style, struct layout *l) {
	for (size_t i = 0; i < l->n; i++) {
		size_t c = l->columns[i];

		l->widths[i] = style->no_legend ? 0 : terminal_text_width(t->columns[c].header);
		for (size_t row = 0; row < table_rows(t); row++) {
			size_t n = terminal_text_width(t->cells[row * t->n_columns + c].text);

			l->widths[i] = n > l->widths[i] ? n : l->widths[i];
		}
	}
	if (style->width > 0) {
		fit(t, l, style->width);
	}
}

static void print_rows(const struct table *t, const struct table_style *style,
		       const struct layout *l, FILE *out) {
	if (!style->no_legend) {
		fputs(style->colour ? "\033[1m" : "", out);
		for (size_t i = 0; i < l->n; i++) {
			print_cell(t, l, i, t->columns[l->columns[i]].header, out);
		}
		fputs(style->colour ? "\033[0m\n" : "\n", out);
	}
	for (size_t row = 0; row < table_rows(t); row++) {
		for (size_t i = 0; i < l->n; i++) {
			print_cell(t, l, i, t->cells[row * t->n_columns + l->columns[i]].text, out);
		}
		fputc('\n', out);
	}
}

static bool is_empty(const struct table *t, size_t column) {
	for (size_t row = 0; row < table_rows(t); row++) {
		if (strcmp(t->cells[row * t->n_columns + column].text, "-") != 0) {
			return false;
		}
	}
	return true;
}

int table_print(const struct table *t, const struct table_style *style, FILE *out) {
	struct layout l = {0};
	int r = -ENOMEM;

	if (t->incomplete) {
		return -ENOMEM;
	}
	l.columns = calloc(t->n_shown, sizeof(*l.columns));
	l.widths = calloc(t->n_shown, sizeof(*l.widths));
	if (l.columns && l.widths) {
		for (size_t i = 0; i < t->n_shown; i++) {
			size_t c = t->shown[i];

			if (t->chosen || !t->columns[c].hides_empty || !is_empty(t, c)) {
				l.columns[l.n++] = c;
			}
		}
		measure(t, style, &l);
		print_rows(t, style, &l, out);
		r = 0;
	}
	free(l.columns);
	free(l.widths);
	return r;
}

void table_keep_row(struct table *t, size_t row) {
	for (size_t i = 0; i < t->n_cells; i++) {
		if (i / t->n_columns != row) {
			free(t->cells[i].text);
		}
	}
	if (row < table_rows(t)) {
		memmove(t->cells, &t->cells[row * t->n_columns], t->n_columns * sizeof(*t->cells));
		t->n_cells = t->n_columns;
	} else {
		t->n_cells = 0;
	}
}

int table_print_fields(const struct table *t, FILE *out) {
	size_t width = 0;

	if (t->incomplete) {
		return -ENOMEM;
	}
	for (size_t c = 0; c < t->n_columns; c++) {
		size_t n = terminal_text_width(t->columns[c].header);

		width = n > width ? n : width;
	}
	for (size_t row = 0; row < table_rows(t); row++) {
		for (size_t c = 0; c < t->n_columns; c++) {
			fprintf(out, "%*s  %s\n", (int)width, t->columns[c].header,
				t->cells[row * t->n_columns + c].text);
		}
	}
	return 0;
}
