/*
 * simulate-runs.c: `sbeetctl simulate` without --sweep: the scenario's tasks under each policy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/listing.h"
#include "client/base/output.h"
#include "client/base/table.h"
#include "client/sim/gantt.h"
#include "client/sim/simulate.h"
#include "client/sim/simulated.h"
#include "client/sim/simulation.h"
#include "daemon/sim/shared.h"

/* All that one call simulates. */
struct batch {
	const struct scenario *scenario; /* borrowed */
	struct simulation *runs;	 /* owned */
	size_t n_runs;
};

static void batch_deinit(struct batch *b) {
	for (size_t i = 0; i < b->n_runs; i++) {
		simulation_deinit(&b->runs[i]);
	}
	free(b->runs);
}

static int run_failed(const struct ctl *ctl, const struct simulation *s, int r) {
	if (r == -E2BIG) {
		ctl_error("cannot simulate '%s': more than %u jobs; choose a shorter --duration",
			  ctl->args[0], SIM_JOBS_MAX);
	} else if (r == -EUSERS) {
		ctl_error("cannot simulate '%s' under '%s': more than %d tasks on one GPU",
			  ctl->args[0], s->policy->name, SIM_SHARED_TASKS_MAX);
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
		s->duration = o->duration	      ? o->duration
			      : b->scenario->duration ? b->scenario->duration
						      : SIMULATE_DURATION_DEFAULT;
		s->seed = o->seed;
		s->n_explain = o->n_explain;
		r = simulation_run(s, b->scenario);
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
					 json_u64(t->first_release), "priority", t->spec.priority));
	}
	return tasks;
}

static json_t *batch_json(const struct ctl *ctl, const struct batch *b) {
	json_t *runs = json_array();

	for (size_t i = 0; i < b->n_runs; i++) {
		json_array_append_new(runs, simulation_json(&b->runs[i], b->scenario));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "scenario", json_text(ctl->args[0]),
			 "duration_ns", json_u64(b->runs[0].duration), "seed",
			 json_u64(b->runs[0].seed), "gpus", gpus_json(b->scenario), "tasks",
			 tasks_json(b->scenario), "runs", runs);
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

		table_text(t, b->scenario->task_names[i]);
		table_text(t, task->home < 0 ? NULL : b->scenario->gpus[task->home].name);
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

	for (size_t k = 0; k < b->scenario->n_gpus; k++) {
		gpus[k] = b->scenario->gpus[k].name;
	}
	for (size_t i = 0; i < b->n_runs; i++) {
		if (b->runs[i].n_explain > 0 && simulated_shares(b->runs[i].policy)) {
			printf("\nUnder %s no program asks, so no decision can be explained.\n",
			       b->runs[i].policy->name);
		}
		for (size_t j = 0; j < b->runs[i].n_explained; j++) {
			char job[96];
			struct decision d =
				simulation_decision(&b->runs[i], b->scenario, gpus, j, job);

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
	gantt_write(&b->runs[0], b->scenario, out);
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

int simulate_runs(const struct ctl *ctl, const struct scenario *scenario) {
	struct batch b = {.scenario = scenario};
	int r;

	if (scenario->n_tasks == 0) {
		ctl_error("nothing to simulate: '%s' has no tasks", ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	r = batch_run(ctl, &b);
	if (r == CTL_EXIT_OK) {
		r = report(ctl, &b);
	}
	batch_deinit(&b);
	return r;
}
