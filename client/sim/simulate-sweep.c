/*
 * simulate-sweep.c: `sbeetctl simulate --sweep`: random task sets over a range of utilisations.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/listing.h"
#include "client/base/output.h"
#include "client/base/table.h"
#include "client/sim/plot.h"
#include "client/sim/progress.h"
#include "client/sim/simulate.h"
#include "client/sim/sweep.h"
#include "daemon/sim/shared.h"

#define TASKSETS_DEFAULT 100

int simulate_parse_range(const char *text, void *target) {
	struct range range;
	int r = range_parse(text, &range);

	if (r == 0 && range.step == 0) {
		if (range.high > range.low) {
			return -EINVAL;
		}
		range.step = 1;
	}
	if (r == 0 && (range.high - range.low) / range.step >= SWEEP_POINTS_MAX) {
		return -ERANGE;
	}
	if (r == 0) {
		*(struct range *)target = range;
	}
	return r;
}

/* Marks the profiles that @option names. */
static int mark(const struct scenario *scenario, const char *option,
		const struct select_words *names, bool *marks) {
	for (size_t n = 0; n < names->n; n++) {
		size_t i = 0;

		while (i < scenario->n_profiles &&
		       strcmp(scenario->profiles[i].name, names->list[n]) != 0) {
			i++;
		}
		if (i == scenario->n_profiles) {
			ctl_error("option '--%s': no profile '%s' in the scenario", option,
				  names->list[n]);
			return CTL_EXIT_NO_OBJECT;
		}
		marks[i] = true;
	}
	return CTL_EXIT_OK;
}

static unsigned or_default(unsigned value, unsigned otherwise) {
	return value ? value : otherwise;
}

/* Shares of heavy tasks may be 0 but not above 1; utilisations are above 0. */
static int check_range(const struct simulate_options *o) {
	if (o->heavy.n > 0 ? o->sweep.high <= 1000 : o->sweep.low > 0) {
		return CTL_EXIT_OK;
	}
	ctl_error("option '--sweep': expected %s",
		  o->heavy.n > 0 ? "shares of heavy tasks, such as 0:1:0.1"
				 : "a range of utilisations, such as 0.2:2.0:0.2");
	return CTL_EXIT_USAGE;
}

/* @marks: room for the profiles that are left out, then for the heavy ones. */
static int prepare(const struct ctl *ctl, const struct scenario *scenario, bool *marks,
		   struct sweep *s) {
	const struct simulate_options *o = ctl->options;
	int r = check_range(o);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	s->scenario = scenario;
	taskset_rules_default(&s->rules, scenario);
	s->rules.n_tasks = or_default(o->n_tasks, s->rules.n_tasks);
	s->rules.deadline_permille =
		or_default(o->deadline_percent * 10, s->rules.deadline_permille);
	s->rules.reference_sms = or_default(o->reference_sms, s->rules.reference_sms);
	s->rules.excluded = marks;
	s->rules.heavy = o->heavy.n > 0 ? marks + scenario->n_profiles : NULL;
	s->duration = o->duration	   ? o->duration
		      : scenario->duration ? scenario->duration
					   : SIMULATE_DURATION_DEFAULT;
	s->seed = o->seed;
	s->n_tasksets = or_default(o->n_tasksets, TASKSETS_DEFAULT);
	s->n_workers = or_default(o->n_workers, workers_default());
	for (unsigned u = o->sweep.low; u <= o->sweep.high; u += o->sweep.step) {
		s->u[s->n_points++] = u / 1000.0;
	}
	if (s->rules.reference_sms > scenario->gpus[0].model.power.n_sms) {
		ctl_error("option '--reference-sms': '%s' has only %u SMs", scenario->gpus[0].name,
			  scenario->gpus[0].model.power.n_sms);
		return CTL_EXIT_USAGE;
	}
	r = select_policies(&o->policies, s->policies, &s->n_policies);
	if (r == CTL_EXIT_OK) {
		r = select_params(&o->params, &s->params);
	}
	if (r == CTL_EXIT_OK && s->params.sched.reference_sms == 0) {
		s->params.sched.reference_sms = o->reference_sms;
	}
	if (r == CTL_EXIT_OK) {
		r = mark(scenario, "without", &o->without, marks);
	}
	return r == CTL_EXIT_OK ? mark(scenario, "heavy", &o->heavy, marks + scenario->n_profiles)
				: r;
}

static int run_failed(const struct ctl *ctl, const struct sweep *s, int r) {
	switch (-r) {
	case ENOENT:
		ctl_error("no task sets: '%s' has no %sprofiles on its first GPU, '%s'",
			  ctl->args[0], s->rules.heavy ? "light or no heavy " : "",
			  s->scenario->gpus[0].name);
		break;
	case ERANGE:
		ctl_error(
			"no such task sets: utilisations of %u tasks between %g and %g do not "
			"reach from %g to %g",
			s->rules.n_tasks, s->rules.u_min, s->rules.u_max, s->u[0],
			s->u[s->n_points - 1]);
		break;
	case E2BIG:
		ctl_error("cannot simulate '%s': more than %u jobs; choose a shorter --duration",
			  ctl->args[0], SIM_JOBS_MAX);
		break;
	case EUSERS:
		ctl_error(
			"cannot simulate '%s': under 'steer' and 'mps' a GPU has at most %d tasks",
			ctl->args[0], SIM_SHARED_TASKS_MAX);
		break;
	default:
		ctl_error("cannot simulate '%s': %s", ctl->args[0], strerror(-r));
		break;
	}
	return CTL_EXIT_FAILED;
}

static json_t *sweep_json(const struct ctl *ctl, const struct sweep *s,
			  const struct sweep_result *result) {
	json_t *cells = json_array();

	for (size_t i = 0; i < s->n_points * s->n_policies; i++) {
		const struct sweep_cell *c = &result->cells[i];

		json_array_append_new(
			cells,
			json_pack("{s:s, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:o}",
				  "policy", s->policies[i % s->n_policies]->name, "utilisation",
				  s->u[i / s->n_policies], "released", json_u64(c->count.released),
				  "completed", json_u64(c->count.completed), "missed",
				  json_u64(c->count.missed), "open", json_u64(c->count.open),
				  "miss_ratio", c->miss_ratio, "miss_ratio_sd", c->miss_ratio_sd,
				  "miss_ratio_pooled", c->miss_ratio_pooled,
				  "energy_j", c->energy_j, "energy_j_sd", c->energy_j_sd,
				  "decisions", json_u64(c->decisions)));
	}
	return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "scenario", json_text(ctl->args[0]),
			 "duration_ns", json_u64(s->duration), "seed", json_u64(s->seed),
			 "tasksets", (int)s->n_tasksets, "tasks", (int)s->rules.n_tasks, "params",
			 params_json(&s->params), "sweep", cells);
}

/* A row for each policy, a column for each utilisation: misses in %, mean and pooled, then energy. */
static int print_matrix(const struct ctl *ctl, const struct sweep *s,
			const struct sweep_result *result) {
	struct table_column *columns = calloc(s->n_points + 1, sizeof(*columns));
	char(*headers)[24] = calloc(s->n_points, sizeof(*headers));
	struct table_style style = {.no_legend = ctl->common.no_legend};
	struct table *t = NULL;
	int r = -ENOMEM;

	if (columns && headers) {
		columns[0] = (struct table_column){"policy", "MISSES % (POOLED) / J"};
		for (size_t i = 0; i < s->n_points; i++) {
			snprintf(headers[i], sizeof(headers[i]), "%s %.4g",
				 s->rules.heavy ? "HEAVY" : "U", s->u[i]);
			columns[i + 1] =
				(struct table_column){headers[i], headers[i], .right = true};
		}
		r = table_new(&t, columns, s->n_points + 1);
	}
	for (size_t p = 0; r == 0 && p < s->n_policies; p++) {
		table_text(t, s->policies[p]->name);
		for (size_t i = 0; i < s->n_points; i++) {
			const struct sweep_cell *c = &result->cells[i * s->n_policies + p];

			table_value(t, (int64_t)(c->miss_ratio * 1e6), "%.2f (%.2f) / %.0f",
				    c->miss_ratio * 100, c->miss_ratio_pooled * 100, c->energy_j);
		}
	}
	if (r == 0) {
		r = table_print(t, &style, stdout);
	}
	table_free(t);
	free(columns);
	free(headers);
	if (r < 0) {
		ctl_error("cannot show the results: out of memory");
	}
	return r < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

/* What is written into files. */
struct findings {
	const struct sweep *s;
	const struct sweep_result *result;
	struct plot_points points; /* owned */
	const struct select_words *notes;
};

static void write_plot(const struct findings *f, FILE *out) {
	plot_write(f->s, f->result, &f->points, f->notes, out);
}

static void write_csv(const struct findings *f, FILE *out) {
	const struct sweep_result *result = f->result;
	const struct sweep *s = f->s;

	fprintf(out,
		"policy,utilisation,tasksets,released,completed,missed,open,miss_ratio,"
		"miss_ratio_sd,energy_j,energy_j_sd,decisions,miss_ratio_pooled\n");
	for (size_t p = 0; p < s->n_policies; p++) {
		for (size_t i = 0; i < s->n_points; i++) {
			const struct sweep_cell *c = &result->cells[i * s->n_policies + p];

			fprintf(out, "%s,%g,%u,%llu,%llu,%llu,%llu,%.6f,%.6f,%.4f,%.4f,%llu,%.6f\n",
				s->policies[p]->name, s->u[i], s->n_tasksets,
				(unsigned long long)c->count.released,
				(unsigned long long)c->count.completed,
				(unsigned long long)c->count.missed,
				(unsigned long long)c->count.open, c->miss_ratio, c->miss_ratio_sd,
				c->energy_j, c->energy_j_sd, (unsigned long long)c->decisions,
				c->miss_ratio_pooled);
		}
	}
}

/* @write into the file at @path, or standard output for "-". */
static int save(const char *path, const struct findings *f,
		void (*write)(const struct findings *, FILE *)) {
	FILE *out = output_open(path);

	if (!out) {
		return CTL_EXIT_FAILED;
	}
	write(f, out);
	return output_close(out, path);
}

static int report(const struct ctl *ctl, const struct findings *findings) {
	const struct simulate_options *o = ctl->options;
	const struct sweep_result *result = findings->result;
	const struct sweep *s = findings->s;
	int r = CTL_EXIT_OK;

	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, sweep_json(ctl, s, result));
	} else if (!(o->csv && output_is_stdout(o->csv)) &&
		   !(o->plot && output_is_stdout(o->plot))) {
		r = print_matrix(ctl, s, result);
	}
	if (r == CTL_EXIT_OK && o->csv) {
		r = save(o->csv, findings, write_csv);
	}
	if (r == CTL_EXIT_OK && o->plot) {
		r = save(o->plot, findings, write_plot);
	}
	return r;
}

int simulate_sweep(const struct ctl *ctl, const struct scenario *scenario) {
	struct progress progress = {.since = nsec_now(), .units = "task sets"};
	struct sweep *s = calloc(1, sizeof(*s));
	bool *marks = calloc(2 * scenario->n_profiles + 1, sizeof(*marks));
	const struct simulate_options *o = ctl->options;
	struct sweep_result result = {0};
	struct findings findings = {.s = s, .result = &result, .notes = &o->notes};
	char error[1024];
	int r = CTL_EXIT_FAILED;

	if (!s || !marks) {
		ctl_error("cannot simulate '%s': out of memory", ctl->args[0]);
		goto out;
	}
	r = prepare(ctl, scenario, marks, s);
	if (r != CTL_EXIT_OK) {
		goto out;
	}
	if (o->reference &&
	    (r = plot_points_read(&findings.points, o->reference, s, error, sizeof(error))) < 0) {
		ctl_error("%s", r == -ENOMEM ? "out of memory" : error);
		r = CTL_EXIT_FAILED;
		goto out;
	}
	if (isatty(STDERR_FILENO) && !ctl->common.quiet) {
		s->on_progress = progress_show;
		s->userdata = &progress;
	}
	r = sweep_run(s, &result);
	progress_end(&progress);
	r = r < 0 ? run_failed(ctl, s, r) : report(ctl, &findings);
out:
	plot_points_deinit(&findings.points);
	sweep_result_deinit(&result);
	free(marks);
	free(s);
	return r;
}
