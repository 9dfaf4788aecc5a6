/*
 * verb-simulate.c: `sbeetctl simulate`: what policies make of a scenario, without daemon or GPU.
 */
#include <errno.h>

#include "client/options.h"
#include "client/sim/scenario-file.h"
#include "client/sim/simulate.h"
#include "client/sim/sweep.h"
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

static int parse_tasksets(const char *text, void *target) {
	return units_parse_count(text, SWEEP_TASKSETS_MAX, target);
}

static int parse_tasks(const char *text, void *target) {
	return units_parse_count(text, TASKSET_MAX, target);
}

static int parse_sms(const char *text, void *target) {
	return units_parse_count(text, PROTO_SMS_MAX, target);
}

static int parse_workers(const char *text, void *target) {
	return units_parse_count(text, SWEEP_WORKERS_MAX, target);
}

static int parse_percent(const char *text, void *target) {
	return units_parse_count(text, 100, target);
}

/* Without a number as many as the daemon keeps. */
static int parse_explain(const char *text, void *target) {
	return units_parse_count(text ? text : "256", EXPLAIN_MAX, target);
}

static const struct option simulate_options[] = {
	{"policy", 'p', OPTION_REQUIRED, "NAME", "this policy, or mps; repeat it, or say 'all'",
	 select_parse, offsetof(struct simulate_options, policies), SELECT_EXPECTED},
	{"duration", 'd', OPTION_REQUIRED, "TIME", "how much time to simulate (default: 1s)",
	 parse_duration, offsetof(struct simulate_options, duration),
	 "a time from 1ns to 24h, such as 15s"},
	{"seed", 0, OPTION_REQUIRED, "N", "seed of the random number generator (default: 0)",
	 parse_seed, offsetof(struct simulate_options, seed), "a whole number from 0"},
	{"param", 0, OPTION_REQUIRED, "NAME=VALUE", "set a parameter; 'sbeetctl policy' lists them",
	 select_parse, offsetof(struct simulate_options, params), SELECT_EXPECTED},
	{"sweep", 0, OPTION_REQUIRED, "LOW:HIGH:STEP",
	 "random task sets of these utilisations, of the scenario's profiles", simulate_parse_range,
	 offsetof(struct simulate_options, sweep), "a range of utilisations, such as 0.2:2.0:0.2"},
	{"tasksets", 0, OPTION_REQUIRED, "N", "sets at each utilisation (default: 100)",
	 parse_tasksets, offsetof(struct simulate_options, n_tasksets), "1 to 100000"},
	{"tasks", 0, OPTION_REQUIRED, "N", "tasks in a set (default: 6)", parse_tasks,
	 offsetof(struct simulate_options, n_tasks), "1 to 256"},
	{"deadlines", 0, OPTION_REQUIRED, "PERCENT",
	 "deadlines in percent of periods (default: 50)", parse_percent,
	 offsetof(struct simulate_options, deadline_percent), "1 to 100"},
	{"reference-sms", 0, OPTION_REQUIRED, "N",
	 "utilisations are means over 1 to N SMs of GPU 0 (default: its limit)", parse_sms,
	 offsetof(struct simulate_options, reference_sms), "1 to 256"},
	{"without", 0, OPTION_REQUIRED, "PROFILE", "don't draw this profile; may be repeated",
	 select_parse, offsetof(struct simulate_options, without), SELECT_EXPECTED},
	{"heavy", 0, OPTION_REQUIRED, "PROFILE",
	 "profile of heavy tasks (repeatable); the range is then their share", select_parse,
	 offsetof(struct simulate_options, heavy), SELECT_EXPECTED},
	{"workers", 0, OPTION_REQUIRED, "N", "threads of a sweep (default: one per core)",
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
	 "explain the last N decisions about jobs (default: 256)", parse_explain,
	 offsetof(struct simulate_options, n_explain), "1 to 10000"},
	{"gantt", 0, OPTION_REQUIRED, "FILE", "draw the schedule of the one policy", option_string,
	 offsetof(struct simulate_options, gantt), NULL},
	{0},
};

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
		  o->sweep.step ? "applies to one schedule, not to a sweep" : "needs --sweep");
	return CTL_EXIT_USAGE;
}

static int simulate(const struct ctl *ctl) {
	const struct simulate_options *o = ctl->options;
	struct scenario scenario;
	char error[1024];
	int r;

	r = check_options(o);
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (scenario_file_init(&scenario, ctl->args[0], error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	r = o->sweep.step ? simulate_sweep(ctl, &scenario) : simulate_runs(ctl, &scenario);
	scenario_deinit(&scenario);
	return r;
}

const struct verb verb_simulate = {
	.name = "simulate",
	.args = "SCENARIO.json",
	.summary = "simulate policies on GPUs and tasks, in virtual time",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 1,
	.max_args = 1,
	.options = simulate_options,
	.options_size = sizeof(struct simulate_options),
	.help = "This is the daemon's own scheduler; only the time is simulated. Under steer, mps, "
		"mps-25,\n"
		"mps-33, mps-50, mps-75, mps-level and share, programs share a GPU without "
		"asking.\n"
		"Scenarios are documented in sbeet-scenario(5).\n",
	.function = simulate,
};
