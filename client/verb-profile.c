/*
 * verb-profile.c: `sbeetctl profile`: files of execution times and power by SM count.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/output.h"
#include "client/base/table.h"
#include "client/options.h"
#include "client/sim/book-csv.h"
#include "client/sim/scenario-file.h"
#include "client/verb.h"
#include "daemon/book/suggest.h"

struct profile_options {
	const char *output;
};

static const struct option output_options[] = {
	{"output", 'o', OPTION_REQUIRED, "FILE", "write to FILE instead of standard output",
	 option_string, offsetof(struct profile_options, output), NULL},
	{0},
};

static int fail_read(const char *path, int e) {
	ctl_error("cannot read '%s': %s", path, e == -ENODATA ? "it is empty" : strerror(-e));
	return CTL_EXIT_FAILED;
}

/* "profiles" of a file of profiles, or of a scenario's own. */
static int read_book(const char *path, struct book *b) {
	char error[1024] = "", *text = NULL;
	struct reader r = {.file = path, .error = error, .error_size = sizeof(error)};
	struct reader_node root = {0}, node;
	size_t size = 0;
	int e;

	e = scenario_file_read(path, &text, &size);
	if (e < 0) {
		return fail_read(path, e);
	}
	r.text = text;
	r.size = size;
	e = reader_parse(&r, text, size, &root.value);
	if (e == 0 && !json_is_object(root.value)) {
		e = reader_fail(&r, &root, "expected an object with 'profiles'");
	}
	if (e == 0) {
		e = reader_need(&r, &root, "profiles", &node);
	}
	if (e == 0) {
		e = book_read(b, &r, &node);
	}
	json_decref(root.value);
	free(text);
	if (e < 0) {
		ctl_error("%s", e == -ENOMEM ? "out of memory" : error);
		book_deinit(b);
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

static void list_rows(struct table *t, const struct book *b) {
	for (size_t i = 0; i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			const struct book_table *table = &b->profiles[i].tables[k];

			table_text(t, b->profiles[i].name);
			table_text(t, table->type);
			if (table->linear_work) {
				table_text(t, "linear");
			} else {
				table_number(t, (int64_t)table->n_points);
			}
			table_msec(t, (int64_t)table->copy_in);
			table_msec(t, (int64_t)table->copy_out);
		}
	}
}

static int profile_list(const struct ctl *ctl) {
	static const struct table_column columns[] = {
		{"profile", "PROFILE", .elastic = true},
		{"type", "GPU TYPE"},
		{"points", "POINTS", .right = true},
		{"copy_in", "COPY IN ms", .right = true},
		{"copy_out", "COPY OUT ms", .right = true},
	};
	struct book b = {0};
	struct table *t;
	int r;

	r = read_book(ctl->args[0], &b);
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, book_json(&b));
	} else if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the profiles: out of memory");
		r = CTL_EXIT_FAILED;
	} else {
		list_rows(t, &b);
		r = listing_show(ctl, t, "the profiles");
	}
	book_deinit(&b);
	return r;
}

static void show_rows(struct table *t, const struct book_profile *p) {
	for (size_t k = 0; k < p->n_tables; k++) {
		const struct book_table *table = &p->tables[k];

		for (size_t i = 0; i < table->n_points; i++) {
			const struct book_point *point = &table->points[i];

			table_text(t, table->type);
			table_number(t, point->n_sms);
			table_time(t, (int64_t)point->best);
			table_time(t, (int64_t)point->worst);
			table_value(t, point->power_mw, "%.3f", point->power_mw / 1e3);
			table_value(t, (int64_t)(point->worst / 1000 * point->power_mw), "%.4f",
				    (double)point->worst / 1e9 * point->power_mw / 1e3);
		}
		if (table->linear_work) {
			table_text(t, table->type);
			table_text(t, "1/m");
			table_text(t, NULL);
			table_time(t, (int64_t)table->linear_work);
			table_value(t, table->power_mw_per_sm, "%.3f",
				    table->power_mw_per_sm / 1e3);
			table_text(t, NULL);
		}
	}
}

static int show_profile(const struct ctl *ctl, const struct book *b) {
	static const struct table_column columns[] = {
		{"type", "GPU TYPE"},
		{"sms", "SMS", .right = true},
		{"best", "BEST", .right = true},
		{"worst", "WORST", .right = true},
		{"watts", "DYNAMIC W", .right = true},
		{"energy", "DYNAMIC J", .right = true},
	};
	const struct book_profile *p = book_find(b, ctl->args[1]);
	struct suggest s = suggest_start(ctl->args[1]);
	struct book one = {(struct book_profile *)p, 1};
	struct table *t;
	int r;

	if (!p) {
		for (size_t i = 0; i < b->n_profiles; i++) {
			suggest_offer(&s, b->profiles[i].name);
		}
		ctl_error("no profile '%s' in '%s'%s%s%s", ctl->args[1], ctl->args[0],
			  s.best ? ". Did you mean '" : "", s.best ? s.best : "",
			  s.best ? "'?" : "");
		return CTL_EXIT_NO_OBJECT;
	}
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, book_json(&one));
	}
	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the profiles: out of memory");
		return CTL_EXIT_FAILED;
	}
	show_rows(t, p);
	r = listing_show(ctl, t, "the profiles");
	return r;
}

static int profile_show(const struct ctl *ctl) {
	struct book b = {0};
	int r = read_book(ctl->args[0], &b);

	if (r == CTL_EXIT_OK) {
		r = show_profile(ctl, &b);
		book_deinit(&b);
	}
	return r;
}

/* Standard output, or the file of --output. */
static FILE *open_output(const struct ctl *ctl) {
	const struct profile_options *o = ctl->options;

	return output_open(o->output);
}

static int close_output(const struct ctl *ctl, FILE *out) {
	const struct profile_options *o = ctl->options;

	return output_close(out, o->output);
}

static int profile_import(const struct ctl *ctl) {
	struct book_csv files[2] = {{ctl->args[0], NULL}, {ctl->args[1], NULL}};
	char *text[2] = {NULL, NULL}, error[1024] = "";
	struct book b = {0};
	FILE *out = NULL;
	int r = CTL_EXIT_OK;

	for (size_t i = 0; i < 2 && r == CTL_EXIT_OK; i++) {
		size_t size = 0;
		int e = scenario_file_read(ctl->args[i], &text[i], &size);

		if (e == 0 && strlen(text[i]) != size) {
			e = -EILSEQ; /* a zero byte: no text */
		}
		r = e < 0 ? fail_read(ctl->args[i], e) : CTL_EXIT_OK;
		files[i].text = text[i];
	}
	if (r == CTL_EXIT_OK) {
		int e = book_csv_read(&b, &files[0], &files[1], error, sizeof(error));

		if (e < 0) {
			ctl_error("%s", e == -ENOMEM ? "out of memory" : error);
			r = CTL_EXIT_FAILED;
		}
	}
	if (r == CTL_EXIT_OK && (out = open_output(ctl))) {
		r = json_write(book_json(&b), JSON_PRETTY, out) < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
		r = close_output(ctl, out) == CTL_EXIT_OK ? r : CTL_EXIT_FAILED;
	} else if (r == CTL_EXIT_OK) {
		r = CTL_EXIT_FAILED;
	}
	book_deinit(&b);
	free(text[0]);
	free(text[1]);
	return r;
}

static int export(const struct ctl *ctl, const struct book *b) {
	bool apps = strcmp(ctl->args[1], "apps") == 0;
	FILE *out;

	if (!apps && strcmp(ctl->args[1], "wcet") != 0) {
		ctl_error("cannot export '%s': expected wcet or apps", ctl->args[1]);
		return CTL_EXIT_USAGE;
	}
	for (size_t i = 0; i < b->n_profiles; i++) {
		for (size_t k = 0; k < b->profiles[i].n_tables; k++) {
			if (b->profiles[i].tables[k].linear_work) {
				ctl_warn(ctl, "'%s' on '%s' is linear and has no points, skipping",
					 b->profiles[i].name, b->profiles[i].tables[k].type);
			}
		}
	}
	out = open_output(ctl);
	if (!out) {
		return CTL_EXIT_FAILED;
	}
	if (apps) {
		book_csv_write_apps(b, out);
	} else {
		book_csv_write_wcet(b, out);
	}
	return close_output(ctl, out);
}

static int profile_export(const struct ctl *ctl) {
	struct book b = {0};
	int r = read_book(ctl->args[0], &b);

	if (r == CTL_EXIT_OK) {
		r = export(ctl, &b);
		book_deinit(&b);
	}
	return r;
}

const struct verb verb_profile_list = {
	.name = "profile list",
	.args = "FILE.json",
	.summary = "list the profiles in a file",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 1,
	.max_args = 1,
	.function = profile_list,
};

const struct verb verb_profile_show = {
	.name = "profile show",
	.args = "FILE.json PROFILE",
	.summary = "show the times and the power of a profile",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 2,
	.max_args = 2,
	.function = profile_show,
};

const struct verb verb_profile_import = {
	.name = "profile import",
	.args = "WCET.csv APPS.csv",
	.summary = "create a file of profiles from CSV",
	.min_args = 2,
	.max_args = 2,
	.options = output_options,
	.options_size = sizeof(struct profile_options),
	.function = profile_import,
};

const struct verb verb_profile_export = {
	.name = "profile export",
	.args = "FILE.json wcet|apps",
	.summary = "write profiles as one of the two CSV files",
	.min_args = 2,
	.max_args = 2,
	.options = output_options,
	.options_size = sizeof(struct profile_options),
	.function = profile_export,
};
