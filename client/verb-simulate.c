/*
 * verb-simulate.c: `sbeetctl simulate`: what policies make of a scenario, without daemon or GPU.
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
#include "client/sim/gantt.h"
#include "client/sim/scenario-file.h"
#include "client/sim/simulation.h"
#include "client/sim/sweep.h"
#include "client/simulate.h"
#include "client/verb.h"

#define EXPLAIN_MAX 10000

static int parse_duration(const char *text, void *target) {
	nsec_t t;
	int r = units_parse_nsec(text, &t);

	if (r == 0 && (t == 0 || t > SIM_DURATION_MAX)) {
		return -ERANGE;
	}
	if (r == 0) {
		*(nsec_t *)target = t;
	}
	return r;
}

static int parse_seed(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, INT64_MAX, &n);

	if (r == 0) {
		*(uint64_t *)target = (uint64_t)n;
	}
	return r;
}

static int parse_count(const char *text, int64_t max, unsigned *ret) {
	int64_t n;
	int r = units_parse_int(text, 1, max, &n);

	if (r == 0) {
		*ret = (unsigned)n;
	}
	return r;
}

static int parse_tasksets(const char *text, void *target) {
	return parse_count(text, SWEEP_TASKSETS_MAX, target);
}

static int parse_tasks(const char *text, void *target) {
	return parse_count(text, TASKSET_MAX, target);
}

static int parse_sms(const char *text, void *target) {
	return parse_count(text, PROTO_SMS_MAX, target);
}

static int parse_workers(const char *text, void *target) {
	return parse_count(text, SWEEP_WORKERS_MAX, target);
}

static int parse_percent(const char *text, void *target) {
	return parse_count(text, 100, target);
}

/* Without a number as many as the daemon keeps. */
static int parse_explain(const char *text, void *target) {
	return parse_count(text ? text : "256", EXPLAIN_MAX, target);
}

static const struct option simulate_options[] = {
	{"policy", 'p', OPTION_REQUIRED, "NAME", "this policy; repeat it, or say 'all'",
	 select_parse, offsetof(struct simulate_options, policies), SELECT_EXPECTED},
	{"duration", 'd', OPTION_REQUIRED, "TIME", "how much time to simulate (default: 1s)",
	 parse_duration, offsetof(struct simulate_options, duration),
	 "a time from 1ns to 24h, such as 15s"},
	{"seed", 0, OPTION_REQUIRED, "N", "of everything that is drawn (default: 0)", parse_seed,
	 offsetof(struct simulate_options, seed), "a whole number from 0"},
	{"param", 0, OPTION_REQUIRED, "NAME=VALUE", "set a parameter; 'sbeetctl policy' lists them",
	 select_parse, offsetof(struct simulate_options, params), SELECT_EXPECTED},
	{"sweep", 0, OPTION_REQUIRED, "LOW:HIGH:STEP",
	 "random task sets of these utilisations, of the scenario's profiles", simulate_parse_range,
	 offsetof(struct simulate_options, sweep), "a range of utilisations, such as 0.2:2.0:0.2"},
	{"tasksets", 0, OPTION_REQUIRED, "N", "so many at each utilisation (default: 100)",
	 parse_tasksets, offsetof(struct simulate_options, n_tasksets), "1 to 100000"},
	{"tasks", 0, OPTION_REQUIRED, "N", "in a task set (default: 6)", parse_tasks,
	 offsetof(struct simulate_options, n_tasks), "1 to 256"},
	{"deadlines", 0, OPTION_REQUIRED, "PERCENT", "of their periods (default: 50)",
	 parse_percent, offsetof(struct simulate_options, deadline_percent), "1 to 100"},
	{"reference-sms", 0, OPTION_REQUIRED, "N",
	 "utilisations are means over 1 to N SMs of GPU 0 (default: its limit)", parse_sms,
	 offsetof(struct simulate_options, reference_sms), "1 to 256"},
	{"without", 0, OPTION_REQUIRED, "PROFILE", "don't draw this one; may be repeated",
	 select_parse, offsetof(struct simulate_options, without), SELECT_EXPECTED},
	{"heavy", 0, OPTION_REQUIRED, "PROFILE",
	 "heavy tasks have this one (repeatable); the range is then of their share", select_parse,
	 offsetof(struct simulate_options, heavy), SELECT_EXPECTED},
	{"workers", 0, OPTION_REQUIRED, "N", "threads of a sweep (default: one a core)",
	 parse_workers, offsetof(struct simulate_options, n_workers), "1 to 256"},
	{"csv", 0, OPTION_REQUIRED, "FILE", "write the sweep's results; - for standard output",
	 option_string, offsetof(struct simulate_options, csv), NULL},
	{"plot", 0, OPTION_REQUIRED, "FILE", "draw the sweep: misses and energy over utilisation",
	 option_string, offsetof(struct simulate_options, plot), NULL},
	{"reference", 0, OPTION_REQUIRED, "FILE",
	 "draw the points of this CSV file into the plot, as --csv writes it", option_string,
	 offsetof(struct simulate_options, reference), NULL},
	{"note", 0, OPTION_REQUIRED, "TEXT", "a line below the plot; may be repeated", select_parse,
	 offsetof(struct simulate_options, notes), SELECT_EXPECTED},
	{"explain", 0, OPTION_OPTIONAL, "N",
	 "say why, of the last N decisions about jobs (default: 256)", parse_explain,
	 offsetof(struct simulate_options, n_explain), "1 to 10000"},
	{"gantt", 0, OPTION_REQUIRED, "FILE", "draw the schedule of the one policy", option_string,
	 offsetof(struct simulate_options, gantt), NULL},
	{0},
};

/* All that one call simulates. */
struct batch {
	struct scenario scenario;
	struct simulation *runs; /* owned */
	size_t n_runs;
};

static void batch_deinit(struct batch *b) {
	for (size_t i = 0; i < b->n_runs; i++) {
		simulation_deinit(&b->runs[i]);
	}
	free(b->runs);
	scenario_deinit(&b->scenario);
}

static int run_failed(const struct ctl *ctl, const struct simulation *s, int r) {
	if (r == -E2BIG) {
		ctl_error("cannot simulate '%s': more than %u jobs; choose a shorter --duration",
			  ctl->args[0], SIM_JOBS_MAX);
	} else {
		ctl_error("cannot simulate '%s' under '%s': %s", ctl->args[0], s->policy->name,
			  strerror(-r));
	}
	return CTL_EXIT_FAILED;
}

static int batch_run(const struct ctl *ctl, struct batch *b) {
	const struct simulate_options *o = ctl->options;
	const struct sched_policy *policies[SELECT_MAX];
	struct params params;
	size_t n = 0;
	int r;

	r = select_policies(&o->policies, policies, &n);
	if (r == CTL_EXIT_OK) {
		r = select_params(&o->params, &params);
	}
	if (r != CTL_EXIT_OK) {
		return r;
	}
	b->runs = calloc(n, sizeof(*b->runs));
	if (!b->runs) {
		ctl_error("cannot simulate '%s': out of memory", ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < n; i++) {
		struct simulation *s = &b->runs[i];

		s->policy = policies[i];
		s->params = params;
		s->duration = o->duration	     ? o->duration
			      : b->scenario.duration ? b->scenario.duration
						     : SIMULATE_DURATION_DEFAULT;
		s->seed = o->seed;
		s->n_explain = o->n_explain;
		r = simulation_run(s, &b->scenario);
		if (r < 0) {
			return run_failed(ctl, s, r);
		}
		b->n_runs++;
	}
	return CTL_EXIT_OK;
}

static json_t *gpus_json(const struct scenario *s) {
	json_t *gpus = json_array();

	for (size_t k = 0; k < s->n_gpus; k++) {
		const struct scenario_gpu *g = &s->gpus[k];

		json_array_append_new(gpus,
				      json_pack("{s:o, s:o, s:i, s:i, s:i}", "gpu",
						json_text(g->name), "type", json_text(g->type),
						"n_sms", (int)g->model.power.n_sms, "limit",
						(int)g->model.limit, "step", (int)g->model.step));
	}
	return gpus;
}

static json_t *tasks_json(const struct scenario *s) {
	json_t *tasks = json_array();

	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sched_task *t = &s->tasks[i];

		json_array_append_new(
			tasks, json_pack("{s:o, s:o, s:o, s:o, s:o, s:i}", "task",
					 json_text(s->task_names[i]), "profile",
					 json_text(s->profiles[s->task_profiles[i]].name),
					 "period_ns", json_u64_known(t->period), "deadline_ns",
					 json_u64_known(t->deadline), "offset_ns",
					 json_u64(t->first_release), "priority", t->priority));
	}
	return tasks;
}

static json_t *batch_json(const struct ctl *ctl, const struct batch *b) {
	json_t *runs = json_array();

	for (size_t i = 0; i < b->n_runs; i++) {
		json_array_append_new(runs, simulation_json(&b->runs[i], &b->scenario));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "scenario", json_text(ctl->args[0]),
			 "duration_ns", json_u64(b->runs[0].duration), "seed",
			 json_u64(b->runs[0].seed), "gpus", gpus_json(&b->scenario), "tasks",
			 tasks_json(&b->scenario), "runs", runs);
}

/* Counts and ratio, the cells that policies and tasks share. */
static void add_count(struct table *t, const struct sim_count *count) {
	unsigned ppm = sim_miss_ppm(count);

	table_number(t, (int64_t)count->released);
	table_number(t, (int64_t)count->completed);
	table_number(t, (int64_t)count->missed);
	table_number(t, (int64_t)count->open);
	table_value(t, ppm, "%u.%02u", ppm / 10000, ppm % 10000 / 100);
}

static int print_policies(const struct ctl *ctl, const struct batch *b) {
	static const struct table_column columns[] = {
		{"policy", "POLICY"},
		{"released", "RELEASED", .right = true},
		{"completed", "COMPLETED", .right = true},
		{"missed", "MISSED", .right = true},
		{"open", "OPEN", .right = true, .hidden = true},
		{"miss_ratio", "MISSES %", .right = true},
		{"energy_j", "ENERGY J", .right = true},
		{"decisions", "DECISIONS", .right = true},
		{"decision_cost_ns", "COST us", .right = true},
	};
	struct table *t;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the results: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < b->n_runs; i++) {
		const struct sim_result *result = &b->runs[i].result;
		uint64_t mj =
			(result->energy_total_pj + POWER_PJ_PER_J / 2000) / (POWER_PJ_PER_J / 1000);

		table_text(t, b->runs[i].policy->name);
		add_count(t, &result->count);
		table_value(t, (int64_t)mj, "%" PRIu64 ".%03u", mj / 1000, (unsigned)(mj % 1000));
		table_number(t, (int64_t)result->decisions);
		table_value(t, (int64_t)result->cost.p50, "%u.%01u",
			    (unsigned)(result->cost.p50 / 1000),
			    (unsigned)(result->cost.p50 % 1000 / 100));
	}
	return listing_show(ctl, t, "the results");
}

/* With one policy there is room for its tasks. */
static int print_tasks(const struct ctl *ctl, const struct batch *b) {
	static const struct table_column columns[] = {
		{"task", "TASK", .elastic = true},
		{"home", "HOME"},
		{"released", "RELEASED", .right = true},
		{"completed", "COMPLETED", .right = true},
		{"missed", "MISSED", .right = true},
		{"open", "OPEN", .right = true, .hidden = true},
		{"miss_ratio", "MISSES %", .right = true},
		{"mean", "MEAN RESP", .right = true},
		{"p99", "P99", .right = true},
		{"max", "MAX", .right = true},
		{"lateness", "LATENESS", .right = true},
	};
	const struct sim_result *result = &b->runs[0].result;
	struct table *t;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the results: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < result->n_tasks; i++) {
		const struct sim_task_result *task = &result->tasks[i];

		table_text(t, b->scenario.task_names[i]);
		table_text(t, task->home < 0 ? NULL : b->scenario.gpus[task->home].name);
		add_count(t, &task->count);
		if (task->count.completed == 0) {
			for (int column = 0; column < 4; column++) {
				table_text(t, NULL);
			}
			continue;
		}
		table_time(t, (int64_t)task->response.mean);
		table_time(t, (int64_t)task->response.p99);
		table_time(t, (int64_t)task->response.max);
		if (task->lateness_max == INT64_MIN) {
			table_text(t, NULL);
		} else {
			table_time(t, task->lateness_max);
		}
	}
	printf("\n");
	return listing_print(ctl, t, "the results");
}

static int print_decisions(const struct ctl *ctl, const struct batch *b) {
	const char *gpus[SCHED_GPUS_MAX];

	for (size_t k = 0; k < b->scenario.n_gpus; k++) {
		gpus[k] = b->scenario.gpus[k].name;
	}
	for (size_t i = 0; i < b->n_runs; i++) {
		for (size_t j = 0; j < b->runs[i].n_explained; j++) {
			char job[96];
			struct decision d =
				simulation_decision(&b->runs[i], &b->scenario, gpus, j, job);

			printf("\n");
			if (decision_print(ctl, &d, stdout) < 0) {
				ctl_error("cannot show the results: out of memory");
				return CTL_EXIT_FAILED;
			}
		}
	}
	return CTL_EXIT_OK;
}

static int draw(const struct batch *b, const char *path) {
	FILE *out = output_open(path);

	if (!out) {
		return CTL_EXIT_FAILED;
	}
	gantt_write(&b->runs[0], &b->scenario, out);
	return output_close(out, path);
}

static int report(const struct ctl *ctl, const struct batch *b) {
	const struct simulate_options *o = ctl->options;
	int r;

	if (o->gantt && b->n_runs > 1) {
		ctl_error("option '--gantt' draws one policy, not %zu", b->n_runs);
		return CTL_EXIT_USAGE;
	}
	if (o->gantt) {
		r = draw(b, o->gantt);
		if (r != CTL_EXIT_OK || strcmp(o->gantt, "-") == 0) {
			return r;
		}
	}
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, batch_json(ctl, b));
	}
	r = print_policies(ctl, b);
	if (r == CTL_EXIT_OK && b->n_runs == 1 && !ctl->common.columns) {
		r = print_tasks(ctl, b);
	}
	return r == CTL_EXIT_OK ? print_decisions(ctl, b) : r;
}

/* Options of the other half of the verb would do nothing: say so. */
static int check_options(const struct simulate_options *o) {
	const char *alone = o->gantt ? "gantt" : o->n_explain ? "explain" : NULL;
	const char *with = o->csv		 ? "csv"
			   : o->plot		 ? "plot"
			   : o->n_tasksets	 ? "tasksets"
			   : o->n_tasks		 ? "tasks"
			   : o->without.n	 ? "without"
			   : o->heavy.n		 ? "heavy"
			   : o->reference_sms	 ? "reference-sms"
			   : o->deadline_percent ? "deadlines"
						 : NULL;

	if (!o->plot && (o->reference || o->notes.n)) {
		ctl_error("option '--%s' needs --plot", o->reference ? "reference" : "note");
		return CTL_EXIT_USAGE;
	}
	if (o->sweep.step ? !alone : !with) {
		return CTL_EXIT_OK;
	}
	ctl_error("option '--%s' %s", o->sweep.step ? alone : with,
		  o->sweep.step ? "is about one schedule, not a sweep" : "needs --sweep");
	return CTL_EXIT_USAGE;
}

static int simulate(const struct ctl *ctl) {
	const struct simulate_options *o = ctl->options;
	struct batch b = {0};
	char error[1024];
	int r;

	r = check_options(o);
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (scenario_file_init(&b.scenario, ctl->args[0], error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	if (o->sweep.step) {
		r = simulate_sweep(ctl, &b.scenario);
	} else if (b.scenario.n_tasks == 0) {
		ctl_error("nothing to simulate: '%s' has no tasks", ctl->args[0]);
		r = CTL_EXIT_FAILED;
	} else {
		r = batch_run(ctl, &b);
		if (r == CTL_EXIT_OK) {
			r = report(ctl, &b);
		}
	}
	batch_deinit(&b);
	return r;
}

const struct verb verb_simulate = {
	.name = "simulate",
	.args = "SCENARIO.json",
	.summary = "show what policies would make of GPUs and tasks, in virtual time",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 1,
	.max_args = 1,
	.options = simulate_options,
	.options_size = sizeof(struct simulate_options),
	.help = "The scheduler is the daemon's own; only the time is not real. sbeetctl(1) tells "
		"what\n"
		"a scenario is made of.\n",
	.function = simulate,
};
