/*
 * verb-plan.c: `sbeetctl plan`: where each task goes and whether it is always in time, by the
 * schedule of a hyperperiod with worst-case execution times (2.4.2 (3), 3.5.2).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/options.h"
#include "client/sim/scenario-file.h"
#include "client/sim/select.h"
#include "client/sim/simulation.h"
#include "client/verb.h"

struct plan_options {
	struct select_words policies;
	struct select_words params;
	nsec_t duration;
};

static const struct option plan_options[] = {
	{"policy", 'p', OPTION_REQUIRED, "NAME", "the policy to plan with (default: sbeet-mg)",
	 select_parse, offsetof(struct plan_options, policies), SELECT_EXPECTED},
	{"param", 0, OPTION_REQUIRED, "NAME=VALUE", "set a parameter; 'sbeetctl policy' lists them",
	 select_parse, offsetof(struct plan_options, params), SELECT_EXPECTED},
	{"duration", 'd', OPTION_REQUIRED, "TIME", "look only so far ahead (default: as needed)",
	 option_duration, offsetof(struct plan_options, duration), "a time, such as 15s"},
	{0},
};

static nsec_t gcd(nsec_t a, nsec_t b) {
	while (b) {
		nsec_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The least common multiple of the periods. Return: 0 or -ERANGE: more than a day. */
static int hyperperiod(const struct scenario *s, nsec_t *ret) {
	nsec_t h = 1;

	for (size_t i = 0; i < s->n_tasks; i++) {
		if (s->tasks[i].period == 0) {
			continue;
		}
		if (__builtin_mul_overflow(h / gcd(h, s->tasks[i].period), s->tasks[i].period,
					   &h) ||
		    h > SIM_DURATION_MAX) {
			return -ERANGE;
		}
	}
	*ret = h;
	return 0;
}

/* From the largest offset on the releases repeat every hyperperiod; a second one shows what the
 * first leaves behind. Jobs of tasks without a period have ended by their deadline or never. */
static int window(const struct scenario *s, nsec_t *ret) {
	nsec_t h = 0, offset = 0, end = 0;

	if (hyperperiod(s, &h) < 0) {
		return -ERANGE;
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sched_task *t = &s->tasks[i];

		offset = t->first_release > offset ? t->first_release : offset;
		end = t->first_release + t->deadline > end ? t->first_release + t->deadline : end;
	}
	end = offset + 2 * h > end ? offset + 2 * h : end;
	*ret = end;
	return end > SIM_DURATION_MAX ? -ERANGE : 0;
}

static bool in_time(const struct sim_task_result *t) {
	return t->count.missed == 0;
}

/* Whether there is something to be in time for. */
static bool is_timed(const struct sched_task *t) {
	return t->period > 0 || t->deadline > 0;
}

static bool has_timed(const struct scenario *s) {
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (is_timed(&s->tasks[i])) {
			return true;
		}
	}
	return false;
}

static json_t *plan_json(const struct ctl *ctl, const struct scenario *s,
			 const struct simulation *sim) {
	json_t *o = simulation_json(sim, s), *verdicts = json_array();
	bool all = true;

	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sim_task_result *t = &sim->result.tasks[i];

		all &= in_time(t);
		json_array_append_new(
			verdicts,
			json_pack("{s:o, s:o, s:b}", "task", json_text(s->task_names[i]), "home",
				  t->home < 0 ? json_null() : json_text(s->gpus[t->home].name),
				  "in_time", in_time(t)));
	}
	json_object_set_new(o, "scenario", json_text(ctl->args[0]));
	json_object_set_new(o, "duration_ns", json_u64(sim->duration));
	json_object_set_new(o, "in_time", json_boolean(all));
	json_object_set_new(o, "verdicts", verdicts);
	return o;
}

/* Utilisation and SM count of least energy on the task's home. */
static void add_home(struct table *t, const struct scenario *s, size_t task, int home) {
	const struct sched_task *task_of = &s->tasks[task];
	const struct profile_table *p = home < 0 ? NULL : task_of->profiles[home];
	const struct sched_gpu_model *model;
	unsigned m;

	if (!p) {
		table_text(t, NULL);
		table_text(t, NULL);
		table_text(t, NULL);
		return;
	}
	model = &s->gpus[home].model;
	m = profile_m_opt(p, &model->power, model->limit, model->step);
	table_text(t, s->gpus[home].name);
	table_number(t, m);
	if (task_of->period) {
		nsec_t permille = profile_total(p, m) * 1000 / task_of->period;

		table_value(t, (int64_t)permille, "%u.%03u", (unsigned)(permille / 1000),
			    (unsigned)(permille % 1000));
	} else {
		table_text(t, NULL);
	}
}

static int print_table(const struct ctl *ctl, const struct scenario *s,
		       const struct simulation *sim) {
	static const struct table_column columns[] = {
		{"task", "TASK", .elastic = true},   {"home", "HOME"},
		{"m_opt", "M OPT", .right = true},   {"utilisation", "U", .right = true},
		{"period", "PERIOD", .right = true}, {"deadline", "DEADLINE", .right = true},
		{"max", "MAX RESP", .right = true},  {"jobs", "JOBS", .right = true},
		{"missed", "MISSED", .right = true}, {"verdict", "VERDICT"},
	};
	struct table *t;
	int r;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot show the plan: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sim_task_result *task = &sim->result.tasks[i];

		table_text(t, s->task_names[i]);
		add_home(t, s, i, task->home);
		table_time_known(t, s->tasks[i].period);
		table_time_known(t, s->tasks[i].deadline);
		table_time_known(t, task->response.max);
		table_number(t, (int64_t)task->count.released);
		table_number(t, (int64_t)task->count.missed);
		table_text(t, !is_timed(&s->tasks[i]) ? "no deadline"
			      : in_time(task)	      ? "in time"
						      : "late");
	}
	r = listing_print(ctl, t, "the plan");
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (!ctl->common.no_legend) {
		char text[32];

		units_print_nsec(sim->duration, text, sizeof(text));
		printf("%s over %s: %s.\n", sim->policy->name, text,
		       sim->result.count.missed ? "some jobs are late" : "all jobs in time");
	}
	return CTL_EXIT_OK;
}

/* Exit code 3 tells scripts that something is late. */
static int report(const struct ctl *ctl, const struct scenario *s, const struct simulation *sim) {
	int r;

	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, plan_json(ctl, s, sim));
	} else {
		r = print_table(ctl, s, sim);
	}
	return r == CTL_EXIT_OK && sim->result.count.missed ? CTL_EXIT_NOT_RUNNING : r;
}

static int choose(const struct ctl *ctl, const struct scenario *s, struct simulation *sim) {
	const struct plan_options *o = ctl->options;
	const struct sched_policy *policies[SELECT_MAX];
	size_t n = 0;
	int r = select_policies(&o->policies, policies, &n);

	if (r == CTL_EXIT_OK && n > 1) {
		ctl_error("a plan has one policy");
		r = CTL_EXIT_USAGE;
	}
	if (r == CTL_EXIT_OK) {
		r = select_params(&o->params, &sim->params);
	}
	if (r != CTL_EXIT_OK) {
		return r;
	}
	sim->policy = policies[0];
	if (o->policies.n == 0 && sched_policy_find("sbeet-mg")) {
		sim->policy = sched_policy_find("sbeet-mg");
	}
	sim->duration = o->duration;
	if (sim->duration == 0 && window(s, &sim->duration) < 0) {
		ctl_error(
			"the periods of '%s' repeat only after more than a day; say how far to "
			"look with --duration",
			ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

static int run(const struct ctl *ctl, const struct scenario *s) {
	struct simulation sim = {0};
	int r = choose(ctl, s, &sim);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	r = simulation_run(&sim, s);
	if (r == -E2BIG) {
		ctl_error(
			"cannot plan '%s': more than %u jobs until the releases repeat; say how "
			"far to look with --duration",
			ctl->args[0], SIM_JOBS_MAX);
		return CTL_EXIT_FAILED;
	}
	if (r < 0) {
		ctl_error("cannot plan '%s': %s", ctl->args[0], strerror(-r));
		return CTL_EXIT_FAILED;
	}
	r = report(ctl, s, &sim);
	simulation_deinit(&sim);
	return r;
}

static int plan(const struct ctl *ctl) {
	struct scenario s;
	char error[1024];
	int r;

	if (scenario_file_init(&s, ctl->args[0], error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	if (s.n_tasks == 0) {
		ctl_error("nothing to plan: '%s' has no tasks", ctl->args[0]);
		r = CTL_EXIT_FAILED;
	} else if (!has_timed(&s)) {
		ctl_error(
			"nothing to plan: no task of '%s' has a period or a deadline; 'sbeetctl "
			"simulate' shows how long they take",
			ctl->args[0]);
		r = CTL_EXIT_FAILED;
	} else {
		r = run(ctl, &s);
	}
	scenario_deinit(&s);
	return r;
}

const struct verb verb_plan = {
	.name = "plan",
	.args = "SCENARIO.json",
	.summary = "distribute tasks over GPUs and tell which are always in time",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.options = plan_options,
	.options_size = sizeof(struct plan_options),
	.help = "Exit code 3: some jobs are late.\n",
	.function = plan,
};
