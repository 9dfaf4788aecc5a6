/*
 * verb-ptx.c: `sbeetctl ptx`: which kernels of a program can be confined to a set of SMs, why the
 * others can't, and the rewritten PTX itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/output.h"
#include "client/base/table.h"
#include "client/options.h"
#include "client/ptx/kernels.h"
#include "client/ptx/ptx-stats.h"
#include "client/verb.h"
#include "proto/units.h"

struct ptx_options {
	const char *output;
	unsigned sm;
	int entry_plus_1; /* 0: not given */
	bool stats;
};

static int parse_number(const char *text, int64_t max, int64_t *ret) {
	return units_parse_int(text, 0, max, ret);
}

static int parse_entry(const char *text, void *target) {
	int64_t n;
	int r = parse_number(text, FATBIN_ENTRIES_MAX, &n);

	if (r == 0) {
		*(int *)target = (int)n + 1;
	}
	return r;
}

/* "75", "sm_75". */
static int parse_sm(const char *text, void *target) {
	int64_t n;
	int r = parse_number(strncmp(text, "sm_", 3) == 0 ? text + 3 : text, 999, &n);

	if (r == 0) {
		*(unsigned *)target = (unsigned)n;
	}
	return r;
}

static const struct option ptx_options[] = {
	{"output", 'o', OPTION_REQUIRED, "FILE", "write the rewritten PTX; - for standard output",
	 option_string, offsetof(struct ptx_options, output), NULL},
	{"entry", 0, OPTION_REQUIRED, "N", "look only at entry N of the fat binary", parse_entry,
	 offsetof(struct ptx_options, entry_plus_1), "the number of an entry, from 0"},
	{"sm", 0, OPTION_REQUIRED, "XX", "choose the code as for a GPU of sm_XX (default: newest)",
	 parse_sm, offsetof(struct ptx_options, sm), "a compute capability, such as 75 or sm_90"},
	{"stats", 0, OPTION_FLAG, NULL, "show the extra registers and memory of rewritten kernels",
	 option_flag, offsetof(struct ptx_options, stats), NULL},
	{0},
};

static const char *kind_name(enum fatbin_kind kind) {
	return kind == FATBIN_PTX ? "ptx" : kind == FATBIN_CUBIN ? "cubin" : "other";
}

static const char *target_name(const struct fatbin_entry *e, char text[16]) {
	if (e->sm == 0) {
		return "?";
	}
	snprintf(text, 16, "sm_%u%.1s", e->sm, e->suffix ? (char[]){e->suffix, 0} : "");
	return text;
}

static size_t index_of(const struct kernels *k, const struct fatbin_entry *e) {
	return (size_t)(e - k->fatbin->entries);
}

static json_t *entry_json(const struct kernels *k, const struct fatbin_entry *e) {
	char target[16];

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:b}", "entry", json_u64(index_of(k, e)),
			 "kind", kind_name(e->kind), "target",
			 e->sm ? json_text(target_name(e, target)) : json_null(), "image",
			 json_u64(e->image), "size_bytes", json_u64(e->size), "compressed",
			 e->compressed);
}

static json_t *kernel_json(const struct kernels *k, const struct kernel_row *row) {
	char target[16];

	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "kernel",
			 json_text(row->name), "entry", json_u64(index_of(k, row->entry)), "target",
			 json_text(target_name(row->entry, target)), "confinable", row->confinable,
			 "reason", json_text(row->reason), "line", json_u64_known(row->line),
			 "instruction", json_text(row->instruction), "block_multiple",
			 row->confinable ? json_u64(row->block_multiple) : json_null(), "votes",
			 row->confinable ? json_boolean(row->votes) : json_null(), "waits",
			 row->waits, "dependent", !row->plain, "plain", json_text(row->plain));
}

static json_t *error_json(const struct kernels *k, const struct kernel_unit *unit) {
	return json_pack("{s:o, s:o}", "entry", json_u64(index_of(k, unit->entry)), "error",
			 json_text(unit->error));
}

/* @stats: NULL if not asked for. */
static json_t *ptx_json(const char *file, const struct kernels *k, const struct ptx_stats *stats) {
	json_t *entries = json_array(), *kernels = json_array(), *errors = json_array();
	json_t *o;

	for (size_t i = 0; k->fatbin && i < k->fatbin->n_entries; i++) {
		json_array_append_new(entries, entry_json(k, &k->fatbin->entries[i]));
	}
	for (size_t i = 0; i < k->n_rows; i++) {
		json_array_append_new(kernels, kernel_json(k, &k->rows[i]));
	}
	for (size_t i = 0; i < k->n_units; i++) {
		if (k->units[i].error) {
			json_array_append_new(errors, error_json(k, &k->units[i]));
		}
	}
	o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "file", json_text(file), "n_kernels",
		      json_u64(k->n_rows), "n_confinable", json_u64(k->n_confinable), "kernels",
		      kernels, "errors", errors, "entries", entries);
	if (stats) {
		json_object_set_new(o, "stats", ptx_stats_json(stats));
	}
	return o;
}

static void add_row(struct table *t, const struct kernels *k, const struct kernel_row *row) {
	char target[16], condition[64];

	table_text(t, row->name);
	table_text(t, target_name(row->entry, target));
	table_text(t, row->confinable ? "yes" : "no");
	if (row->line) {
		table_number(t, row->line);
	} else {
		table_text(t, NULL);
	}
	table_text(t, row->instruction || row->confinable ? row->instruction : "(whole kernel)");
	if (row->confinable && row->block_multiple > 1) {
		snprintf(condition, sizeof(condition), "in blocks of a multiple of %u threads",
			 row->block_multiple);
		table_text(t, condition);
	} else {
		table_text(t, row->reason);
	}
	table_text(t, row->plain ? "no" : "yes");
	table_text(t, row->plain);
	table_number(t, (int64_t)index_of(k, row->entry));
}

static int out_of_memory(void) {
	ctl_error("cannot list the kernels: out of memory");
	return CTL_EXIT_FAILED;
}

static int make_table(struct table **ret, const struct kernels *k) {
	static const struct table_column columns[] = {
		{"kernel", "KERNEL", .elastic = true},
		{"target", "TARGET"},
		{"confinable", "CONFINABLE"},
		{"line", "LINE", .right = true},
		{"instruction", "INSTRUCTION", .elastic = true},
		{"reason", "REASON", .elastic = true},
		{"dependent", "DEPENDENT"},
		{"plain", "PLAIN BECAUSE", .elastic = true, .hidden = true},
		{"entry", "ENTRY", .right = true, .hidden = true},
	};
	int r = table_new(ret, columns, sizeof(columns) / sizeof(columns[0]));

	for (size_t i = 0; r == 0 && i < k->n_rows; i++) {
		add_row(*ret, k, &k->rows[i]);
	}
	return r;
}

static int print_table(const struct ctl *ctl, const struct kernels *k,
		       const struct ptx_stats *stats) {
	struct table_style style = listing_style(ctl);
	struct table *t;
	int r;

	if ((stats ? ptx_stats_table(&t, stats) : make_table(&t, k)) < 0) {
		return out_of_memory();
	}
	r = listing_arrange(ctl, t);
	if (r == CTL_EXIT_OK && table_rows(t) > 0) {
		if (table_print(t, &style, stdout) < 0) {
			r = out_of_memory();
		} else if (stats && !ctl->common.no_legend) {
			printf("%zu rewritten, at the median %+g registers and %+g bytes of shared "
			       "memory.\n",
			       stats->n, stats->median_registers, stats->median_shared);
		} else if (!ctl->common.no_legend) {
			printf("%zu kernel%s, %zu confinable.\n", k->n_rows,
			       k->n_rows == 1 ? "" : "s", k->n_confinable);
		}
	}
	table_free(t);
	return r;
}

/* The one unit whose PTX is to be written, or NULL after saying why there is none. */
static const struct kernel_unit *choose(const struct ctl *ctl, const struct kernels *k) {
	const struct kernel_unit *found = NULL;
	char list[256] = "";
	size_t n = 0, used = 0;

	for (size_t i = 0; i < k->n_units; i++) {
		const struct kernel_unit *unit = &k->units[i];

		if (!unit->transform || !unit->transform->ptx) {
			continue;
		}
		found = unit;
		n++;
		if (used < sizeof(list)) {
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%zu",
						 n > 1 ? ", " : "", index_of(k, unit->entry));
		}
	}
	if (n == 0) {
		ctl_error("nothing to write: '%s' has no kernel that can be confined",
			  ctl->args[0]);
		return NULL;
	}
	if (n > 1) {
		ctl_error("'%s' has kernels in several entries; choose one with --entry: %s%s",
			  ctl->args[0], list, used < sizeof(list) ? "" : "...");
		return NULL;
	}
	return found;
}

static int write_output(const struct ctl *ctl, const struct kernels *k, const char *path) {
	const struct kernel_unit *unit = choose(ctl, k);
	FILE *out = unit ? output_open(path) : NULL;

	if (!out) {
		return CTL_EXIT_FAILED;
	}
	fwrite(unit->transform->ptx, 1, unit->transform->ptx_size, out);
	return output_close(out, path);
}

/* What stands on standard output instead of PTX. */
static int show(const struct ctl *ctl, const struct kernels *k) {
	const struct ptx_options *o = ctl->options;
	struct ptx_stats stats = {0}, *asked = o->stats ? &stats : NULL;
	char error[512];
	int r;

	if (asked && ptx_stats_init(asked, k, o->sm, error, sizeof(error)) < 0) {
		ctl_error("cannot tell what the kernels of '%s' need: %s", ctl->args[0], error);
		return CTL_EXIT_FAILED;
	}
	if (ctl->common.json == JSON_OFF) {
		r = print_table(ctl, k, asked);
	} else {
		r = listing_json(ctl, ptx_json(ctl->args[0], k, asked));
	}
	ptx_stats_deinit(&stats);
	return r;
}

/* The first error, and how many others there are; --json has all of them. */
static int report_errors(const struct ctl *ctl, const struct kernels *k) {
	const struct kernel_unit *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < k->n_units; i++) {
		if (k->units[i].error && n++ == 0) {
			first = &k->units[i];
		}
	}
	if (n == 1) {
		ctl_error("cannot read entry %zu of '%s': %s", index_of(k, first->entry),
			  ctl->args[0], first->error);
	} else if (n > 1) {
		ctl_error(
			"cannot read %zu entries of '%s' (--json lists them); the first is entry "
			"%zu: %s",
			n, ctl->args[0], index_of(k, first->entry), first->error);
	}
	return n > 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

static int report(const struct ctl *ctl, const struct kernels *k) {
	const struct ptx_options *o = ctl->options;
	int result = report_errors(ctl, k), r = CTL_EXIT_OK;

	if (!o->output || strcmp(o->output, "-") != 0) {
		r = show(ctl, k);
	}
	if (k->n_rows == 0 && result == CTL_EXIT_OK && !ctl->common.quiet) {
		fprintf(stderr,
			k->fatbin ? "No kernels.\n"
				  : "No GPU code in this file; kernels of a library are in the "
				    "library's own file.\n");
	}
	if (r == CTL_EXIT_OK && o->output) {
		r = write_output(ctl, k, o->output);
	}
	return r != CTL_EXIT_OK ? r : result;
}

static int open_failed(const char *path, int r) {
	switch (-r) {
	case ENODATA:
		ctl_error("cannot read '%s': it is empty", path);
		break;
	case EFBIG:
		ctl_error("cannot read '%s': too large (a file may have %llu MiB, a stream %u MiB)",
			  path, INPUT_FILE_MAX / 1024 / 1024, INPUT_STREAM_MAX / 1024 / 1024);
		break;
	default:
		ctl_error("cannot read '%s': %s", path, strerror(-r));
		break;
	}
	return CTL_EXIT_FAILED;
}

static int ptx(const struct ctl *ctl) {
	const struct ptx_options *o = ctl->options;
	const char *path = ctl->args[0];
	struct kernels kernels;
	struct input in;
	char error[512];
	int r;

	if (o->output && strcmp(o->output, "-") == 0 && ctl->common.json != JSON_OFF) {
		ctl_error("options '--json' and '--output=-' both write to standard output");
		return CTL_EXIT_USAGE;
	}
	r = input_init(&in, path);
	if (r < 0) {
		return open_failed(path, r);
	}
	r = kernels_init(&kernels, &in, o->sm, o->entry_plus_1 - 1, error, sizeof(error));
	if (r == 0) {
		r = report(ctl, &kernels);
		kernels_deinit(&kernels);
	} else if (r == KERNELS_E_NO_ENTRY) {
		ctl_error("'%s' has no entry %d; --json lists them", path, o->entry_plus_1 - 1);
		r = CTL_EXIT_NO_OBJECT;
	} else {
		ctl_error("cannot read '%s': %s", path, error);
		r = CTL_EXIT_FAILED;
	}
	input_deinit(&in);
	return r;
}

const struct verb verb_ptx = {
	.name = "ptx",
	.args = "PROGRAM|FILE.ptx|FILE.cubin|FILE.fatbin",
	.summary = "show which kernels can be confined to SMs, and why others can't",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 1,
	.max_args = 1,
	.options = ptx_options,
	.options_size = sizeof(struct ptx_options),
	.help = "Examines, for each image in the file, the PTX that a GPU would be given. Kernels "
		"that\ncannot be confined run on a whole GPU; nothing else changes for them.\n",
	.function = ptx,
};
