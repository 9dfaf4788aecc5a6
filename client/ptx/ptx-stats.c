/*
 * ptx-stats.c: see ptx-stats.h.
 */
#include "client/ptx/ptx-stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/json.h"
#include "shim/ptx/twin.h"

static int by_size(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median(int64_t *values, size_t n) {
	if (n == 0) {
		return 0;
	}
	qsort(values, n, sizeof(*values), by_size);
	return (double)(values[(n - 1) / 2] + values[n / 2]) / 2;
}

static int64_t more_registers(const struct ptx_stats_row *r) {
	return (int64_t)r->twin.registers - r->original.registers;
}

static int64_t more_shared(const struct ptx_stats_row *r) {
	return (int64_t)r->twin.shared_bytes - r->original.shared_bytes;
}

static int find_medians(struct ptx_stats *s) {
	int64_t *values = reallocarray(NULL, s->n + 1, sizeof(*values));

	if (!values) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n; i++) {
		values[i] = more_registers(&s->rows[i]);
	}
	s->median_registers = median(values, s->n);
	for (size_t i = 0; i < s->n; i++) {
		values[i] = more_shared(&s->rows[i]);
	}
	s->median_shared = median(values, s->n);
	free(values);
	return 0;
}

static int add_rows(struct ptx_stats *s, const struct transform *t, const struct ptxas *originals,
		    const struct ptxas *twins) {
	struct ptx_stats_row *rows = reallocarray(s->rows, s->n + t->n_kernels + 1, sizeof(*rows));

	if (!rows) {
		return -ENOMEM;
	}
	s->rows = rows;
	for (size_t i = 0; i < t->n_kernels; i++) {
		const struct ptxas_kernel *original, *twin = NULL;
		char *name = NULL;

		original = ptxas_find(originals, t->kernels[i].name);
		if (asprintf(&name, "%s%s", TWIN_PREFIX, t->kernels[i].name) < 0) {
			return -ENOMEM;
		}
		twin = ptxas_find(twins, name);
		free(name);
		if (original && twin) {
			s->rows[s->n] = (struct ptx_stats_row){
				.name = t->kernels[i].name, .original = *original, .twin = *twin};
			s->rows[s->n].original.name = s->rows[s->n].twin.name = NULL;
			s->n++;
		}
	}
	return 0;
}

static int add_unit(struct ptx_stats *s, const struct kernels *k, const struct kernel_unit *unit,
		    unsigned sm, char *error, size_t error_size) {
	struct ptxas originals = {0}, twins = {0};
	const uint8_t *text;
	char target[16];
	size_t size;
	int r;

	snprintf(target, sizeof(target), "sm_%u%.1s", sm ? sm : unit->entry->sm,
		 !sm && unit->entry->suffix ? (char[]){unit->entry->suffix, 0} : "");
	r = fatbin_unpack(k->fatbin, unit->entry, error, error_size, &text, &size);
	if (r == 0) {
		r = ptxas_init(&originals, (const char *)text, size, target, error, error_size);
	}
	if (r == 0) {
		r = ptxas_init(&twins, unit->transform->ptx, unit->transform->ptx_size, target,
			       error, error_size);
	}
	if (r == 0) {
		r = add_rows(s, unit->transform, &originals, &twins);
	}
	ptxas_deinit(&originals);
	ptxas_deinit(&twins);
	return r;
}

int ptx_stats_init(struct ptx_stats *ret, const struct kernels *k, unsigned sm, char *error,
		   size_t error_size) {
	struct ptx_stats s = {0};
	int r = 0;

	*error = '\0';
	for (size_t i = 0; i < k->n_units && r == 0; i++) {
		if (k->units[i].transform && k->units[i].transform->ptx) {
			r = add_unit(&s, k, &k->units[i], sm, error, error_size);
		}
	}
	if (r == 0) {
		r = find_medians(&s);
	}
	if (r < 0) {
		if (!*error) {
			snprintf(error, error_size, "%s", strerror(-r));
		}
		ptx_stats_deinit(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void ptx_stats_deinit(struct ptx_stats *s) {
	free(s->rows);
	*s = (struct ptx_stats){0};
}

static void add_numbers(struct table *t, const struct ptx_stats_row *r) {
	table_text(t, r->name);
	table_number(t, r->original.registers);
	table_number(t, r->twin.registers);
	table_value(t, more_registers(r), "%+lld", (long long)more_registers(r));
	table_number(t, r->original.shared_bytes);
	table_value(t, more_shared(r), "%+lld", (long long)more_shared(r));
	table_number(t, r->original.spill_bytes);
	table_number(t, r->twin.spill_bytes);
}

int ptx_stats_table(struct table **ret, const struct ptx_stats *s) {
	static const struct table_column columns[] = {
		{"kernel", "KERNEL", .elastic = true},
		{"registers", "REGISTERS", .right = true},
		{"twin_registers", "TWIN", .right = true},
		{"more_registers", "MORE", .right = true},
		{"shared_bytes", "SHARED(B)", .right = true},
		{"more_shared_bytes", "MORE(B)", .right = true},
		{"spill_bytes", "SPILL(B)", .right = true, .hidden = true},
		{"twin_spill_bytes", "TWIN SPILL(B)", .right = true, .hidden = true},
	};
	int r = table_new(ret, columns, sizeof(columns) / sizeof(columns[0]));

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		add_numbers(*ret, &s->rows[i]);
	}
	return r;
}

static json_t *row_json(const struct ptx_stats_row *r) {
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kernel", json_text(r->name), "registers",
		json_u64(r->original.registers), "twin_registers", json_u64(r->twin.registers),
		"shared_bytes", json_u64(r->original.shared_bytes), "twin_shared_bytes",
		json_u64(r->twin.shared_bytes), "spill_bytes", json_u64(r->original.spill_bytes),
		"twin_spill_bytes", json_u64(r->twin.spill_bytes));
}

json_t *ptx_stats_json(const struct ptx_stats *s) {
	json_t *kernels = json_array();

	for (size_t i = 0; i < s->n; i++) {
		json_array_append_new(kernels, row_json(&s->rows[i]));
	}
	return json_pack("{s:o, s:f, s:f}", "kernels", kernels, "median_more_registers",
			 s->median_registers, "median_more_shared_bytes", s->median_shared);
}
