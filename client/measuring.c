/*
 * measuring.c: see measuring.h.
 */
#include "client/measuring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/program.h"
#include "client/base/stop.h"
#include "client/base/table.h"
#include "client/live/snapshot.h"
#include "client/preload.h"
#include "client/verb.h"
#include "proto/hash.h"
#include "proto/validate.h"

/* Static power is known with the meter's error only if it is measured for so long: counters change
 * every 100 ms. */
#define POWER_TIME (2 * NSEC_PER_SEC)

/* "8,16,...,132": after an ellipsis the last step goes on up to the last number. */
int measuring_parse_sms(const char *text, void *target) {
	struct measuring_options *o = target;
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

int measuring_parse_gpu(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, EVENT_GPUS_MAX - 1, &n);

	*(unsigned *)target = r == 0 ? (unsigned)n : 0;
	return r;
}

int measuring_parse_runs(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 1, 1000000, &n);

	*(unsigned *)target = r == 0 ? (unsigned)n : 0;
	return r;
}

/* ---- progress ---- */

static void show_progress(void *userdata, double done) {
	static const char bar[] = "####################";
	struct measuring *w = userdata;
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

static void end_progress(struct measuring *w) {
	if (w->shown) {
		fputs("\r\033[K", stderr);
		w->shown = false;
	}
}

static void warn(void *userdata, const char *text) {
	struct measuring *w = userdata;

	end_progress(w);
	ctl_warn(w->ctl, "%s", text);
}

/* ---- before ---- */

/* Of all arguments, their ends included. */
static uint64_t hash_of(char *const *args) {
	uint64_t hash = HASH_EMPTY;

	for (; *args; args++) {
		hash = hash_bytes(hash, *args, strlen(*args) + 1);
	}
	return hash;
}

/* "-o" names what is kept meanwhile too. The key is for people to read, so it may be cut and has
 * nothing but ASCII; the hash is of all. */
static void make_key(struct measuring *w) {
	const size_t room = sizeof(w->key) - sizeof(" #0123456789abcdef");
	char warm_up[32];
	size_t n;

	units_print_nsec(w->o.warm_up, warm_up, sizeof(warm_up));
	n = (size_t)snprintf(w->key, sizeof(w->key),
			     "%s on %s, GPU %u, %u jobs, warm-up %s, beside '%s':", w->o.task,
			     w->rows.gpu, w->o.gpu, w->o.runs, warm_up,
			     w->o.beside ? w->o.beside : "");
	for (size_t i = 0; w->ctl->args[i] && n < room; i++) {
		n += (size_t)snprintf(w->key + n, sizeof(w->key) - n, " %s", w->ctl->args[i]);
	}
	n = n < room ? n : room;
	for (size_t i = 0; i < n; i++) {
		if (w->key[i] < ' ' || w->key[i] > '~') {
			w->key[i] = '?';
		}
	}
	snprintf(w->key + n, sizeof(w->key) - n, " #%016llx",
		 (unsigned long long)hash_of(w->ctl->args));
	if (w->o.output) {
		snprintf(w->part, sizeof(w->part), "%s.part", w->o.output);
	}
}

static bool can_be_had(const struct measuring_parts *p, unsigned sms) {
	return sms == p->limit || (sms >= p->least && sms <= p->most && sms % p->step == 0);
}

size_t measuring_eighths(const struct measuring_parts *p, unsigned ret[static PROTO_SMS_MAX]) {
	size_t n = 0;

	for (unsigned i = 1; i <= 8; i++) {
		unsigned sms = p->limit * i / 8;

		sms = i == 8 ? p->limit : sms - sms % p->step;
		if (sms > 0 && can_be_had(p, sms) && (n == 0 || sms > ret[n - 1])) {
			ret[n++] = sms;
		}
	}
	return n;
}

/* Numbers that can't be had are known before anything is measured. */
static int check_sms(const struct measuring *w) {
	const struct measuring_options *o = &w->o;
	const struct measuring_parts *p = &w->parts;

	if (o->sms[o->n_sms - 1] > w->rows.gpu_sms) {
		ctl_error("GPU %u has %u SMs: --sms asks for more", o->gpu, w->rows.gpu_sms);
		return CTL_EXIT_USAGE;
	}
	for (size_t i = 0; i < o->n_sms; i++) {
		if (!can_be_had(p, o->sms[i]) && o->sms[i] < w->rows.gpu_sms) {
			ctl_error(
				"jobs can have %u to %u SMs of GPU %u, in steps of %u, or %u, but "
				"not %u: say --sms %u,%u,...,%u,%u",
				p->least, p->most, o->gpu, p->step, p->limit, o->sms[i], p->least,
				p->least + p->step, p->most, p->limit);
			return CTL_EXIT_USAGE;
		}
	}
	return CTL_EXIT_OK;
}

/* An older sbeetd does not tell. */
static struct measuring_parts parts_of(const Sbeet__Control__Gpu *g) {
	return (struct measuring_parts){.limit = g->sms_limit ? g->sms_limit : g->sms,
					.step = g->sm_step ? g->sm_step : 1,
					.least = g->sms_min ? g->sms_min : 1,
					.most = g->sms_part ? g->sms_part : g->sms};
}

static bool has_task(const struct snapshot *s, const char *task) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (strcmp(s->sessions[i]->task, task) == 0) {
			return true;
		}
	}
	return false;
}

static int check_daemon(struct measuring *w, const struct snapshot *s) {
	const struct measuring_options *o = &w->o;

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
	w->parts = parts_of(s->gpus[o->gpu]);
	if (w->o.n_sms == 0) {
		w->o.n_sms = measuring_eighths(&w->parts, w->o.sms);
	}
	return check_sms(w);
}

static int look_at_daemon(struct measuring *w) {
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

static int find_shim(struct measuring *w) {
	struct program program = {0};
	char *shim = NULL;
	int r = preload_find(w->o.shim, &shim, w->error, sizeof(w->error));

	if (r < 0) {
		ctl_error("%s", r == -ENOMEM ? strerror(ENOMEM) : w->error);
		return CTL_EXIT_FAILED;
	}
	program_init(&program, w->ctl->args[0]); /* that there is none shows when it is started */
	r = preload_join(getenv("LD_PRELOAD"), program.first, shim, &w->preload);
	program_deinit(&program);
	free(shim);
	if (r < 0) {
		ctl_error("cannot extend LD_PRELOAD: %s", strerror(-r));
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

/* What an interrupted run has left. */
static int go_on(struct measuring *w) {
	int r = *w->part ? rows_load(&w->rows, w->part, w->key) : -ENOENT;

	if (r == -ENOENT) {
		return CTL_EXIT_OK;
	}
	if (r < 0) {
		ctl_error("'%s' is of another run: %s; remove it, or choose another --output",
			  w->part,
			  r == -EKEYREJECTED ? "other program, task, GPU, --runs or --warm-up"
					     : "it can't be read");
		return CTL_EXIT_FAILED;
	}
	ctl_warn(w->ctl, "going on where '%s' ends: %zu numbers of SMs are there already", w->part,
		 w->rows.n);
	return CTL_EXIT_OK;
}

/* ---- measuring ---- */

/* Whether all jobs were granted what was asked for, or all the same at least. */
static int check_series(struct measuring *w, const struct measure_series *s, unsigned asked) {
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
			  : strcmp(w->policy, "fcfs") != 0
				  ? ": set one that gives whole GPUs, such as fcfs ('sbeetctl "
				    "policy fcfs')"
				  : ": its task may have no more ('sbeetctl task show')");
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

static int measure_one(struct measuring *w, unsigned asked) {
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
static int measure_static(struct measuring *w) {
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

static int measure_all(struct measuring *w) {
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

int measuring_perform(struct measuring *w) {
	struct measure_plan plan;
	int r;

	w->o.runs = w->o.runs ? w->o.runs : 30;
	w->o.limit = w->o.limit ? w->o.limit : 60 * NSEC_PER_SEC;
	w->o.drain = w->o.drain ? w->o.drain : 10 * NSEC_PER_SEC;
	w->o.power_time = w->o.power_time ? w->o.power_time : POWER_TIME;
	if (!w->o.task || validate_name(w->o.task) < 0) {
		ctl_error("%s", w->o.task ? "--task: expected 1 to 64 of [A-Za-z0-9._@:+-]"
					  : "--task is missing: the name of the profile");
		return CTL_EXIT_USAGE;
	}
	if (w->o.warm_up >= w->o.limit) {
		ctl_error("--warm-up must be shorter than --time-limit, or no job is measured");
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
		.warm_up = w->o.warm_up,
		.n_jobs = w->o.runs,
		.least = w->o.power_time,
		.limit = w->o.limit,
		.drain = w->o.drain,
		.warn = warn,
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

void measuring_deinit(struct measuring *w) {
	measure_free(w->measure);
	rows_deinit(&w->rows);
	free(w->preload);
}

/* ---- results ---- */

int measuring_write(struct measuring *w, json_t *document) {
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

int measuring_doubt(struct measuring *w, unsigned n_sms, bool power, const char *why) {
	char more[sizeof(w->part) + 128] = "";
	bool kept;

	rows_drop(&w->rows, n_sms);
	kept = *w->part && rows_save(&w->rows, w->part, w->key) == 0;
	if (!power) {
		snprintf(more, sizeof(more),
			 ", or %s%s%sall with a longer --warm-up if the program's first jobs are "
			 "slow",
			 kept ? "remove " : "", kept ? w->part : "", kept ? " and measure " : "");
	} else if (w->o.power_time < POWER_TIME) {
		snprintf(more, sizeof(more), ", and with a --power-time of 2s or longer");
	}
	ctl_error("%s; %s with nothing else on the GPU%s%s", why,
		  kept ? "call again" : "measure again,",
		  kept ? " to measure anew what may be wrong" : "", more);
	return CTL_EXIT_FAILED;
}

int measuring_print(const struct measuring *w) {
	static const struct table_column columns[] = {
		{"sms", "SMS", .right = true},
		{"jobs", "JOBS", .right = true},
		{"copy_in", "COPY IN", .right = true},
		{"mean", "MEAN", .right = true},
		{"ci95", "\u00b1 95 %", .right = true},
		{"min", "MIN", .right = true},
		{"p99", "P99", .right = true},
		{"max", "MAX", .right = true},
		{"copy_out", "COPY OUT", .right = true},
		{"gpu_w", "GPU W", .right = true},
		{"dynamic_w", "DYNAMIC W", .right = true},
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
		double joules = rows_job_j(&w->rows, row);

		table_number(t, row->n_sms);
		table_number(t, (int64_t)row->exec.n);
		table_time(t, (int64_t)row->copy_in.mean);
		table_time(t, (int64_t)row->exec.mean);
		table_time(t, (int64_t)row->exec.half);
		table_time(t, (int64_t)row->exec.min);
		table_time(t, (int64_t)row->exec.p99);
		table_time(t, (int64_t)row->exec.max);
		table_time_known(t, (uint64_t)row->copy_out.mean);
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
