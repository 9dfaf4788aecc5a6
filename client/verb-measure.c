/*
 * verb-measure.c: `sbeetctl profile run` and `sbeetctl gpu calibrate`: run a program at several
 * numbers of SMs, and make of what was seen a profile of its task, or the power model of its GPU.
 *
 * How many SMs a job gets is asked for by the program's own environment (SBEET_MAX_SMS) and then
 * looked up in what sbeetd tells of each job: a number that was not granted is never written down.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl.h"
#include "client/measure.h"
#include "client/options.h"
#include "client/preload.h"
#include "client/rows.h"
#include "client/snapshot.h"
#include "client/stop.h"
#include "client/table.h"
#include "client/verb.h"
#include "proto/validate.h"

/* A table of G_e(m) * m that varies by no more counts as linear. */
#define LINEAR_PERMILLE 50

/* Power further from a straight line than this is no sum of equal SMs. */
#define STRAIGHT 0.03

struct measure_options {
	const char *task, *output, *beside, *shim;
	unsigned sms[PROTO_SMS_MAX];
	size_t n_sms;
	unsigned gpu, runs;
	nsec_t limit, power_time;
	double idle_w;
};

/* The state of either verb. */
struct work {
	const struct ctl *ctl;
	struct measure_options o;
	struct measure *measure;
	struct rows rows;
	char *preload;		    /* owned */
	char key[2048], part[4096]; /* what is measured; where it is kept meanwhile, "": nowhere */
	char policy[PROTO_NAME_MAX + 1];
	size_t at; /* which of o.sms */
	nsec_t since;
	double since_done;
	bool shown;
	char error[2048];
};

/* "8,16,...,132": after an ellipsis the last step goes on up to the last number. */
static int parse_sms(const char *text, void *target) {
	struct measure_options *o = target;
	bool go_on = false;
	size_t n = 0;

	while (*text) {
		size_t length = strcspn(text, ",");
		char word[16];
		int64_t sms;

		if (length == 3 && strncmp(text, "...", 3) == 0 && n >= 2 && !go_on) {
			go_on = true;
		} else {
			snprintf(word, sizeof(word), "%.*s", (int)length, text);
			if (length >= sizeof(word) ||
			    units_parse_int(word, 1, PROTO_SMS_MAX, &sms) < 0 ||
			    (n > 0 && sms <= o->sms[n - 1])) {
				return -EINVAL;
			}
			while (go_on && o->sms[n - 1] * 2 - o->sms[n - 2] < sms) {
				o->sms[n] = o->sms[n - 1] * 2 - o->sms[n - 2];
				n++;
			}
			go_on = false;
			o->sms[n++] = (unsigned)sms;
		}
		text += length;
		text += *text == ',';
	}
	o->n_sms = n;
	return n == 0 || go_on ? -EINVAL : 0;
}

static int parse_gpu(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, EVENT_GPUS_MAX - 1, &n);

	*(unsigned *)target = r == 0 ? (unsigned)n : 0;
	return r;
}

static int parse_runs(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 1, 1000000, &n);

	*(unsigned *)target = r == 0 ? (unsigned)n : 0;
	return r;
}

static int parse_watts(const char *text, void *target) {
	char *end;
	double watts = strtod(text, &end);

	if (end == text || *end || !(watts >= 0 && watts <= 100)) {
		return -EINVAL;
	}
	*(double *)target = watts;
	return 0;
}

#define AT(member) offsetof(struct measure_options, member)

#define OPTIONS_OF_BOTH                                                                    \
	{"sms",                                                                            \
	 0,                                                                                \
	 OPTION_REQUIRED,                                                                  \
	 "LIST",                                                                           \
	 "numbers of SMs: 8,16,...,132 (default: eighths)",                                \
	 parse_sms,                                                                        \
	 0,                                                                                \
	 "rising numbers from 1 to 256, such as 8,16,...,132"},                            \
		{"gpu",                                                                    \
		 'g',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "N",                                                                      \
		 "the GPU that the program uses (default: 0)",                             \
		 parse_gpu,                                                                \
		 AT(gpu),                                                                  \
		 "a GPU's number, 0 to 15"},                                               \
		{"runs",                                                                   \
		 'r',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "N",                                                                      \
		 "jobs for each number of SMs (default: 30)",                              \
		 parse_runs,                                                               \
		 AT(runs),                                                                 \
		 "a whole number from 1"},                                                 \
		{"time-limit",                                                             \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "for one run of the program (default: 1min)",                             \
		 option_duration,                                                          \
		 AT(limit),                                                                \
		 "a time, such as 30s"},                                                   \
		{"power-time",                                                             \
		 0,                                                                        \
		 OPTION_REQUIRED,                                                          \
		 "TIME",                                                                   \
		 "how long power is measured, at least (default: 2s)",                     \
		 option_duration,                                                          \
		 AT(power_time),                                                           \
		 "a time, such as 5s"},                                                    \
		{"output",                                                                 \
		 'o',                                                                      \
		 OPTION_REQUIRED,                                                          \
		 "FILE",                                                                   \
		 "write the result here; an interrupted run goes on when called again",    \
		 option_string,                                                            \
		 AT(output),                                                               \
		 NULL},                                                                    \
	{                                                                                  \
		"shim", 0, OPTION_REQUIRED, "PATH", "use this libsbeet.so", option_string, \
			AT(shim), NULL                                                     \
	}

static const struct option profile_options[] = {
	{"task", 't', OPTION_REQUIRED, "NAME", "name of the task, and of its profile",
	 option_string, AT(task), NULL},
	OPTIONS_OF_BOTH,
	{"beside", 0, OPTION_REQUIRED, "TASK", "measure beside this task, which must be running",
	 option_string, AT(beside), NULL},
	{"idle-w-per-sm", 0, OPTION_REQUIRED, "W",
	 "what an unused SM draws, as 'gpu calibrate' says (default: 0)", parse_watts, AT(idle_w),
	 "watts, from 0 to 100"},
	{0},
};

static const struct option calibrate_options[] = {OPTIONS_OF_BOTH, {0}};

/* ---- progress ---- */

static void show_progress(void *userdata, double done) {
	static const char bar[] = "####################";
	struct work *w = userdata;
	double all = ((double)w->at + done) / (double)w->o.n_sms, left = 0;
	int filled = (int)(all * (double)(sizeof(bar) - 1));
	char time[48] = "";

	if (w->ctl->common.quiet || !terminal_width(STDERR_FILENO)) {
		return;
	}
	if (all > w->since_done + 0.02) {
		left = (double)(nsec_now() - w->since) / (all - w->since_done) * (1 - all) / 1e9;
		snprintf(time, sizeof(time), ", about %.0f s left", left);
	}
	w->shown = true;
	fprintf(stderr, "\r%3u SMs [%-*.*s] %3.0f %%%s\033[K", w->o.sms[w->at],
		(int)sizeof(bar) - 1, filled, bar, all * 100, time);
	fflush(stderr);
}

static void end_progress(struct work *w) {
	if (w->shown) {
		fputs("\r\033[K", stderr);
		w->shown = false;
	}
}

/* ---- before ---- */

/* "-o" names what is kept meanwhile too. */
static void make_key(struct work *w) {
	size_t n = (size_t)snprintf(
		w->key, sizeof(w->key), "%s on %s, GPU %u, %u jobs, beside '%s':", w->o.task,
		w->rows.gpu, w->o.gpu, w->o.runs, w->o.beside ? w->o.beside : "");

	for (size_t i = 0; w->ctl->args[i] && n < sizeof(w->key); i++) {
		n += (size_t)snprintf(w->key + n, sizeof(w->key) - n, " %s", w->ctl->args[i]);
	}
	if (w->o.output) {
		snprintf(w->part, sizeof(w->part), "%s.part", w->o.output);
	}
}

/* Eighths of the GPU. */
static void choose_sms(struct work *w) {
	for (unsigned i = 1; w->o.n_sms < i && i <= 8; i++) {
		unsigned sms = w->rows.gpu_sms * i / 8;

		if (sms > 0 && (w->o.n_sms == 0 || sms > w->o.sms[w->o.n_sms - 1])) {
			w->o.sms[w->o.n_sms++] = sms;
		}
	}
}

static bool has_task(const struct snapshot *s, const char *task) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (strcmp(s->sessions[i]->task, task) == 0) {
			return true;
		}
	}
	return false;
}

static int check_daemon(struct work *w, const struct snapshot *s) {
	const struct measure_options *o = &w->o;

	if (o->gpu >= s->n_gpus) {
		ctl_error("there is no GPU %u: sbeetd has %zu", o->gpu, s->n_gpus);
		return CTL_EXIT_NO_OBJECT;
	}
	if (has_task(s, o->task)) {
		ctl_error("a program of task '%s' runs already: end it, or choose another --task",
			  o->task);
		return CTL_EXIT_FAILED;
	}
	if (o->beside && !has_task(s, o->beside)) {
		ctl_error(
			"no program of task '%s' runs: start it with 'sbeetctl run --task %s' "
			"first",
			o->beside, o->beside);
		return CTL_EXIT_NO_OBJECT;
	}
	w->rows.gpu_index = o->gpu;
	w->rows.gpu_sms = s->gpus[o->gpu]->sms;
	snprintf(w->rows.gpu, sizeof(w->rows.gpu), "%s", s->gpus[o->gpu]->name);
	snprintf(w->policy, sizeof(w->policy), "%s", s->service->policy);
	choose_sms(w);
	if (o->n_sms == 0 || o->sms[o->n_sms - 1] > w->rows.gpu_sms) {
		ctl_error("GPU %u has %u SMs: --sms asks for more", o->gpu, w->rows.gpu_sms);
		return CTL_EXIT_USAGE;
	}
	return CTL_EXIT_OK;
}

static int look_at_daemon(struct work *w) {
	struct control *control;
	struct snapshot s;
	int r = control_open(&control, w->error, sizeof(w->error));

	if (r == 0) {
		r = snapshot_init(&s, control, w->error, sizeof(w->error));
		control_close(control);
	}
	if (r != 0) {
		ctl_error("%s", w->error);
		return r;
	}
	r = check_daemon(w, &s);
	snapshot_deinit(&s);
	return r;
}

static int find_shim(struct work *w) {
	char *shim = NULL;
	int r = preload_find(w->o.shim, &shim, w->error, sizeof(w->error));

	if (r < 0) {
		ctl_error("%s", r == -ENOMEM ? strerror(ENOMEM) : w->error);
		return CTL_EXIT_FAILED;
	}
	r = preload_join(getenv("LD_PRELOAD"), shim, &w->preload);
	free(shim);
	if (r < 0) {
		ctl_error("cannot extend LD_PRELOAD: %s", strerror(-r));
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

/* What an interrupted run has left. */
static int go_on(struct work *w) {
	int r = *w->part ? rows_load(&w->rows, w->part, w->key) : -ENOENT;

	if (r == -ENOENT) {
		return CTL_EXIT_OK;
	}
	if (r < 0) {
		ctl_error("'%s' is of another run: %s; remove it, or choose another --output",
			  w->part,
			  r == -EKEYREJECTED ? "other program, task, GPU or --runs"
					     : "it can't be read");
		return CTL_EXIT_FAILED;
	}
	ctl_warn(w->ctl, "going on where '%s' ends: %zu numbers of SMs are there already", w->part,
		 w->rows.n);
	return CTL_EXIT_OK;
}

/* ---- measuring ---- */

/* Whether all jobs were granted what was asked for, or all the same at least. */
static int check_series(struct work *w, const struct measure_series *s, unsigned asked) {
	const struct measure_job *first = &s->jobs[0];

	for (size_t i = 0; i < s->n_jobs; i++) {
		if (s->jobs[i].gpu != w->o.gpu) {
			ctl_error("the program uses GPU %u, not GPU %u: name it with --gpu",
				  s->jobs[i].gpu, w->o.gpu);
			return CTL_EXIT_FAILED;
		}
		if (s->jobs[i].n_sms != first->n_sms) {
			ctl_error(
				"jobs were granted different numbers of SMs, %u and %u, where %u "
				"were asked for: do others use the GPU?",
				first->n_sms, s->jobs[i].n_sms, asked);
			return CTL_EXIT_FAILED;
		}
	}
	if (first->n_sms > asked && first->n_sms == w->rows.gpu_sms) {
		ctl_error(
			"its jobs get the whole GPU, %u SMs, where %u were asked for: its kernels "
			"cannot be confined ('sbeetctl ptx' tells why); measure it with --sms %u",
			first->n_sms, asked, first->n_sms);
		return CTL_EXIT_FAILED;
	}
	if (first->n_sms < asked) {
		ctl_error("its jobs get %u SMs where %u were asked for, under policy '%s'%s",
			  first->n_sms, asked, w->policy,
			  w->o.beside ? ""
				      : ": set one that gives whole GPUs, such as fcfs "
					"('sbeetctl policy fcfs')");
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

static int measure_one(struct work *w, unsigned asked) {
	struct measure_series s = {0};
	struct row row;
	int r = measure_run(w->measure, asked, &s, w->error, sizeof(w->error));

	end_progress(w);
	if (r != 0) {
		ctl_error("%s", w->error);
		if (*w->part && w->rows.n > 0) {
			ctl_warn(w->ctl, "what was measured is in '%s': call again to go on",
				 w->part);
		}
		return r;
	}
	r = check_series(w, &s, asked);
	if (r == CTL_EXIT_OK && !s.alone && !w->o.beside) {
		ctl_warn(w->ctl,
			 "jobs of other tasks ran beside at %u SMs: no power is measured, and "
			 "times may be too long",
			 asked);
	}
	if (r == CTL_EXIT_OK && rows_have(&w->rows, s.jobs[0].n_sms)) {
		ctl_warn(w->ctl, "%u SMs are granted as %u, which is measured already", asked,
			 s.jobs[0].n_sms);
	} else if (r == CTL_EXIT_OK) {
		if (rows_make(&w->rows, &s, asked, &row) < 0 || rows_add(&w->rows, &row) < 0) {
			ctl_error("out of memory");
			r = CTL_EXIT_FAILED;
		}
	}
	measure_series_deinit(&s);
	return r;
}

/* Static power, on the first run only: the rows that are there were made with it. */
static int measure_static(struct work *w) {
	struct measure_series idle;
	int r = measure_idle(w->measure, w->o.power_time, &idle, w->error, sizeof(w->error));

	if (r != 0) {
		ctl_error("%s", w->error);
		return r;
	}
	if (w->rows.n == 0) {
		w->rows.metered = idle.time > 0 && idle.energy_mj[w->o.gpu] > 0;
		w->rows.static_w = w->rows.metered ? (double)idle.energy_mj[w->o.gpu] / 1e3 /
							     ((double)idle.time / 1e9)
						   : 0;
	}
	if (!w->rows.metered || !idle.alone || w->o.beside) {
		ctl_warn(w->ctl, "%s, so power is not measured",
			 w->o.beside   ? "another task runs beside"
			 : !idle.alone ? "others use the GPU"
				       : "the GPU tells no energy");
		w->rows.metered = false;
	}
	return CTL_EXIT_OK;
}

static int measure_all(struct work *w) {
	int r = measure_static(w);

	w->since = nsec_now();
	for (w->at = 0; r == CTL_EXIT_OK && w->at < w->o.n_sms; w->at++) {
		if (rows_have(&w->rows, w->o.sms[w->at])) {
			w->since_done = (double)(w->at + 1) / (double)w->o.n_sms;
			continue;
		}
		r = measure_one(w, w->o.sms[w->at]);
		if (r == CTL_EXIT_OK && *w->part) {
			int e = rows_save(&w->rows, w->part, w->key);

			if (e < 0) {
				ctl_error("cannot write '%s': %s", w->part, strerror(-e));
				r = CTL_EXIT_FAILED;
			}
		}
	}
	end_progress(w);
	return r;
}

/* Runs all, and leaves the rows in @w. */
static int perform(struct work *w) {
	struct measure_plan plan;
	int r;

	w->o.runs = w->o.runs ? w->o.runs : 30;
	w->o.limit = w->o.limit ? w->o.limit : 60 * NSEC_PER_SEC;
	w->o.power_time = w->o.power_time ? w->o.power_time : 2 * NSEC_PER_SEC;
	if (!w->o.task || validate_name(w->o.task) < 0) {
		ctl_error("%s", w->o.task ? "--task: expected 1 to 64 of [A-Za-z0-9._@:+-]"
					  : "--task is missing: the name of the profile");
		return CTL_EXIT_USAGE;
	}
	stop_on_signals();
	r = look_at_daemon(w);
	if (r == CTL_EXIT_OK) {
		make_key(w);
		r = go_on(w);
	}
	if (r == CTL_EXIT_OK) {
		r = find_shim(w);
	}
	if (r != CTL_EXIT_OK) {
		return r;
	}
	plan = (struct measure_plan){
		.task = w->o.task,
		.argv = w->ctl->args,
		.preload = w->preload,
		.n_jobs = w->o.runs,
		.least = w->o.power_time,
		.limit = w->o.limit,
		.progress = show_progress,
		.userdata = w,
	};
	r = measure_new(&w->measure, &plan, w->error, sizeof(w->error));
	if (r != 0) {
		ctl_error("%s", w->error);
		return r;
	}
	return measure_all(w);
}

static void work_deinit(struct work *w) {
	measure_free(w->measure);
	rows_deinit(&w->rows);
	free(w->preload);
}

/* ---- results ---- */

/* Into --output, and what was kept meanwhile goes. Takes over @document. */
static int write_output(struct work *w, json_t *document) {
	int r = document ? 0 : -ENOMEM;
	FILE *out = r == 0 ? fopen(w->o.output, "we") : NULL;

	if (out) {
		r = json_write(document, JSON_PRETTY, out);
		r = fclose(out) == EOF && r == 0 ? -errno : r;
	} else if (r == 0) {
		r = -errno;
		json_decref(document);
	}
	if (r < 0) {
		ctl_error("cannot write '%s': %s", w->o.output, strerror(-r));
		return CTL_EXIT_FAILED;
	}
	unlink(w->part);
	return CTL_EXIT_OK;
}

static int print_rows(const struct work *w) {
	static const struct table_column columns[] = {
		{"sms", "SMS", .right = true},		{"jobs", "JOBS", .right = true},
		{"copy_in", "COPY IN", .right = true},	{"mean", "MEAN", .right = true},
		{"ci95", "\u00b1 95 %", .right = true}, {"min", "MIN", .right = true},
		{"p99", "P99", .right = true},		{"max", "MAX", .right = true},
		{"gpu_w", "GPU W", .right = true},	{"dynamic_w", "DYNAMIC W", .right = true},
		{"energy_j", "J/JOB", .right = true},
	};
	struct table_style style = {.no_legend = w->ctl->common.no_legend,
				    .colour =
					    terminal_colour(w->ctl->common.colour, STDOUT_FILENO)};
	struct table *t;
	int r;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < w->rows.n; i++) {
		const struct row *row = &w->rows.list[i];
		double dynamic = rows_dynamic_w(&w->rows, row, w->o.idle_w);
		double joules = (row->watts - w->rows.static_w) * row->exec.mean / 1e9;

		table_number(t, row->n_sms);
		table_number(t, (int64_t)row->exec.n);
		table_time(t, (int64_t)row->copy_in.mean);
		table_time(t, (int64_t)row->exec.mean);
		table_time(t, (int64_t)row->exec.half);
		table_time(t, (int64_t)row->exec.min);
		table_time(t, (int64_t)row->exec.p99);
		table_time(t, (int64_t)row->exec.max);
		if (row->metered) {
			table_value(t, (int64_t)(row->watts * 1e3), "%.2f", row->watts);
			table_value(t, (int64_t)(dynamic * 1e3), "%.2f", dynamic);
			table_value(t, (int64_t)(joules * 1e6), "%.4f", joules);
		} else {
			table_text(t, NULL);
			table_text(t, NULL);
			table_text(t, NULL);
		}
	}
	r = table_print(t, &style, stdout) < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
	table_free(t);
	return r;
}

struct verdict {
	unsigned m_opt, off_permille;
};

static int judge(const struct work *w, const struct book *b, struct verdict *ret) {
	struct power_gpu power = {w->rows.gpu_sms, (uint32_t)(w->rows.static_w * 1e3),
				  (uint32_t)(w->o.idle_w * 1e3)};
	struct profile_table *t = malloc(sizeof(*t));
	int r = t ? book_lay_out(&b->profiles[0].tables[0], w->rows.gpu_sms, t) : -ENOMEM;
	uint64_t worst = 0;

	if (r == 0) {
		const struct row *last = &w->rows.list[w->rows.n - 1];
		double work = last->exec.mean * last->n_sms;

		/* Of what was measured alone: gaps are filled as if it were linear below. */
		for (size_t i = 0; i < w->rows.n; i++) {
			double off = w->rows.list[i].exec.mean * w->rows.list[i].n_sms / work - 1;
			uint64_t permille = (uint64_t)((off < 0 ? -off : off) * 1000);

			worst = permille > worst ? permille : worst;
		}
		*ret = (struct verdict){profile_m_opt(t, &power, w->rows.gpu_sms, 1),
					(unsigned)worst};
	}
	free(t);
	return r;
}

static int show_profile(struct work *w, const struct book *b) {
	struct verdict v = {0};

	if (judge(w, b, &v) < 0) {
		ctl_error("out of memory");
		return CTL_EXIT_FAILED;
	}
	if (w->ctl->common.json != JSON_OFF) {
		json_t *o = json_pack(
			"{s:s, s:s, s:i, s:o, s:o, s:o, s:b, s:i, s:o}", "task", w->o.task, "gpu",
			w->rows.gpu, "gpu_sms", (int)w->rows.gpu_sms, "static_w",
			w->rows.metered ? json_real(w->rows.static_w) : json_null(), "beside",
			json_text(w->o.beside), "m_opt",
			w->rows.metered ? json_integer(v.m_opt) : json_null(), "linear",
			(int)(v.off_permille <= LINEAR_PERMILLE), "off_permille",
			(int)v.off_permille, "rows", rows_json(&w->rows, w->o.idle_w));

		return json_write(o, w->ctl->common.json, stdout) < 0 ? CTL_EXIT_FAILED
								      : CTL_EXIT_OK;
	}
	if (print_rows(w) != CTL_EXIT_OK) {
		return CTL_EXIT_FAILED;
	}
	printf("%s: G_e(m) * m varies by %.1f %%.",
	       v.off_permille <= LINEAR_PERMILLE ? "Linear speed-up" : "No linear speed-up",
	       v.off_permille / 10.0);
	if (w->rows.metered) {
		printf(" Least energy on %u SMs (m_opt).", v.m_opt);
	}
	putchar('\n');
	return CTL_EXIT_OK;
}

static int profile_run(const struct ctl *ctl) {
	struct work w = {.ctl = ctl, .o = *(const struct measure_options *)ctl->options};
	struct book b = {0};
	int r = perform(&w);

	if (r == CTL_EXIT_OK) {
		int e = rows_profile(&w.rows, w.o.task, w.o.idle_w, &b);

		if (e < 0) {
			ctl_error("no profile can be made: %s", strerror(-e));
			r = CTL_EXIT_FAILED;
		}
	}
	if (r == CTL_EXIT_OK) {
		r = show_profile(&w, &b);
	}
	if (r == CTL_EXIT_OK && w.o.output) {
		r = write_output(&w, book_json(&b));
	}
	book_deinit(&b);
	work_deinit(&w);
	return r;
}

static int show_model(struct work *w, double idle_w, double per_sm_w, double off) {
	w->o.idle_w = idle_w;
	if (w->ctl->common.json != JSON_OFF) {
		json_t *o = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:o}", "gpu", w->rows.gpu,
				      "gpu_sms", (int)w->rows.gpu_sms, "static_w", w->rows.static_w,
				      "idle_w_per_sm", idle_w, "load_w_per_sm", per_sm_w, "off",
				      off, "rows", rows_json(&w->rows, idle_w));

		return json_write(o, w->ctl->common.json, stdout) < 0 ? CTL_EXIT_FAILED
								      : CTL_EXIT_OK;
	}
	if (print_rows(w) != CTL_EXIT_OK) {
		return CTL_EXIT_FAILED;
	}
	printf("%s: P_s %.3f W, P_idle %.4f W/SM; this load: P_d %.4f W/SM, within %.1f %% of a "
	       "straight line.\n",
	       w->rows.gpu, w->rows.static_w, idle_w, per_sm_w, off * 100);
	return CTL_EXIT_OK;
}

static int gpu_calibrate(const struct ctl *ctl) {
	struct work w = {.ctl = ctl, .o = *(const struct measure_options *)ctl->options};
	double idle_w = 0, per_sm_w = 0, off = 0;
	int r;

	w.o.task = "sbeet-calibrate";
	r = perform(&w);
	if (r == CTL_EXIT_OK && rows_fit(&w.rows, &idle_w, &per_sm_w, &off) < 0) {
		ctl_error("power is known of fewer than two numbers of SMs: nothing can be fitted");
		r = CTL_EXIT_FAILED;
	}
	if (r == CTL_EXIT_OK && off > STRAIGHT) {
		ctl_warn(ctl,
			 "power is up to %.1f %% from a straight line over the SMs, so what an "
			 "unused one draws can't be told and is taken as 0: use a program that "
			 "computes more and moves less memory",
			 off * 100);
		idle_w = 0;
	}
	if (r == CTL_EXIT_OK) {
		r = show_model(&w, idle_w, per_sm_w, off);
	}
	if (r == CTL_EXIT_OK && w.o.output) {
		r = write_output(&w,
				 json_pack("{s:[{s:s, s:f, s:f}]}", "gpus", "name", w.rows.gpu,
					   "static_w", w.rows.static_w, "idle_w_per_sm", idle_w));
	}
	work_deinit(&w);
	return r;
}

const struct verb verb_profile_run = {
	.name = "profile run",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "measure a program at several numbers of SMs",
	.flags = VERB_READS | VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = profile_options,
	.options_size = sizeof(struct measure_options),
	.help = "The result of --output goes into sbeetd's --profile-dir. Use a policy that gives\n"
		"whole GPUs, such as fcfs.\n"
		"\n"
		"  sbeetctl profile run --task camera --sms 8,16,...,132 -o camera.json -- "
		"./detect\n",
	.function = profile_run,
};

const struct verb verb_gpu_calibrate = {
	.name = "gpu calibrate",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "measure what a GPU draws, with a program that computes",
	.flags = VERB_READS | VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = calibrate_options,
	.options_size = sizeof(struct measure_options),
	.help = "Static power from the counter while nothing runs, power of an unused SM from the\n"
		"straight line through the power at several numbers of SMs.\n"
		"\n"
		"  sbeetctl gpu calibrate -o gpu.json -- ./matmul --frames 100\n",
	.function = gpu_calibrate,
};
