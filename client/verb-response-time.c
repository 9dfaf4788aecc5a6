/* verb-response-time.c: `sbeetctl response-time`: bounds of tasks with CPU and GPU segments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/listing.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/sim/response.h"
#include "client/sim/rta-sweep.h"
#include "client/sim/scenario-file.h"
#include "client/sim/segments.h"
#include "client/verb.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static int parse_epsilon(const char *text, void *target) {
	struct response_options *o = target;
	int r;

	o->epsilon_measured = strcmp(text, "measured") == 0;
	if (o->epsilon_measured) {
		return 0;
	}
	r = units_parse_nsec(text, &o->epsilon);
	o->has_epsilon |= r == 0;
	return r;
}

static int parse_tasksets(const char *text, void *target) {
	return units_parse_count(text, RTA_SWEEP_SETS_MAX, target);
}

static int parse_workers(const char *text, void *target) {
	return units_parse_count(text, WORKERS_MAX, target);
}

static int parse_runs(const char *text, void *target) {
	return units_parse_count(text, 1000000, target);
}

static int parse_duration(const char *text, void *target) {
	nsec_t duration;
	int r = units_parse_nsec(text, &duration);

	if (r < 0) {
		return r;
	}
	if (duration == 0 || duration > PROTO_PERIOD_MAX_NS) {
		return -ERANGE;
	}
	*(nsec_t *)target = duration;
	return 0;
}

static int parse_seed(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, INT64_MAX, &n);

	if (r == 0) {
		*(uint64_t *)target = (uint64_t)n;
	}
	return r;
}

static const struct option response_options[] = {
	{"method", 'm', OPTION_REQUIRED, "NAME",
	 "the bound to show (default: safe); repeat it in a sweep, or say 'all'", select_parse,
	 offsetof(struct response_options, methods), SELECT_EXPECTED},
	{"compare", 0, OPTION_FLAG, NULL, "show the bounds of all methods", option_flag,
	 offsetof(struct response_options, compare), NULL},
	{"slack", 0, OPTION_FLAG, NULL, "show how much longer each task's GPU segments may become",
	 option_flag, offsetof(struct response_options, slack), NULL},
	{"epsilon", 0, OPTION_REQUIRED, "TIME",
	 "time to preempt the GPU, or 'measured': as sbeetd has seen it", parse_epsilon, 0,
	 "a time, such as 1ms, or 'measured'"},
	{"gpu-priorities", 0, OPTION_FLAG, NULL, "if some task fails, assign GPU priorities",
	 option_flag, offsetof(struct response_options, gpu_priorities), NULL},
	{"swap", 0, OPTION_FLAG, NULL, "they may reverse the order on one CPU", option_flag,
	 offsetof(struct response_options, swap), NULL},
	{"reading", 0, OPTION_REQUIRED, "NAME", "read the text in another way; may be repeated",
	 select_parse, offsetof(struct response_options, readings), SELECT_EXPECTED},
	{"simulate", 0, OPTION_FLAG, NULL, "show the longest response in simulated schedules",
	 option_flag, offsetof(struct response_options, simulate), NULL},
	{"duration", 'd', OPTION_REQUIRED, "TIME",
	 "of a schedule with random offsets (default: ten of the longest period)", parse_duration,
	 offsetof(struct response_options, duration), "a time from 1ns to 24h, such as 10s"},
	{"runs", 0, OPTION_REQUIRED, "N",
	 "random schedules, and adversarial ones for each task (default: 100)", parse_runs,
	 offsetof(struct response_options, n_runs), "1 to 1000000"},
	{"sweep", 0, OPTION_REQUIRED, "NAME[=LOW:HIGH:STEP]",
	 "random sets of tasks, varying this parameter", option_string,
	 offsetof(struct response_options, sweep), NULL},
	{"generator", 0, OPTION_REQUIRED, "NAME", "table-4.2 (default) or figure-4.13",
	 option_string, offsetof(struct response_options, generator), NULL},
	{"param", 0, OPTION_REQUIRED, "NAME=LOW[:HIGH]", "set a parameter of random sets",
	 select_parse, offsetof(struct response_options, params), SELECT_EXPECTED},
	{"tasksets", 0, OPTION_REQUIRED, "N", "sets at each point (default: 1000)", parse_tasksets,
	 offsetof(struct response_options, n_sets), "1 to 100000"},
	{"seed", 0, OPTION_REQUIRED, "N", "seed of the random number generator (default: 0)",
	 parse_seed, offsetof(struct response_options, seed), "a whole number from 0"},
	{"workers", 0, OPTION_REQUIRED, "N", "threads of a sweep (default: one per core)",
	 parse_workers, offsetof(struct response_options, n_workers), "1 to 256"},
	{"csv", 0, OPTION_REQUIRED, "FILE", "write the sweep's results; - for standard output",
	 option_string, offsetof(struct response_options, csv), NULL},
	{"plot", 0, OPTION_REQUIRED, "FILE", "draw the sweep: schedulable sets in %", option_string,
	 offsetof(struct response_options, plot), NULL},
	{"note", 0, OPTION_REQUIRED, "TEXT", "a line below the plot; may be repeated", select_parse,
	 offsetof(struct response_options, notes), SELECT_EXPECTED},
	{0},
};

/* The result of one method. */
struct analysis {
	const struct rta_method *method, *safe;
	struct rta_readings readings;
	struct rta_bound bounds[RTA_TASKS_MAX];
	struct rta_bound safe_bounds[RTA_TASKS_MAX];
	unsigned levels[RTA_TASKS_MAX];
	nsec_t slack[RTA_TASKS_MAX];
	struct response_seen seen; /* with --simulate */
	bool assigned;		   /* levels hold */
};

enum verdict {
	IN_TIME,
	MAY_BE_LATE,
	NOT_KNOWN,
	BEST_EFFORT,
};

static const char *const verdicts[] = {
	[IN_TIME] = "in time",
	[MAY_BE_LATE] = "may be late",
	[NOT_KNOWN] = "not known",
	[BEST_EFFORT] = "best effort",
};

static const struct {
	const char *key, *text;
} terms[_RTA_TERM_N] = {
	[RTA_OWN] = {"own_ns", "own work"},
	[RTA_UPDATE] = {"updates_ns", "runlist updates"},
	[RTA_CPU] = {"cpu_ns", "tasks on its CPU"},
	[RTA_GPU] = {"gpu_ns", "tasks on the GPU"},
	[RTA_DIRECT] = {"lock_ns", "the GPU's lock"},
	[RTA_BOOST] = {"boost_ns", "boosted tasks"},
};

/* Only the safe bound tells that a task is in time; it does not know other orders on the GPU. */
static enum verdict verdict_of(const struct rta_set *set, const struct analysis *a, size_t i) {
	if (set->tasks[i].priority == 0) {
		return BEST_EFFORT;
	}
	if (a->assigned) {
		return NOT_KNOWN;
	}
	return a->safe_bounds[i].response <= set->tasks[i].deadline ? IN_TIME : MAY_BE_LATE;
}

static enum verdict verdict_of_all(const struct rta_set *set, const struct analysis *a) {
	if (a->assigned) {
		return NOT_KNOWN;
	}
	return rta_in_time(set, a->safe_bounds) ? IN_TIME : MAY_BE_LATE;
}

/* The largest part of a bound beside the task's own work; NULL: there is none, or no bound. */
static const char *dominant(const struct rta_bound *b) {
	enum rta_term most = RTA_UPDATE;

	for (enum rta_term t = RTA_UPDATE; t < _RTA_TERM_N; t++) {
		if (b->terms[t] > b->terms[most]) {
			most = t;
		}
	}
	return b->response == RTA_FOREVER || b->terms[most] == 0 ? NULL : terms[most].text;
}

static void analyse(const struct rta_method *method, const struct response_options *o,
		    const struct rta_readings *readings, struct rta_set *set,
		    struct analysis *ret) {
	ret->method = method;
	ret->safe = rta_method_safe(method);
	ret->readings = *readings;
	rta_method_run(method, set, readings, ret->bounds);
	if (o->gpu_priorities && !rta_in_time(set, ret->bounds)) {
		ret->assigned =
			rta_method_assign(method, set, readings, o->swap, ret->bounds, ret->levels);
	}
	rta_method_run(ret->safe, set, readings, ret->safe_bounds);
	for (size_t i = 0; o->slack && i < set->n_real_time; i++) {
		ret->slack[i] = rta_method_slack(ret->safe, set, readings, i);
	}
}

static json_t *time_or_null(nsec_t t) {
	return t == RTA_FOREVER ? json_null() : json_u64(t);
}

static json_t *task_json(const struct segments *s, const struct analysis *a, size_t i,
			 const struct response_options *options) {
	const struct rta_task *t = &s->set.tasks[i];
	enum verdict v = verdict_of(&s->set, a, i);
	json_t *parts = json_object(), *o;

	if (v == BEST_EFFORT) {
		json_decref(parts);
		return json_pack("{s:o, s:i, s:i, s:o, s:s}", "task", json_text(s->names[i]), "cpu",
				 (int)t->cpu, "priority", 0, "period_ns", json_u64(t->period),
				 "verdict", verdicts[v]);
	}
	for (size_t k = 0; a->bounds[i].response != RTA_FOREVER && k < _RTA_TERM_N; k++) {
		json_object_set_new(parts, terms[k].key, json_u64(a->bounds[i].terms[k]));
	}
	o = json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "task",
		      json_text(s->names[i]), "cpu", (int)t->cpu, "priority", t->priority,
		      "period_ns", json_u64(t->period), "deadline_ns", json_u64(t->deadline),
		      "bound_ns", time_or_null(a->bounds[i].response), "safe_bound_ns",
		      time_or_null(a->safe_bounds[i].response), "verdict", verdicts[v], "most",
		      json_text(dominant(&a->bounds[i])), "terms", parts);
	if (options->simulate) {
		json_object_set_new(o, "seen_ns", json_u64(a->seen.longest[i]));
		json_object_set_new(o, "seen",
				    json_pack("{s:o, s:o, s:o}", "critical_ns",
					      json_u64(a->seen.critical[i]), "random_ns",
					      json_u64(a->seen.random[i]), "adversarial_ns",
					      json_u64(a->seen.adversarial[i])));
	}
	if (options->slack) {
		json_object_set_new(o, "slack_ns",
				    t->n_gpu > 0 ? json_u64(a->slack[i]) : json_null());
	}
	if (a->assigned && t->n_gpu > 0) {
		json_object_set_new(o, "gpu_level", json_u64(a->levels[i]));
	}
	return o;
}

static json_t *analysis_json(const struct segments *s, const struct analysis *a,
			     const struct response_options *options) {
	json_t *tasks = json_array(), *o;

	for (size_t i = 0; i < s->set.n_tasks; i++) {
		json_array_append_new(tasks, task_json(s, a, i, options));
	}
	o = json_pack("{s:s, s:s, s:o, s:b, s:b, s:s, s:o}", "method", a->method->name, "source",
		      a->method->source, "epsilon_ns", json_u64(s->set.epsilon), "passes",
		      rta_in_time(&s->set, a->bounds), "gpu_priorities", a->assigned, "verdict",
		      verdicts[verdict_of_all(&s->set, a)], "tasks", tasks);
	if (options->simulate) {
		json_object_set_new(
			o, "simulation",
			json_pack("{s:o, s:o, s:o, s:o}", "seed", json_u64(options->seed),
				  "duration_ns", json_u64(a->seen.duration), "schedules",
				  json_u64(a->seen.schedules), "jobs", json_u64(a->seen.jobs)));
	}
	return o;
}

static void bound_cell(struct table *t, nsec_t bound) {
	if (bound == RTA_FOREVER) {
		table_text(t, "none");
	} else {
		table_time(t, (int64_t)bound);
	}
}

static void add_row(struct table *t, const struct segments *s, const struct analysis *a, size_t i) {
	const struct rta_task *task = &s->set.tasks[i];
	enum verdict v = verdict_of(&s->set, a, i);

	table_text(t, s->names[i]);
	table_number(t, task->cpu);
	table_number(t, task->priority);
	if (v == BEST_EFFORT) {
		for (unsigned k = 0; k < 5; k++) {
			table_text(t, NULL);
		}
	} else {
		table_time(t, (int64_t)task->deadline);
		bound_cell(t, a->bounds[i].response);
		bound_cell(t, a->safe_bounds[i].response);
		table_time(t, (int64_t)a->seen.longest[i]);
		table_text(t, dominant(&a->bounds[i]));
	}
	if (v != BEST_EFFORT && task->n_gpu > 0) {
		table_time(t, (int64_t)a->slack[i]);
		table_number(t, a->levels[i]);
	} else {
		table_text(t, NULL);
		table_text(t, NULL);
	}
	table_text(t, verdicts[v]);
}

static int show_table(const struct ctl *ctl, const struct segments *s, const struct analysis *a) {
	const struct response_options *o = ctl->options;
	const struct table_column columns[] = {
		{"task", "TASK", .elastic = true},
		{"cpu", "CPU", .right = true},
		{"priority", "PRIORITY", .right = true},
		{"deadline", "DEADLINE", .right = true},
		{"bound", "BOUND", .right = true},
		{"safe_bound", "SAFE BOUND", .right = true, .hidden = a->safe == a->method},
		{"seen", "SEEN", .right = true, .hidden = !o->simulate},
		{"most", "MOST FOR"},
		{"slack", "SLACK", .right = true, .hidden = !o->slack},
		{"gpu_level", "GPU LEVEL", .right = true, .hidden = !a->assigned},
		{"verdict", "VERDICT"},
	};
	struct table *t;

	if (table_new(&t, columns, N(columns)) < 0) {
		ctl_error("cannot show the bounds: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < s->set.n_tasks; i++) {
		add_row(t, s, a, i);
	}
	return listing_show(ctl, t, "the bounds");
}

/* A column a method; short, as there are many. */
static int show_comparison(const struct ctl *ctl, const struct segments *s,
			   const struct analysis *all) {
	static const struct table_column columns[] = {
		{"task", "TASK", .elastic = true},
		{"deadline", "DEADLINE", .right = true},
		{"safe", "SAFE", .right = true},
		{"safe-busy", "SAFE-B", .right = true},
		{"safe-suspend", "SAFE-S", .right = true},
		{"safe-kthread", "SAFE-K", .right = true},
		{"safe-mpcp-busy", "SAFE-MPCP-B", .right = true},
		{"safe-mpcp-suspend", "SAFE-MPCP-S", .right = true},
		{"safe-fmlp-busy", "SAFE-FMLP-B", .right = true},
		{"safe-fmlp-suspend", "SAFE-FMLP-S", .right = true},
		{"kthread-busy", "KTHREAD-B", .right = true},
		{"ioctl-busy", "IOCTL-B", .right = true},
		{"ioctl-suspend", "IOCTL-S", .right = true},
		{"ioctl-busy-tight", "TIGHT-B", .right = true},
		{"ioctl-suspend-tight", "TIGHT-S", .right = true},
		{"mpcp-busy", "MPCP-B", .right = true},
		{"mpcp-suspend", "MPCP-S", .right = true},
		{"fmlp-busy", "FMLP-B", .right = true},
		{"fmlp-suspend", "FMLP-S", .right = true},
	};
	struct table *t;

	if (table_new(&t, columns, N(columns)) < 0) {
		ctl_error("cannot show the bounds: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < s->set.n_real_time; i++) {
		table_text(t, s->names[i]);
		table_time(t, (int64_t)s->set.tasks[i].deadline);
		for (size_t k = 0; k < rta_n_methods; k++) {
			bound_cell(t, all[k].bounds[i].response);
		}
	}
	return listing_show(ctl, t, "the bounds");
}

static int show(const struct ctl *ctl, const struct segments *s, const struct analysis *a,
		const struct analysis *all) {
	const struct response_options *o = ctl->options;
	json_t *object;

	if (ctl->common.json == JSON_OFF) {
		return all ? show_comparison(ctl, s, all) : show_table(ctl, s, a);
	}
	object = analysis_json(s, a, o);
	if (all) {
		json_t *methods = json_array();

		for (size_t k = 0; k < rta_n_methods; k++) {
			json_array_append_new(methods, analysis_json(s, &all[k], o));
		}
		json_object_set_new(object, "methods", methods);
	}
	return listing_json(ctl, object);
}

/* The longest that it has taken to preempt a GPU of this machine. */
static int ask_epsilon(struct response_options *o) {
	struct control *control;
	struct snapshot snapshot;
	char error[1024];
	int r = control_open(&control, error, sizeof(error));

	if (r == CTL_EXIT_OK) {
		r = snapshot_init(&snapshot, control, error, sizeof(error));
		control_close(control);
	}
	if (r != CTL_EXIT_OK) {
		ctl_error("%s", error);
		return r;
	}
	o->epsilon = snapshot_preempt_ns(&snapshot);
	o->has_epsilon = o->epsilon > 0;
	snapshot_deinit(&snapshot);
	if (!o->has_epsilon) {
		ctl_error(
			"sbeetd has not measured how long it takes to preempt a GPU: give "
			"--epsilon=TIME");
		return CTL_EXIT_NOT_KNOWN;
	}
	return CTL_EXIT_OK;
}

static int load(const struct ctl *ctl, struct segments *ret) {
	const struct response_options *o = ctl->options;
	const char *path = ctl->args[0];
	const struct imports from = {scenario_file_open, (char *)path};
	char *text = NULL, error[1024];
	size_t size = 0;
	int e = scenario_file_read(path, &text, &size);

	if (e < 0) {
		ctl_error("cannot read '%s': %s", path,
			  e == -ENODATA ? "it is empty" : strerror(-e));
		return CTL_EXIT_FAILED;
	}
	e = segments_init(ret, path, text, size, o->has_epsilon ? o->epsilon : RTA_FOREVER, &from,
			  error, sizeof(error));
	free(text);
	if (e < 0) {
		ctl_error("%s", e == -ENOMEM ? "cannot read the tasks: out of memory" : error);
	}
	return e < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

/* Options of the other half of the verb would do nothing: say so. */
static int check_options(const struct ctl *ctl) {
	const struct response_options *o = ctl->options;
	const char *alone = o->compare		? "compare"
			    : o->simulate	? "simulate"
			    : o->slack		? "slack"
			    : o->gpu_priorities ? "gpu-priorities"
						: NULL;
	const char *with = o->generator	  ? "generator"
			   : o->params.n  ? "param"
			   : o->n_sets	  ? "tasksets"
			   : o->n_workers ? "workers"
			   : o->csv	  ? "csv"
			   : o->plot	  ? "plot"
					  : NULL;

	if ((o->duration > 0 || o->n_runs > 0) && !o->simulate) {
		ctl_error("option '--%s' needs --simulate", o->duration > 0 ? "duration" : "runs");
		return CTL_EXIT_USAGE;
	}
	if (o->simulate && (o->compare || o->gpu_priorities)) {
		ctl_error(
			"--simulate is about one method, in the order of the tasks: leave out "
			"--%s",
			o->compare ? "compare" : "gpu-priorities");
		return CTL_EXIT_USAGE;
	}
	if (o->notes.n && !o->plot) {
		ctl_error("option '--note' needs --plot");
		return CTL_EXIT_USAGE;
	}
	if (o->sweep && ctl->n_args > 0) {
		ctl_error("a sweep makes its own tasks: leave out '%s', or --sweep", ctl->args[0]);
		return CTL_EXIT_USAGE;
	}
	if (!o->sweep && ctl->n_args == 0) {
		ctl_error("'response-time' needs FILE.json, or --sweep");
		return CTL_EXIT_USAGE;
	}
	if (!o->sweep && o->methods.n > 1) {
		ctl_error(
			"option '--method' may be repeated with --sweep only; --compare shows "
			"all methods");
		return CTL_EXIT_USAGE;
	}
	if (o->sweep ? !alone : !with) {
		return CTL_EXIT_OK;
	}
	ctl_error("option '--%s' %s", o->sweep ? alone : with,
		  o->sweep ? "applies to one set of tasks, not to a sweep" : "needs --sweep");
	return CTL_EXIT_USAGE;
}

static int show_bounds(const struct ctl *ctl) {
	const struct response_options *o = ctl->options;
	const struct rta_method *m = response_find_method(o->methods.n ? o->methods.list[0] : NULL);
	const size_t n = 1 + (o->compare ? rta_n_methods : 0);
	struct rta_readings readings = {0};
	struct analysis *all;
	struct segments s;
	enum verdict v;
	int r;

	if (!m || response_read_readings(&o->readings, &readings) != CTL_EXIT_OK) {
		return CTL_EXIT_USAGE;
	}
	all = calloc(n, sizeof(*all));
	if (!all) {
		ctl_error("out of memory");
		return CTL_EXIT_FAILED;
	}
	r = load(ctl, &s);
	if (r != CTL_EXIT_OK) {
		free(all);
		return r;
	}
	analyse(m, o, &readings, &s.set, &all[0]);
	for (size_t k = 1; k < n; k++) {
		analyse(&rta_methods[k - 1], o, &readings, &s.set, &all[k]);
	}
	v = verdict_of_all(&s.set, &all[0]);
	r = o->simulate ? response_simulate(o, m, &s.set, &all[0].seen) : CTL_EXIT_OK;
	if (r == CTL_EXIT_OK) {
		r = show(ctl, &s, &all[0], o->compare ? &all[1] : NULL);
	}
	segments_deinit(&s);
	free(all);
	return r != CTL_EXIT_OK	  ? r
	       : v == MAY_BE_LATE ? CTL_EXIT_NOT_RUNNING
	       : v == NOT_KNOWN	  ? CTL_EXIT_NOT_KNOWN
				  : CTL_EXIT_OK;
}

static int response_time(const struct ctl *ctl) {
	struct response_options *o = ctl->options;
	int r = check_options(ctl);

	if (r == CTL_EXIT_OK && o->epsilon_measured) {
		r = ask_epsilon(o);
	}
	return r != CTL_EXIT_OK ? r : o->sweep ? response_sweep(ctl) : show_bounds(ctl);
}

const struct verb verb_response_time = {
	.name = "response-time",
	.args = "[FILE.json]",
	.summary = "bound the response times of tasks with CPU and GPU segments",
	.flags = VERB_READS | VERB_TABLE,
	.min_args = 0,
	.max_args = 1,
	.options = response_options,
	.options_size = sizeof(struct response_options),
	.help = "Methods: safe, safe-busy, safe-suspend, safe-kthread, safe-mpcp-busy,\n"
		"safe-mpcp-suspend, safe-fmlp-busy, safe-fmlp-suspend, kthread-busy, ioctl-busy,\n"
		"ioctl-suspend, ioctl-busy-tight, ioctl-suspend-tight, mpcp-busy, mpcp-suspend,\n"
		"fmlp-busy, fmlp-suspend. Only a safe bound tells that a task is in time.\n"
		"Parameters of random sets: cpus, tasks-per-cpu, tasks, utilisation,\n"
		"task-utilisation, gpu-tasks, period, segments, gpu-to-cpu, misc, best, "
		"best-effort;\n"
		"sbeetctl(1) has those of figure-4.13.\n"
		"Exit code 3: some task may be late; 7: not known, with GPU priorities.\n",
	.function = response_time,
};
