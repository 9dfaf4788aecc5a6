/* response-sweep.c: `sbeetctl response-time --sweep`: how many random sets are schedulable. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/listing.h"
#include "client/base/output.h"
#include "client/base/table.h"
#include "client/sim/progress.h"
#include "client/sim/response-plot.h"
#include "client/sim/response.h"
#include "daemon/book/suggest.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

#define TASKSETS_DEFAULT 1000
#define EPSILON_DEFAULT	 NSEC_PER_MSEC /* Table 4.2 */

/* Behind a method's name: with GPU priorities where the order of the tasks fails. */
#define ASSIGN "+gpu-priorities"

/* The name up to "=", or all of @text. Return: _RANDOM_PARAM_N after an error on stderr. */
static enum random_param find_param(const char *text) {
	size_t length = strcspn(text, "=");
	enum random_param p = random_param_find(text, length);
	struct suggest s;
	char name[64];

	if (p < _RANDOM_PARAM_N) {
		return p;
	}
	snprintf(name, sizeof(name), "%.*s", (int)length, text);
	s = suggest_start(name);
	for (size_t i = 0; i < _RANDOM_PARAM_N; i++) {
		suggest_offer(&s, random_params[i].name);
	}
	ctl_error("no parameter '%s'%s%s%s", name, s.best ? ". Did you mean '" : "",
		  s.best ? s.best : "", s.best ? "'?" : "; sbeetctl(1) lists them");
	return p;
}

static int bad_range(enum random_param p, const char *text) {
	const struct random_param_info *info = &random_params[p];

	ctl_error("bad value '%s' of parameter '%s': expected %s from %g to %g", text, info->name,
		  info->whole ? "whole numbers" : "numbers", info->min / 1000.0,
		  info->max / 1000.0);
	return CTL_EXIT_USAGE;
}

/* "NAME=LOW[:HIGH]" */
static int set_param(struct random_tasks *tasks, const char *text) {
	enum random_param p = find_param(text);
	const char *equals = strchr(text, '=');
	struct range range;

	if (p == _RANDOM_PARAM_N) {
		return CTL_EXIT_USAGE;
	}
	if (!equals || range_parse(equals + 1, &range) < 0 || range.step ||
	    random_tasks_put(tasks, p, range) < 0) {
		return bad_range(p, equals ? equals + 1 : "");
	}
	return CTL_EXIT_OK;
}

/* "NAME" or "NAME=LOW:HIGH:STEP": the points. */
static int set_points(struct rta_sweep *s, const char *text) {
	const char *equals = strchr(text, '=');
	struct range range;

	s->x = find_param(text);
	if (s->x == _RANDOM_PARAM_N) {
		return CTL_EXIT_USAGE;
	}
	range = random_params[s->x].sweep;
	if (equals &&
	    (range_parse(equals + 1, &range) < 0 || (range.step == 0 && range.low != range.high))) {
		return bad_range(s->x, equals + 1);
	}
	range.step = range.low == range.high && equals ? 1 : range.step;
	if (range.step == 0) {
		ctl_error("option '--sweep': '%s' needs a range, %s=LOW:HIGH:STEP",
			  random_params[s->x].name, random_params[s->x].name);
		return CTL_EXIT_USAGE;
	}
	if ((range.high - range.low) / range.step >= RTA_SWEEP_POINTS_MAX) {
		ctl_error("option '--sweep': more than %u points", RTA_SWEEP_POINTS_MAX);
		return CTL_EXIT_USAGE;
	}
	for (unsigned x = range.low; x <= range.high; x += range.step) {
		struct random_tasks tasks = s->tasks;

		if (random_tasks_put(&tasks, s->x, (struct range){x, x, 0}) < 0) {
			return bad_range(s->x, equals ? equals + 1 : "");
		}
		s->points[s->n_points++] = x;
	}
	return CTL_EXIT_OK;
}

static int check_points(const struct rta_sweep *s) {
	for (size_t i = 0; i < s->n_points; i++) {
		struct random_tasks tasks = rta_sweep_at(s, i);
		char error[160];

		if (random_tasks_check(&tasks, error, sizeof(error)) < 0) {
			ctl_error("option '--sweep': %s", error);
			return CTL_EXIT_USAGE;
		}
	}
	return CTL_EXIT_OK;
}

static void add_curve(struct rta_sweep *s, const char *name, const struct rta_method *m,
		      bool assign) {
	for (size_t k = 0; k < s->n_curves; k++) {
		if (s->curves[k].method == m && s->curves[k].assign == assign) {
			return;
		}
	}
	if (s->n_curves < SELECT_MAX) {
		s->curves[s->n_curves++] = (struct rta_curve){name, m, assign};
	}
}

/* "NAME" or "NAME+gpu-priorities" */
static int select_curve(struct rta_sweep *s, const char *text) {
	const char *plus = strchr(text, '+');
	const struct rta_method *m;
	char name[64];

	if (plus && strcmp(plus, ASSIGN) != 0) {
		ctl_error("no method '%s': only '%s' may follow a method's name", text, ASSIGN);
		return CTL_EXIT_USAGE;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(plus ? plus - text : (int)strlen(text)), text);
	m = response_find_method(name);
	if (!m) {
		return CTL_EXIT_USAGE;
	}
	if (plus && m->family != RTA_PREEMPT) {
		ctl_error("'%s' has no GPU priorities to assign: only methods of preemption have",
			  name);
		return CTL_EXIT_USAGE;
	}
	add_curve(s, text, m, plus != NULL);
	return CTL_EXIT_OK;
}

/* Without any those of Figures 4.6 to 4.11. */
static int select_curves(struct rta_sweep *s, const struct select_words *words) {
	static const struct select_words figures = {
		.list = {"kthread-busy" ASSIGN, "ioctl-busy-tight" ASSIGN,
			 "ioctl-suspend-tight" ASSIGN, "mpcp-busy", "mpcp-suspend", "fmlp-busy",
			 "fmlp-suspend"},
		.n = 7,
	};
	int r = CTL_EXIT_OK;

	words = words->n ? words : &figures;
	for (size_t i = 0; r == CTL_EXIT_OK && i < words->n; i++) {
		if (strcmp(words->list[i], "all") != 0) {
			r = select_curve(s, words->list[i]);
			continue;
		}
		for (size_t k = 0; k < rta_n_methods; k++) {
			add_curve(s, rta_methods[k].name, &rta_methods[k], false);
		}
	}
	return r;
}

static int prepare(const struct response_options *o, struct rta_sweep *s) {
	bool overlap = o->generator && strcmp(o->generator, "figure-4.13") == 0;
	int r;

	if (o->generator && !overlap && strcmp(o->generator, "table-4.2") != 0) {
		ctl_error("no generator '%s': expected table-4.2 or figure-4.13", o->generator);
		return CTL_EXIT_USAGE;
	}
	random_tasks_default(&s->tasks, overlap);
	s->epsilon = o->has_epsilon ? o->epsilon : EPSILON_DEFAULT;
	s->swap = o->swap;
	s->seed = o->seed;
	s->n_sets = o->n_sets ? o->n_sets : TASKSETS_DEFAULT;
	s->n_workers = o->n_workers ? o->n_workers : workers_default();
	r = response_read_readings(&o->readings, &s->readings);
	for (size_t i = 0; r == CTL_EXIT_OK && i < o->params.n; i++) {
		r = set_param(&s->tasks, o->params.list[i]);
	}
	if (r == CTL_EXIT_OK) {
		r = set_points(s, o->sweep);
	}
	if (r == CTL_EXIT_OK) {
		r = check_points(s);
	}
	return r == CTL_EXIT_OK ? select_curves(s, &o->methods) : r;
}

static json_t *params_as_json(const struct rta_sweep *s) {
	json_t *o = json_object();

	for (size_t p = 0; p < _RANDOM_PARAM_N; p++) {
		if (p != s->x) {
			json_object_set_new(o, random_params[p].name,
					    json_pack("[f, f]", s->tasks.params[p].low / 1000.0,
						      s->tasks.params[p].high / 1000.0));
		}
	}
	return o;
}

static json_t *sweep_json(const struct rta_sweep *s, const struct rta_sweep_result *result) {
	json_t *cells = json_array();

	for (size_t i = 0; i < s->n_points; i++) {
		for (size_t k = 0; k < s->n_curves; k++) {
			json_array_append_new(
				cells, json_pack("{s:s, s:b, s:f, s:i}", "method",
						 s->curves[k].method->name, "gpu_priorities",
						 s->curves[k].assign, "x", s->points[i] / 1000.0,
						 "schedulable",
						 (int)result->schedulable[i * s->n_curves + k]));
		}
	}
	return json_pack("{s:s, s:o, s:o, s:i, s:o, s:o}", "parameter", random_params[s->x].name,
			 "epsilon_ns", json_u64(s->epsilon), "seed", json_u64(s->seed), "tasksets",
			 (int)s->n_sets, "params", params_as_json(s), "sweep", cells);
}

/* A row for each method, a column for each point: schedulable sets in %. */
static int print_matrix(const struct ctl *ctl, const struct rta_sweep *s,
			const struct rta_sweep_result *result) {
	struct table_column columns[RTA_SWEEP_POINTS_MAX + 1] = {{"method", "SCHEDULABLE %"}};
	char headers[RTA_SWEEP_POINTS_MAX][16];
	struct table_style style = {.no_legend = ctl->common.no_legend};
	struct table *t;
	int r;

	for (size_t i = 0; i < s->n_points; i++) {
		snprintf(headers[i], sizeof(headers[i]), "%g", s->points[i] / 1000.0);
		columns[i + 1] = (struct table_column){headers[i], headers[i], .right = true};
	}
	r = table_new(&t, columns, s->n_points + 1);
	for (size_t k = 0; r == 0 && k < s->n_curves; k++) {
		table_text(t, s->curves[k].name);
		for (size_t i = 0; i < s->n_points; i++) {
			table_value(t, result->schedulable[i * s->n_curves + k], "%.1f",
				    rta_sweep_percent(s, result, i, k));
		}
	}
	if (r == 0) {
		r = table_print(t, &style, stdout);
		table_free(t);
	}
	if (r < 0) {
		ctl_error("cannot show the results: out of memory");
	}
	return r < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

static void write_csv(const struct rta_sweep *s, const struct rta_sweep_result *result, FILE *out) {
	fprintf(out, "method,%s,tasksets,schedulable\n", random_params[s->x].name);
	for (size_t k = 0; k < s->n_curves; k++) {
		for (size_t i = 0; i < s->n_points; i++) {
			fprintf(out, "%s,%g,%u,%u\n", s->curves[k].name, s->points[i] / 1000.0,
				s->n_sets, result->schedulable[i * s->n_curves + k]);
		}
	}
}

static int report(const struct ctl *ctl, const struct rta_sweep *s,
		  const struct rta_sweep_result *result) {
	const struct response_options *o = ctl->options;
	int r = CTL_EXIT_OK;
	FILE *out;

	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, sweep_json(s, result));
	} else if (!(o->csv && output_is_stdout(o->csv)) &&
		   !(o->plot && output_is_stdout(o->plot))) {
		r = print_matrix(ctl, s, result);
	}
	if (r == CTL_EXIT_OK && o->csv) {
		out = output_open(o->csv);
		if (!out) {
			return CTL_EXIT_FAILED;
		}
		write_csv(s, result, out);
		r = output_close(out, o->csv);
	}
	if (r == CTL_EXIT_OK && o->plot) {
		out = output_open(o->plot);
		if (!out) {
			return CTL_EXIT_FAILED;
		}
		response_plot_write(s, result, &o->notes, out);
		r = output_close(out, o->plot);
	}
	return r;
}

int response_sweep(const struct ctl *ctl) {
	struct progress progress = {.since = nsec_now(), .units = "sets of tasks"};
	struct rta_sweep_result result = {0};
	struct rta_sweep s = {.progress = &progress};
	int r = prepare(ctl->options, &s);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (isatty(STDERR_FILENO) && !ctl->common.quiet) {
		s.on_progress = progress_show;
	}
	r = rta_sweep_run(&s, &result);
	progress_end(&progress);
	if (r < 0) {
		ctl_error("cannot analyse random sets of tasks: %s", strerror(-r));
		r = CTL_EXIT_FAILED;
	} else {
		r = report(ctl, &s, &result);
	}
	rta_sweep_result_deinit(&result);
	return r;
}
