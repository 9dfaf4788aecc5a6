/*
 * summary.c: see summary.h.
 */
#include "tests/gpu/summary.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/apps/common.h"

#define ROWS_MAX    100000
#define COLUMNS_MAX 32
#define RANKS_MAX   32

struct row {
	char family[16], column[32], work[32];
	double u;
	unsigned long long set, deadline;
	unsigned task, released, missed;
	unsigned rank; /* of its deadline within its set, from 1 */
	bool complete; /* its set ran under all columns of its family */
};

static struct row *rows;
static size_t n_rows;

static bool same_cell(const struct row *a, const struct row *b) {
	return strcmp(a->family, b->family) == 0 && strcmp(a->column, b->column) == 0 &&
	       a->set == b->set && fabs(a->u - b->u) < 1e-9;
}

/* The same task of the same set, under @column. */
static const struct row *under(const struct row *a, const char *column) {
	for (size_t i = 0; i < n_rows; i++) {
		const struct row *b = &rows[i];

		if (strcmp(b->column, column) == 0 && b->task == a->task && b->set == a->set &&
		    strcmp(a->family, b->family) == 0 && fabs(a->u - b->u) < 1e-9) {
			return b;
		}
	}
	return NULL;
}

static void read_rows(FILE *f) {
	char line[512];

	while (fgets(line, sizeof(line), f) && n_rows < ROWS_MAX) {
		struct row r = {.complete = true};

		if (sscanf(line, "%15[^,],%31[^,],%lf,%llu,%u,%31[^,],%*u,%llu,%u,%*u,%u", r.family,
			   r.column, &r.u, &r.set, &r.task, r.work, &r.deadline, &r.released,
			   &r.missed) == 9) {
			rows[n_rows++] = r;
		}
	}
}

/* The different columns of a family, in the order of the file. */
static unsigned columns_of(const char *family, const char *ret[COLUMNS_MAX]) {
	unsigned n = 0, k;

	for (size_t i = 0; i < n_rows; i++) {
		if (strcmp(rows[i].family, family) != 0) {
			continue;
		}
		for (k = 0; k < n && strcmp(ret[k], rows[i].column) != 0; k++) {
		}
		if (k == n && n < COLUMNS_MAX) {
			ret[n++] = rows[i].column;
		}
	}
	return n;
}

static void see_sets(void) {
	const char *columns[COLUMNS_MAX];

	for (size_t i = 0; i < n_rows; i++) {
		unsigned n = columns_of(rows[i].family, columns);

		rows[i].rank = 1;
		for (size_t k = 0; k < n_rows; k++) {
			rows[i].rank += same_cell(&rows[i], &rows[k]) &&
					(rows[k].deadline < rows[i].deadline ||
					 (rows[k].deadline == rows[i].deadline && k < i));
		}
		for (unsigned c = 0; c < n; c++) {
			rows[i].complete = rows[i].complete && under(&rows[i], columns[c]);
		}
	}
}

struct sum {
	unsigned long long released, missed;
	unsigned sets;
};

static struct sum sum_of(const char *family, const char *column, double u) {
	struct sum s = {0};

	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];

		if (r->complete && strcmp(r->family, family) == 0 &&
		    strcmp(r->column, column) == 0 && (u < 0 || fabs(r->u - u) < 1e-9)) {
			s.released += r->released;
			s.missed += r->missed;
			s.sets += r->task == 1;
		}
	}
	return s;
}

static bool is_mps(const char *column) {
	return strncmp(column, "mps", 3) == 0;
}

/* A line of the table; @u < 0: all. @best: sum of the best MPS settings of each U so far. */
static void print_line(const char *family, const char *const *columns, unsigned n, double u,
		       unsigned long long *best_sum) {
	const char *best = NULL;
	unsigned long long least = 0;
	struct sum s = {0};

	for (unsigned c = 0; c < n; c++) {
		s = sum_of(family, columns[c], u);
		if (is_mps(columns[c]) && (!best || s.missed < least)) {
			best = columns[c];
			least = s.missed;
		}
	}
	if (u < 0) {
		printf("| %s, all | %u | %llu |", family, s.sets, s.released);
	} else {
		printf("| %s, U %.1f | %u | %llu |", family, u, s.sets, s.released);
	}
	for (unsigned c = 0; c < n; c++) {
		printf(" %llu |", sum_of(family, columns[c], u).missed);
	}
	if (u < 0) {
		printf(" %llu, the best of each U |\n", *best_sum);
	} else {
		printf(" %s %llu |\n", best ? best : "-", least);
		*best_sum += least;
	}
}

static double next_u(const char *family, double after) {
	double u = -1;

	for (size_t i = 0; i < n_rows; i++) {
		if (strcmp(rows[i].family, family) == 0 && rows[i].u > after + 1e-9 &&
		    (u < 0 || rows[i].u < u)) {
			u = rows[i].u;
		}
	}
	return u;
}

static void print_table(const char *family) {
	const char *columns[COLUMNS_MAX];
	unsigned n = columns_of(family, columns);
	unsigned long long best_sum = 0;

	printf("| misses | sets | jobs |");
	for (unsigned c = 0; c < n; c++) {
		printf(" %s |", columns[c]);
	}
	printf(" best MPS |\n|---|---|---|");
	for (unsigned c = 0; c < n; c++) {
		printf("---|");
	}
	printf("---|\n");
	for (double u = next_u(family, -1); u >= 0; u = next_u(family, u)) {
		print_line(family, columns, n, u, &best_sum);
	}
	print_line(family, columns, n, -1, &best_sum);
	printf("\n");
}

/* Student's t, one-sided 95 %. */
static double t_95(unsigned df) {
	static const double t[] = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860,
				   1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746,
				   1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711};

	return df <= sizeof(t) / sizeof(t[0]) ? t[df - 1] : 1.645 + 1.58 / df;
}

/* Differences of miss ratios, in percentage points, of one task in pairs of runs. */
struct pairs {
	double sum, squares;
	unsigned n;
};

static void print_pairs(const char *label, const struct pairs *p) {
	double mean, margin;

	if (p->n == 0) {
		return;
	}
	mean = p->sum / p->n;
	if (p->n == 1) {
		printf("%s: %+.2f in one pair\n", label, mean);
		return;
	}
	margin =
		t_95(p->n - 1) * sqrt(fmax(0, p->squares - p->n * mean * mean) / (p->n - 1) / p->n);
	printf("%s: %+.2f, at least %+.2f, %u pairs%s\n", label, mean, mean - margin, p->n,
	       mean - margin > 0 ? "  MORE THAN MPS" : "");
}

/* @work: NULL: all. @rank: 0: all. @u: < 0: all. */
static void compare(const char *family, const char *column, double u, unsigned rank,
		    const char *work, const char *label) {
	struct pairs p = {0};

	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i], *mps;
		double d;

		if (!r->complete || strcmp(r->family, family) != 0 ||
		    strcmp(r->column, column) != 0 || (rank && r->rank != rank) ||
		    (work && strcmp(r->work, work) != 0) || (u >= 0 && fabs(r->u - u) > 1e-9) ||
		    r->released == 0) {
			continue;
		}
		mps = under(r, "mps");
		if (!mps || mps->released == 0) {
			continue;
		}
		d = 100.0 * r->missed / r->released - 100.0 * mps->missed / mps->released;
		p.sum += d;
		p.squares += d * d;
		p.n++;
	}
	print_pairs(label, &p);
}

static void compare_works(const char *family, const char *column) {
	for (size_t i = 0; i < n_rows; i++) {
		char label[96];
		size_t k = 0;

		while (k < i && (strcmp(rows[k].family, family) != 0 ||
				 strcmp(rows[k].work, rows[i].work) != 0)) {
			k++;
		}
		if (k == i && strcmp(rows[i].family, family) == 0) {
			snprintf(label, sizeof(label), "  %s", rows[i].work);
			compare(family, column, -1, 0, rows[i].work, label);
		}
	}
}

static void print_comparison(const char *family, const char *column) {
	char label[96];

	printf("%s, %s against mps: misses in percent of a task's jobs, one-sided 95 %%\n", family,
	       column);
	for (double u = next_u(family, -1); u >= 0; u = next_u(family, u)) {
		for (unsigned rank = 1; rank <= RANKS_MAX; rank++) {
			snprintf(label, sizeof(label), "  U %.1f, deadline %u of its set", u, rank);
			compare(family, column, u, rank, NULL, label);
		}
	}
	for (unsigned rank = 1; rank <= RANKS_MAX; rank++) {
		snprintf(label, sizeof(label), "  all U, deadline %u of its set", rank);
		compare(family, column, -1, rank, NULL, label);
	}
	compare_works(family, column);
	compare(family, column, -1, 0, NULL, "  all tasks");
	printf("\n");
}

int summary_print(const char *path, char *const *columns) {
	static char steer[] = "steer";
	static char *const by_default[] = {steer, NULL};
	FILE *f = fopen(path, "re");

	rows = app_alloc(ROWS_MAX, sizeof(*rows));
	if (f) {
		read_rows(f);
		fclose(f);
	}
	if (n_rows == 0) {
		fprintf(stderr, "evaluate: no tasks in '%s'\n", path);
		free(rows);
		return 1;
	}
	see_sets();
	for (size_t i = 0; i < n_rows; i++) {
		size_t k = 0;

		while (k < i && strcmp(rows[k].family, rows[i].family) != 0) {
			k++;
		}
		if (k < i) {
			continue;
		}
		print_table(rows[i].family);
		for (char *const *c = columns && columns[0] ? columns : by_default; *c; c++) {
			print_comparison(rows[i].family, *c);
		}
	}
	free(rows);
	return 0;
}
