/* report.c: an examination as text, JSON and pictures. See examination.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/base/json.h"
#include "client/base/table.h"
#include "client/examine/examination.h"
#include "client/examine/picture.h"

static const char *const memory_names[] = {"copied", "zero-copy", "unified"};
static const char *const walk_names[] = {"random", "in order"};
static const char *const walk_files[] = {"random", "in-order"};
static const char *const way_names[] = {
	[STUDY_ONE_AT_A_TIME] = "one at a time",
	[STUDY_TOGETHER] = "together",
	[STUDY_PREEMPTED] = "preempted",
};
static const char *const way_texts[] = {
	[STUDY_ONE_AT_A_TIME] =
		"blocks of two processes never run at the same time (as on the TX1)",
	[STUDY_TOGETHER] = "blocks of two processes run side by side, as under MPS",
	[STUDY_PREEMPTED] =
		"processes preempt each other: more blocks run than fit (as on the TX2)",
};

static int print_table(struct table *t, bool no_legend, FILE *out) {
	struct table_style style = {.no_legend = no_legend};
	int r = table_print(t, &style, out);

	table_free(t);
	return r;
}

/* ---- rules ---- */

/* What decided: the first claim that came out as the rule did. */
static void see(const struct examination *x, const char *rule, enum rules_verdict verdict,
		char *text, size_t size) {
	*text = '\0';
	for (size_t i = 0; rules_claims[i].table; i++) {
		const struct rules_claim *c = &rules_claims[i];
		double off_ms = (double)x->claims[i].off / 1e6;

		if (strcmp(c->rule, rule) != 0 || x->claims[i].verdict != verdict) {
			continue;
		}
		if (verdict == RULES_NOT_TESTED) {
			snprintf(text, size, "table %u", c->table);
		} else {
			snprintf(text, size, "table %u: %s %+.3f ms", c->table, c->op, off_ms);
		}
		return;
	}
}

static int print_rules(const struct examination *x, bool no_legend, FILE *out) {
	static const struct table_column columns[] = {
		{"rule", "RULE", .right = false},
		{"verdict", "VERDICT", .right = false},
		{"seen", "SEEN", .right = false},
		{"text", "WHAT IT SAYS", .right = false},
	};
	struct table *t;
	char text[96];

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (const struct rules_text *rule = rules_texts; rule->rule; rule++) {
		enum rules_verdict verdict = examination_verdict(x, rule->rule);

		see(x, rule->rule, verdict, text, sizeof(text));
		table_text(t, rule->rule);
		table_text(t, rules_verdict_name(verdict));
		table_text(t, text);
		table_text(t, rule->text);
	}
	if (print_table(t, no_legend, out) < 0) {
		return -ENOMEM;
	}
	fprintf(out, "Priorities: %d to %d.\n", x->gpu.priority_low, x->gpu.priority_high);
	fprintf(out,
		"Two processes: %s.\nWith kernels that fill the GPU they overlap for %.0f %% of "
		"the "
		"time (%u threads of %u at most), with half ones for %.0f %%.\n",
		way_texts[examination_way(x)], x->full.overlap * 100, x->full.threads,
		x->full.holds, x->half.overlap * 100);
	return 0;
}

/* ---- memory ---- */

static void add_times(struct table *t, const struct study_times *times) {
	if (times->n == 0) {
		for (int i = 0; i < 4; i++) {
			table_text(t, NULL);
		}
		return;
	}
	table_time(t, (int64_t)study_percentile(times, 0));
	table_time(t, (int64_t)study_percentile(times, 100));
	table_time(t, (int64_t)study_mean(times));
	table_time(t, (int64_t)study_deviation(times));
}

static int print_memory(const struct examination *x, bool no_legend, FILE *out) {
	static const struct table_column columns[] = {
		{"walk", "WALK", .right = false},   {"memory", "MEMORY", .right = false},
		{"min_ns", "MIN", .right = true},   {"max_ns", "MAX", .right = true},
		{"mean_ns", "MEAN", .right = true}, {"deviation_ns", "DEVIATION", .right = true},
	};
	static const struct table_column copy_columns[] = {
		{"bytes", "BYTES", .right = true},
		{"in_ns", "IN", .right = true},
		{"out_ns", "OUT", .right = true},
		{"in_mb_per_ms", "IN MB/MS", .right = true},
		{"out_mb_per_ms", "OUT MB/MS", .right = true},
	};
	struct table *t;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (int walk = 0; walk < STUDY_WALKS; walk++) {
		for (int kind = 0; kind < STUDY_MEMORIES; kind++) {
			table_text(t, walk_names[walk]);
			table_text(t, memory_names[kind]);
			add_times(t, &x->memory.block[walk][kind]);
		}
	}
	if (print_table(t, no_legend, out) < 0 ||
	    table_new(&t, copy_columns, sizeof(copy_columns) / sizeof(copy_columns[0])) < 0) {
		return -ENOMEM;
	}
	putc('\n', out);
	for (size_t i = 0; i < x->memory.n_copies; i++) {
		double bytes = (double)x->memory.copies[i].bytes;

		table_number(t, (int64_t)x->memory.copies[i].bytes);
		table_time(t, (int64_t)x->memory.copies[i].in_ns);
		table_time(t, (int64_t)x->memory.copies[i].out_ns);
		table_value(t, 0, "%.3f", bytes / (double)x->memory.copies[i].in_ns);
		table_value(t, 0, "%.3f", bytes / (double)x->memory.copies[i].out_ns);
	}
	return print_table(t, no_legend, out);
}

/* ---- sharing ---- */

static int print_sharing(const struct examination *x, bool no_legend, FILE *out) {
	static const struct table_column columns[] = {
		{"programs", "PROGRAMS", .right = true},
		{"total_ns", "TOTAL", .right = true},
		{"total_max_ns", "MAX", .right = true},
		{"kernel_ns", "KERNEL", .right = true},
		{"block_ns", "BLOCK", .right = true},
		{"block_max_ns", "MAX", .right = true},
		{"sequential", "OF SEQUENTIAL", .right = true},
		{"overlap", "OVERLAP", .right = true},
		{"way", "BLOCKS RUN", .right = false},
	};
	double alone = (double)study_percentile(&x->sharing.with[0].total, 50);
	struct table *t;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (unsigned i = 0; i < STUDY_PROGRAMS; i++) {
		const struct study_shared *s = &x->sharing.with[i];
		double total = (double)study_percentile(&s->total, 50);

		table_number(t, i + 1);
		table_time(t, (int64_t)total);
		table_time(t, (int64_t)study_percentile(&s->total, 100));
		table_time(t, (int64_t)study_percentile(&s->kernel, 50));
		table_time(t, (int64_t)study_percentile(&s->block, 50));
		table_time(t, (int64_t)study_percentile(&s->block, 100));
		table_value(t, 0, "%.0f %%", alone > 0 ? 100 * total / (alone * (i + 1)) : 0);
		table_value(t, 0, "%.0f %%", s->overlap * 100);
		table_text(t, i == 0 ? NULL : way_names[study_way(s)]);
	}
	if (print_table(t, no_legend, out) < 0) {
		return -ENOMEM;
	}
	fprintf(out,
		"Medians. OF SEQUENTIAL: the total time beside that of as many runs one after the "
		"other.\n");
	return 0;
}

/* ---- an experiment from outside ---- */

static int print_config(const struct examination *x, bool no_legend, FILE *out) {
	static const struct table_column columns[] = {
		{"task", "TASK", .right = false},
		{"operation", "OPERATION", .right = false},
		{"iteration", "ITERATION", .right = true},
		{"launched_ms", "LAUNCHED MS", .right = true},
		{"start_ms", "START MS", .right = true},
		{"end_ms", "END MS", .right = true},
		{"blocks", "BLOCKS", .right = true},
	};
	const struct experiment *e = &x->config;
	uint64_t zero = UINT64_MAX;
	struct table *t;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < x->config_run.n_records; i++) {
		uint64_t launched = x->config_run.records[i].launched;

		zero = launched && launched < zero ? launched : zero;
	}
	for (unsigned task = 0; task < e->n_tasks; task++) {
		for (size_t i = 0; i < x->config_run.n_records; i++) {
			const struct experiment_record *r = &x->config_run.records[i];
			unsigned op = (unsigned)(i % e->n_ops);

			if (op < e->tasks[task].first_op ||
			    op >= e->tasks[task].first_op + e->tasks[task].n_ops || r->end == 0) {
				continue;
			}
			table_text(t, e->tasks[task].label);
			table_text(t, e->ops[op].name);
			table_number(t, (int64_t)(i / e->n_ops));
			table_value(t, 0, "%.3f", (double)(r->launched - zero) / 1e6);
			table_value(t, 0, "%.3f", ((double)r->start - (double)zero) / 1e6);
			table_value(t, 0, "%.3f", ((double)r->end - (double)zero) / 1e6);
			table_number(t, r->n_blocks);
		}
	}
	return print_table(t, no_legend, out);
}

int examination_print(const struct examination *x, bool no_legend, FILE *out) {
	const struct experiment_gpu *g = &x->gpu;
	int r = 0;

	fprintf(out,
		"%s: %u SMs, each %u threads and %u KiB of shared memory; compute capability "
		"%d.%d, CUDA %d.%d, %u copy engines%s.\n",
		g->name, g->sms, g->sm_threads, g->sm_shared / 1024, g->cc_major, g->cc_minor,
		g->driver / 1000, g->driver % 1000 / 10, g->copy_engines,
		g->integrated ? ", memory shared with the CPU" : "");
	if (r == 0 && x->studies & EXAMINATION_RULES) {
		fprintf(out, "\nRules of the TX2's scheduler\n\n");
		r = print_rules(x, no_legend, out);
	}
	if (r == 0 && x->studies & EXAMINATION_MEMORY) {
		fprintf(out, "\nMemory: walks of %llu steps through %llu MiB, and copies\n\n",
			(unsigned long long)x->o.steps, (unsigned long long)(x->o.bytes >> 20));
		r = print_memory(x, no_legend, out);
	}
	if (r == 0 && x->studies & EXAMINATION_SHARING) {
		fprintf(out, "\nPrograms that share the GPU\n\n");
		r = print_sharing(x, no_legend, out);
	}
	if (r == 0 && x->studies & EXAMINATION_CONFIG) {
		fprintf(out, "\n%s\n\n", x->config.name);
		r = print_config(x, no_legend, out);
	}
	return r;
}

/* ---- JSON ---- */

static json_t *times_json(const struct study_times *t) {
	if (t->n == 0) {
		return json_null();
	}
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:f, s:f}", "min_ns", json_u64(study_percentile(t, 0)),
		"median_ns", json_u64(study_percentile(t, 50)), "p99_ns",
		json_u64(study_percentile(t, 99)), "max_ns", json_u64(study_percentile(t, 100)),
		"mean_ns", study_mean(t), "deviation_ns", study_deviation(t));
}

static json_t *rules_json(const struct examination *x) {
	json_t *rules = json_array();

	for (const struct rules_text *rule = rules_texts; rule->rule; rule++) {
		json_t *claims = json_array();

		for (size_t i = 0; rules_claims[i].table; i++) {
			const struct rules_claim *c = &rules_claims[i];

			if (strcmp(c->rule, rule->rule) == 0) {
				json_array_append_new(
					claims, json_pack("{s:i, s:s, s:s?, s:s, s:I}", "table",
							  (int)c->table, "operation", c->op,
							  "other", c->other, "verdict",
							  rules_verdict_name(x->claims[i].verdict),
							  "off_ns", (json_int_t)x->claims[i].off));
			}
		}
		json_array_append_new(
			rules,
			json_pack("{s:s, s:s, s:s, s:o}", "rule", rule->rule, "text", rule->text,
				  "verdict", rules_verdict_name(examination_verdict(x, rule->rule)),
				  "claims", claims));
	}
	return rules;
}

static json_t *memory_json(const struct study_memory *m) {
	json_t *walks = json_array(), *copies = json_array();

	for (int walk = 0; walk < STUDY_WALKS; walk++) {
		for (int kind = 0; kind < STUDY_MEMORIES; kind++) {
			json_array_append_new(walks,
					      json_pack("{s:s, s:s, s:o}", "walk", walk_names[walk],
							"memory", memory_names[kind], "block",
							times_json(&m->block[walk][kind])));
		}
	}
	for (size_t i = 0; i < m->n_copies; i++) {
		json_array_append_new(copies, json_pack("{s:o, s:o, s:o}", "bytes",
							json_u64(m->copies[i].bytes), "in_ns",
							json_u64(m->copies[i].in_ns), "out_ns",
							json_u64(m->copies[i].out_ns)));
	}
	return json_pack("{s:o, s:o}", "walks", walks, "copies", copies);
}

static json_t *shared_json(const struct study_shared *s, unsigned programs) {
	return json_pack("{s:i, s:o, s:o, s:o, s:f, s:i, s:i, s:s}", "programs", (int)programs,
			 "total", times_json(&s->total), "kernel", times_json(&s->kernel), "block",
			 times_json(&s->block), "overlap", s->overlap, "threads", (int)s->threads,
			 "holds_threads", (int)s->holds, "way",
			 programs > 1 ? way_names[study_way(s)] : "alone");
}

static json_t *config_json(const struct examination *x) {
	const struct experiment *e = &x->config;
	json_t *records = json_array();

	for (size_t i = 0; i < x->config_run.n_records; i++) {
		const struct experiment_record *r = &x->config_run.records[i];
		const struct experiment_op *op = &e->ops[i % e->n_ops];
		json_t *blocks = json_array();

		for (unsigned b = 0; b < r->n_blocks; b++) {
			json_array_append_new(
				blocks, json_pack("{s:i, s:o, s:o}", "sm", (int)r->blocks[b].sm,
						  "start_ns", json_u64(r->blocks[b].start),
						  "end_ns", json_u64(r->blocks[b].end)));
		}
		if (r->end == 0) {
			json_decref(blocks);
			continue;
		}
		json_array_append_new(
			records, json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o}", "operation",
					   op->name, "iteration", (int)(i / e->n_ops), "threads",
					   (int)op->threads, "launched_ns", json_u64(r->launched),
					   "start_ns", json_u64(r->start), "end_ns",
					   json_u64(r->end), "blocks", blocks));
	}
	return json_pack("{s:s, s:o}", "name", e->name, "operations", records);
}

json_t *examination_json(const struct examination *x) {
	const struct experiment_gpu *g = &x->gpu;
	json_t *o =
		json_pack("{s:{s:o, s:i, s:i, s:i, s:o, s:i, s:i, s:b, s:i, s:i}}", "gpu", "name",
			  json_text(g->name), "sms", (int)g->sms, "sm_threads", (int)g->sm_threads,
			  "sm_shared_bytes", (int)g->sm_shared, "compute_capability",
			  json_sprintf("%d.%d", g->cc_major, g->cc_minor), "cuda", g->driver,
			  "copy_engines", (int)g->copy_engines, "integrated", g->integrated,
			  "priority_low", g->priority_low, "priority_high", g->priority_high);

	if (!o) {
		return NULL;
	}
	if (x->studies & EXAMINATION_RULES) {
		json_object_set_new(o, "rules", rules_json(x));
		json_object_set_new(o, "processes",
				    json_pack("{s:s, s:f, s:i, s:i, s:f}", "way",
					      way_names[examination_way(x)], "overlap_full",
					      x->full.overlap, "threads_full", (int)x->full.threads,
					      "holds_threads", (int)x->full.holds, "overlap_half",
					      x->half.overlap));
	}
	if (x->studies & EXAMINATION_MEMORY) {
		json_object_set_new(o, "memory", memory_json(&x->memory));
	}
	if (x->studies & EXAMINATION_SHARING) {
		json_t *list = json_array();

		for (unsigned i = 0; i < STUDY_PROGRAMS; i++) {
			json_array_append_new(list, shared_json(&x->sharing.with[i], i + 1));
		}
		json_object_set_new(o, "sharing", list);
	}
	if (x->studies & EXAMINATION_CONFIG) {
		json_object_set_new(o, "experiment", config_json(x));
	}
	return o;
}

/* ---- files ---- */

struct folder {
	const char *path;
	char *error;
	size_t error_size;
	FILE *report; /* owned */
};

static FILE *open_in(struct folder *f, const char *name) {
	char path[4096];
	FILE *out = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", f->path, name) < (int)sizeof(path)) {
		out = fopen(path, "we");
	} else {
		errno = ENAMETOOLONG;
	}
	if (!out) {
		snprintf(f->error, f->error_size, "cannot write '%s/%s': %s", f->path, name,
			 strerror(errno));
	}
	return out;
}

static int close_in(struct folder *f, FILE *out, const char *name) {
	bool failed = ferror(out) != 0;

	if (fclose(out) == EOF || failed) {
		snprintf(f->error, f->error_size, "cannot write '%s/%s'", f->path, name);
		return -EIO;
	}
	return 0;
}

static int save_timeline(struct folder *f, const char *name, const struct experiment *e,
			 const struct experiment_run *run, const struct experiment_gpu *gpu) {
	FILE *out = open_in(f, name);

	if (!out) {
		return -EIO;
	}
	picture_timeline(e, run, gpu, out);
	fprintf(f->report, "\n![%s](%s)\n", e->name, name);
	return close_in(f, out, name);
}

static int save_distribution(struct folder *f, const char *name, const char *title,
			     const struct picture_curve *curves, size_t n) {
	FILE *out = open_in(f, name);

	if (!out) {
		return -EIO;
	}
	picture_distribution(title, curves, n, out);
	fprintf(f->report, "\n![%s](%s)\n", title, name);
	return close_in(f, out, name);
}

static int save_memory(struct folder *f, const struct study_memory *m) {
	int r = 0;

	for (int walk = 0; r == 0 && walk < STUDY_WALKS; walk++) {
		struct picture_curve curves[STUDY_MEMORIES];
		char name[64], title[64];

		for (int kind = 0; kind < STUDY_MEMORIES; kind++) {
			curves[kind] = (struct picture_curve){memory_names[kind],
							      &m->block[walk][kind], 1};
		}
		snprintf(name, sizeof(name), "walk-%s.svg", walk_files[walk]);
		snprintf(title, sizeof(title), "Times of blocks, %s walk", walk_names[walk]);
		r = save_distribution(f, name, title, curves, STUDY_MEMORIES);
	}
	return r;
}

static int save_sharing(struct folder *f, const struct study_sharing *s) {
	static const char *const names[] = {"sharing-total.svg", "sharing-kernel.svg",
					    "sharing-block.svg"};
	static const char *const titles[] = {"Total times", "Kernel times", "Block times"};
	static const char *const with[] = {"alone", "vs. 1", "vs. 2", "vs. 3", "4 * alone"};
	int r = 0;

	for (int what = 0; r == 0 && what < 3; what++) {
		struct picture_curve curves[STUDY_PROGRAMS + 1];

		for (unsigned i = 0; i <= STUDY_PROGRAMS; i++) {
			const struct study_shared *of = &s->with[i % STUDY_PROGRAMS];

			curves[i] =
				(struct picture_curve){with[i],
						       what == 0   ? &of->total
						       : what == 1 ? &of->kernel
								   : &of->block,
						       i == STUDY_PROGRAMS ? STUDY_PROGRAMS : 1};
		}
		r = save_distribution(f, names[what], titles[what], curves,
				      what == 2 ? STUDY_PROGRAMS : STUDY_PROGRAMS + 1);
	}
	return r;
}

static int save_all(const struct examination *x, struct folder *f) {
	int r = 0;

	for (unsigned i = 0; r == 0 && i < EXPERIMENT_TABLES; i++) {
		if (x->units[i]) {
			char name[32];

			snprintf(name, sizeof(name), "rules-%u.svg", i + 1);
			r = save_timeline(f, name, &x->tables[i], &x->runs[i], &x->gpu);
		}
	}
	if (r == 0 && x->studies & EXAMINATION_MEMORY) {
		r = save_memory(f, &x->memory);
	}
	if (r == 0 && x->studies & EXAMINATION_SHARING) {
		r = save_sharing(f, &x->sharing);
	}
	if (r == 0 && x->studies & EXAMINATION_CONFIG) {
		r = save_timeline(f, "experiment.svg", &x->config, &x->config_run, &x->gpu);
	}
	return r;
}

int examination_save(const struct examination *x, const char *folder, char *error,
		     size_t error_size) {
	struct folder f = {.path = folder, .error = error, .error_size = error_size};
	int r;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
		snprintf(error, error_size, "cannot make '%s': %s", folder, strerror(errno));
		return -EIO;
	}
	f.report = open_in(&f, "report.md");
	if (!f.report) {
		return -EIO;
	}
	fprintf(f.report, "# How this GPU schedules\n\n```\n");
	r = examination_print(x, false, f.report);
	if (r < 0) {
		snprintf(error, error_size, "out of memory");
	}
	fprintf(f.report, "```\n");
	r = r < 0 ? r : save_all(x, &f);
	return close_in(&f, f.report, "report.md") < 0 ? -EIO : r;
}
