/*
 * verb-task-history.c: `sbeetctl task history`: what tasks' programs came to, also when they have
 * ended.
 */
#include <stdio.h>
#include <time.h>

#include "client/base/listing.h"
#include "client/live/runs.h"
#include "client/verb.h"
#include "proto/validate.h"

static const struct table_column columns[] = {
	{"started", "STARTED", .drop = 3},
	{"task", "TASK", .elastic = true},
	{"program", "PROGRAM", .elastic = true, .hidden = true},
	{"pid", "PID", .right = true, .hidden = true},
	{"uid", "UID", .right = true, .hidden = true},
	{"duration", "LASTED", .right = true, .drop = 4},
	{"jobs", "JOBS", .right = true},
	{"misses", "MISSES", .right = true},
	{"abandoned", "ABANDONED", .right = true, .hidden = true},
	{"launches", "LAUNCHES", .right = true, .hidden = true},
	{"started_late", "MAX LATE", .right = true, .drop = 5},
	{"wait", "MAX WAIT", .right = true, .hidden = true},
	{"p50", "P50", .right = true},
	{"p90", "P90", .right = true, .hidden = true},
	{"p99", "P99", .right = true},
	{"max", "MAX", .right = true},
	{"gpu_time", "GPU TIME", .right = true, .drop = 1},
	{"energy", "ENERGY J", .right = true, .hidden = true},
	{"gpus", "GPUS", .hidden = true},
	{"ended", "ENDED", .drop = 2},
};

static void add_started(struct table *t, const struct run *run) {
	time_t seconds = (time_t)(run->started_ns / NSEC_PER_SEC);
	char text[32] = "-";
	struct tm tm;

	if (localtime_r(&seconds, &tm)) {
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	}
	table_value(t, (int64_t)run->started_ns, "%s", text);
}

/* A response time, which only a run with jobs has. */
static void add_response(struct table *t, const struct run *run, nsec_t time) {
	if (run->jobs > 0) {
		table_time(t, (int64_t)time);
	} else {
		table_text(t, NULL);
	}
}

/* "0,1"; nothing where they are not known. */
static void add_gpus(struct table *t, const struct run *run) {
	char text[4 * PROTO_GPUS_MAX] = "";
	size_t n = 0;

	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		if (run->gpus >> i & 1) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, n > 0 ? ",%u" : "%u", i);
		}
	}
	table_text(t, n > 0 ? text : NULL);
}

static void add_row(struct table *t, const struct run *run, uint64_t now) {
	add_started(t, run);
	table_text(t, run->task);
	table_text(t, run->program);
	table_number(t, run->pid);
	table_number(t, run->uid);
	table_time(t, (int64_t)run_duration(run, now));
	table_number(t, (int64_t)run->jobs);
	table_number(t, (int64_t)run->misses);
	table_number(t, (int64_t)run->abandoned);
	table_number(t, (int64_t)run->launches);
	add_response(t, run, run->max_started_late);
	add_response(t, run, run->max_wait);
	add_response(t, run, run_percentile(run, 50));
	add_response(t, run, run_percentile(run, 90));
	add_response(t, run, run_percentile(run, 99));
	add_response(t, run, run->max_response);
	table_time(t, (int64_t)run->gpu);
	if (run->energy_mj > 0) {
		table_value(t, (int64_t)run->energy_mj, "%.3f", (double)run->energy_mj / 1e3);
	} else {
		table_text(t, NULL);
	}
	add_gpus(t, run);
	table_text(t, run->ended);
}

static int show_json(const struct ctl *ctl, const struct runs *runs, uint64_t now) {
	json_t *list = json_array();

	for (size_t i = 0; i < runs->n; i++) {
		if (json_array_append_new(list, run_json(&runs->list[i], now)) < 0) {
			json_decref(list);
			return listing_json(ctl, NULL);
		}
	}
	return listing_json(ctl, list);
}

static int show_table(const struct ctl *ctl, const struct runs *runs, uint64_t now) {
	struct table *t;
	int r;

	if (runs->n == 0) {
		if (!ctl->common.quiet) {
			fprintf(stderr, "No program%s has had a job yet.\n",
				ctl->args[0] ? " of this task" : "");
		}
		return CTL_EXIT_OK;
	}
	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the history: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < runs->n; i++) {
		add_row(t, &runs->list[i], now);
	}
	r = listing_show(ctl, t, "the history");
	if (r == CTL_EXIT_OK && !ctl->common.no_legend) {
		printf("%zu run%s.\n", runs->n, runs->n == 1 ? "" : "s");
	}
	return r;
}

static int history(const struct ctl *ctl) {
	const char *task = ctl->args[0] ? ctl->args[0] : "";
	struct control *control;
	struct runs runs;
	char error[512];
	int r;

	if (*task && validate_name(task) < 0) {
		ctl_error("'%.64s' is not a task's name: expected 1 to %d of [A-Za-z0-9._@:+-]",
			  task, PROTO_NAME_MAX);
		return CTL_EXIT_USAGE;
	}
	r = control_open(&control, error, sizeof(error));
	if (r == 0) {
		r = runs_ask(control, task, "", &runs, error, sizeof(error));
		control_close(control);
	}
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = ctl->common.json == JSON_OFF ? show_table(ctl, &runs, runs_now())
					 : show_json(ctl, &runs, runs_now());
	runs_deinit(&runs);
	return r;
}

const struct verb verb_task_history = {
	.name = "task history",
	.args = "[TASK]",
	.summary = "show what tasks' programs came to, also when they have ended",
	.flags = VERB_READS | VERB_TABLE,
	.max_args = 1,
	.help = "One line for each process. sbeetd keeps 512 of them, also when it is started\n"
		"again; where users compete for room, the one with the most loses its oldest.\n"
		"More columns: program, pid, uid, abandoned, launches, wait, p90, energy.\n",
	.function = history,
};
