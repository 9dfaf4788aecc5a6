/*
 * simulate-sweep.c: `sbeetctl simulate --sweep`: random task sets over a range of utilisations.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/output.h"
#include "client/plot.h"
#include "client/simulate.h"
#include "client/sweep.h"
#include "client/table.h"

#define TASKSETS_DEFAULT 100

/* "0.2" in thousandths. */
static int parse_milli(const char **text, unsigned *ret) {
	unsigned value = 0, places = 0, digits = 0;
	bool point = false;

	for (; (**text >= '0' && **text <= '9') || (**text == '.' && !point); (*text)++) {
		if (**text == '.') {
			point = true;
			continue;
		}
		if (value > 100000 || places == 3) {
			return -EINVAL;
		}
		value = value * 10 + (unsigned)(**text - '0');
		places += point;
		digits++;
	}
	for (; places < 3; places++) {
		value *= 10;
	}
	*ret = value;
	return digits > 0 ? 0 : -EINVAL;
}

int simulate_parse_range(const char *text, void *target) {
	struct simulate_range range;

	if (parse_milli(&text, &range.low) < 0) {
		return -EINVAL;
	}
	range.high = range.low;
	range.step = 1;
	if (*text == ':') {
		text++;
		if (parse_milli(&text, &range.high) < 0 || *text++ != ':' ||
		    parse_milli(&text, &range.step) < 0) {
			return -EINVAL;
		}
	}
	if (*text) {
		return -EINVAL;
	}
	if (range.low == 0 || range.step == 0 || range.high < range.low ||
	    (range.high - range.low) / range.step >= SWEEP_POINTS_MAX) {
		return -ERANGE;
	}
	*(struct simulate_range *)target = range;
	return 0;
}

/* A line on the terminal that is written over and over. */
struct progress {
	nsec_t since;
	bool shown;
};

static void show_progress(void *userdata, size_t done, size_t all) {
	struct progress *p = userdata;
	nsec_t passed = nsec_now() - p->since;
	unsigned long long left = 0;

	if (done > 0) {
		left = (unsigned long long)((double)passed * (double)(all - done) / (double)done /
					    NSEC_PER_SEC);
	}
	p->shown = true;
	fprintf(stderr, "\r%zu of %zu task sets, %zu %%", done, all, done * 100 / all);
	if (done > 0) {
		fprintf(stderr, ", %llu min %02llu s left", left / 60, left % 60);
	}
	fprintf(stderr, "\033[K");
	fflush(stderr);
}

static void end_progress(const struct progress *p) {
	if (p->shown) {
		fprintf(stderr, "\r\033[K");
	}
}

static int exclude(const struct scenario *scenario, const struct select_words *names,
		   bool *excluded) {
	for (size_t n = 0; n < names->n; n++) {
		size_t i = 0;

		while (i < scenario->n_profiles &&
		       strcmp(scenario->profiles[i].name, names->list[n]) != 0) {
			i++;
		}
		if (i == scenario->n_profiles) {
			ctl_error("option '--without': no profile '%s' in the scenario",
				  names->list[n]);
			return CTL_EXIT_NO_OBJECT;
		}
		excluded[i] = true;
	}
	return CTL_EXIT_OK;
}

static unsigned or_default(unsigned value, unsigned otherwise) {
	return value ? value : otherwise;
}

static unsigned cores(void) {
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > SWEEP_WORKERS_MAX ? SWEEP_WORKERS_MAX : (unsigned)n;
}

static int prepare(const struct ctl *ctl, const struct scenario *scenario, bool *excluded,
		   struct sweep *s) {
	const struct simulate_options *o = ctl->options;
	int r;

	s->scenario = scenario;
	taskset_rules_default(&s->rules, scenario);
	s->rules.n_tasks = or_default(o->n_tasks, s->rules.n_tasks);
	s->rules.deadline_permille =
		or_default(o->deadline_percent * 10, s->rules.deadline_permille);
	s->rules.reference_sms = or_default(o->reference_sms, s->rules.reference_sms);
	s->rules.excluded = excluded;
	s->duration = o->duration	   ? o->duration
		      : scenario->duration ? scenario->duration
					   : SIMULATE_DURATION_DEFAULT;
	s->seed = o->seed;
	s->n_tasksets = or_default(o->n_tasksets, TASKSETS_DEFAULT);
	s->n_workers = or_default(o->n_workers, cores());
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
	return r == CTL_EXIT_OK ? exclude(scenario, &o->without, excluded) : r;
}

static int run_failed(const struct ctl *ctl, const struct sweep *s, int r) {
	switch (-r) {
	case ENOENT:
		ctl_error("no task sets: '%s' has no profiles on its first GPU, '%s'", ctl->args[0],
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
			json_pack("{s:s, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:o}",
				  "policy", s->policies[i % s->n_policies]->name, "utilisation",
				  s->u[i / s->n_policies], "released", json_u64(c->count.released),
				  "completed", json_u64(c->count.completed), "missed",
				  json_u64(c->count.missed), "open", json_u64(c->count.open),
				  "miss_ratio", c->miss_ratio, "miss_ratio_sd", c->miss_ratio_sd,
				  "energy_j", c->energy_j, "energy_j_sd", c->energy_j_sd,
				  "decisions", json_u64(c->decisions)));
	}
	return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "scenario", json_text(ctl->args[0]),
			 "duration_ns", json_u64(s->duration), "seed", json_u64(s->seed),
			 "tasksets", (int)s->n_tasksets, "tasks", (int)s->rules.n_tasks, "params",
			 params_json(&s->params), "sweep", cells);
}

/* A row for each policy, a column for each utilisation: misses in %, then energy. */
static int print_matrix(const struct ctl *ctl, const struct sweep *s,
			const struct sweep_result *result) {
	struct table_column *columns = calloc(s->n_points + 1, sizeof(*columns));
	char(*headers)[16] = calloc(s->n_points, sizeof(*headers));
	struct table_style style = {.no_legend = ctl->common.no_legend};
	struct table *t = NULL;
	int r = -ENOMEM;

	if (columns && headers) {
		columns[0] = (struct table_column){"policy", "MISSES % / J"};
		for (size_t i = 0; i < s->n_points; i++) {
			snprintf(headers[i], sizeof(headers[i]), "U %.4g", s->u[i]);
			columns[i + 1] =
				(struct table_column){headers[i], headers[i], .right = true};
		}
		r = table_new(&t, columns, s->n_points + 1);
	}
	for (size_t p = 0; r == 0 && p < s->n_policies; p++) {
		table_text(t, s->policies[p]->name);
		for (size_t i = 0; i < s->n_points; i++) {
			const struct sweep_cell *c = &result->cells[i * s->n_policies + p];

			table_value(t, (int64_t)(c->miss_ratio * 1e6), "%.2f / %.0f",
				    c->miss_ratio * 100, c->energy_j);
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

static void write_csv(const struct sweep *s, const struct sweep_result *result, FILE *out) {
	fprintf(out,
		"policy,utilisation,tasksets,released,completed,missed,open,miss_ratio,"
		"miss_ratio_sd,energy_j,energy_j_sd,decisions\n");
	for (size_t p = 0; p < s->n_policies; p++) {
		for (size_t i = 0; i < s->n_points; i++) {
			const struct sweep_cell *c = &result->cells[i * s->n_policies + p];

			fprintf(out, "%s,%g,%u,%llu,%llu,%llu,%llu,%.6f,%.6f,%.4f,%.4f,%llu\n",
				s->policies[p]->name, s->u[i], s->n_tasksets,
				(unsigned long long)c->count.released,
				(unsigned long long)c->count.completed,
				(unsigned long long)c->count.missed,
				(unsigned long long)c->count.open, c->miss_ratio, c->miss_ratio_sd,
				c->energy_j, c->energy_j_sd, (unsigned long long)c->decisions);
		}
	}
}

/* @write into the file at @path, or standard output for "-". */
static int save(const char *path, const struct sweep *s, const struct sweep_result *result,
		void (*write)(const struct sweep *, const struct sweep_result *, FILE *)) {
	FILE *out = output_open(path);

	if (!out) {
		return CTL_EXIT_FAILED;
	}
	write(s, result, out);
	return output_close(out, path);
}

static int report(const struct ctl *ctl, const struct sweep *s, const struct sweep_result *result) {
	const struct simulate_options *o = ctl->options;
	int r = CTL_EXIT_OK;

	if (ctl->common.json != JSON_OFF) {
		if (json_write(sweep_json(ctl, s, result), ctl->common.json, stdout) < 0) {
			r = CTL_EXIT_FAILED;
		}
	} else if (!(o->csv && output_is_stdout(o->csv)) &&
		   !(o->plot && output_is_stdout(o->plot))) {
		r = print_matrix(ctl, s, result);
	}
	if (r == CTL_EXIT_OK && o->csv) {
		r = save(o->csv, s, result, write_csv);
	}
	if (r == CTL_EXIT_OK && o->plot) {
		r = save(o->plot, s, result, plot_write);
	}
	return r;
}

int simulate_sweep(const struct ctl *ctl, const struct scenario *scenario) {
	struct progress progress = {.since = nsec_now()};
	struct sweep *s = calloc(1, sizeof(*s));
	bool *excluded = calloc(scenario->n_profiles + 1, sizeof(*excluded));
	struct sweep_result result = {0};
	int r = CTL_EXIT_FAILED;

	if (!s || !excluded) {
		ctl_error("cannot simulate '%s': out of memory", ctl->args[0]);
		goto out;
	}
	r = prepare(ctl, scenario, excluded, s);
	if (r != CTL_EXIT_OK) {
		goto out;
	}
	if (isatty(STDERR_FILENO) && !ctl->common.quiet) {
		s->on_progress = show_progress;
		s->userdata = &progress;
	}
	r = sweep_run(s, &result);
	end_progress(&progress);
	r = r < 0 ? run_failed(ctl, s, r) : report(ctl, s, &result);
out:
	sweep_result_deinit(&result);
	free(excluded);
	free(s);
	return r;
}
