/* plan.c: see plan.h. */
#include "client/sim/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/sim/plan-table.h"
#include "client/sim/planning.h"
#include "daemon/sim/shared.h"

static bool has_timed(const struct scenario *s) {
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (planning_is_timed(&s->tasks[i])) {
			return true;
		}
	}
	return false;
}

/* For readers of "in_time" alone: "not known" is not in time either. */
static bool may_be_late(enum planning_verdict v) {
	return v == PLANNING_LATE || v == PLANNING_NOT_KNOWN;
}

static json_t *plan_json(const struct ctl *ctl, const struct scenario *s,
			 const struct planning *p) {
	json_t *o = simulation_json(&p->sim, s), *verdicts = json_array();

	for (size_t i = 0; i < s->n_tasks; i++) {
		const struct sim_task_result *t = &p->sim.result.tasks[i];

		json_array_append_new(
			verdicts,
			json_pack("{s:o, s:o, s:b, s:s}", "task", json_text(s->task_names[i]),
				  "home",
				  t->home < 0 ? json_null() : json_text(s->gpus[t->home].name),
				  "in_time", !may_be_late(p->each[i]), "verdict",
				  planning_verdict_text(p->each[i])));
	}
	json_object_set_new(o, "scenario", json_text(ctl->args[0]));
	json_object_set_new(o, "duration_ns", json_u64(p->sim.result.end));
	json_object_set_new(o, "in_time", json_boolean(!may_be_late(p->all)));
	json_object_set_new(o, "verdict", json_string(planning_verdict_text(p->all)));
	json_object_set_new(o, "repeats", json_boolean(p->repeats));
	json_object_set_new(o, "verdicts", verdicts);
	return o;
}

/* Utilisation and SM count of least energy on the task's home. */
static void add_home(struct table *t, const struct planning *plan, const struct scenario *s,
		     size_t task) {
	int home = plan->sim.result.tasks[task].home;
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
	m = profile_m_opt(p, &model->power, sched_drawn_copies(&plan->sim.params.sched, p),
			  model->limit, model->step);
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

/* Of all tasks together. */
static const char *summary_of(const struct planning *p) {
	switch (p->all) {
	case PLANNING_IN_TIME:
		return p->table ? "all jobs are always in time by this table"
				: "all jobs are always in time, and with shorter times, too";
	case PLANNING_LATE:
		return "some jobs are late";
	default:
		return p->repeats
			       ? "no job is late if all take their longest times; whether some are "
				 "late if others take less is not known ('--table' keeps to this "
				 "schedule)"
			       : "no job is late, but the schedule does not repeat itself, so it "
				 "is not known whether later jobs are";
	}
}

static void print_summary(const struct planning *p) {
	char text[32];

	units_print_nsec(p->sim.result.end, text, sizeof(text));
	printf("%s over %s: %s.\n", p->sim.policy->name, text, summary_of(p));
}

static int print_table(const struct ctl *ctl, const struct scenario *s, const struct planning *p) {
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
		const struct sim_task_result *task = &p->sim.result.tasks[i];

		table_text(t, s->task_names[i]);
		add_home(t, p, s, i);
		table_time_known(t, s->tasks[i].period);
		table_time_known(t, s->tasks[i].deadline);
		table_time_known(t, task->response.max);
		table_number(t, (int64_t)task->count.released);
		table_number(t, (int64_t)task->count.missed);
		table_text(t, planning_verdict_text(p->each[i]));
	}
	r = listing_print(ctl, t, "the plan");
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (!ctl->common.no_legend) {
		print_summary(p);
	}
	return CTL_EXIT_OK;
}

/* Exit codes of their own tell scripts that something is late, or may be. */
static int report(const struct ctl *ctl, const struct scenario *s, const struct planning *p) {
	int r;

	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, plan_json(ctl, s, p));
	} else {
		r = print_table(ctl, s, p);
	}
	return r != CTL_EXIT_OK		      ? r
	       : p->all == PLANNING_LATE      ? CTL_EXIT_NOT_RUNNING
	       : p->all == PLANNING_NOT_KNOWN ? CTL_EXIT_NOT_KNOWN
					      : CTL_EXIT_OK;
}

static int choose(const struct ctl *ctl, struct simulation *sim) {
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
	return CTL_EXIT_OK;
}

int plan_scenario(const struct ctl *ctl, const struct scenario *s) {
	struct planning p = {0};
	int r;

	if (s->n_tasks == 0) {
		ctl_error("nothing to plan: '%s' has no tasks", ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	if (!has_timed(s)) {
		ctl_error(
			"nothing to plan: no task of '%s' has a period or a deadline; 'sbeetctl "
			"simulate' shows how long they take",
			ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	p.table = ((const struct plan_options *)ctl->options)->table != NULL;
	r = choose(ctl, &p.sim);
	if (r != CTL_EXIT_OK) {
		return r;
	}
	r = planning_run(&p, s);
	if (r == -ERANGE) {
		ctl_error(
			"the periods of '%s' repeat only after more than half a day; say how far "
			"to "
			"look with --duration",
			ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	if (r == -E2BIG) {
		ctl_error(
			"cannot plan '%s': more than %u jobs until the releases repeat; say how "
			"far to look with --duration",
			ctl->args[0], SIM_JOBS_MAX);
		return CTL_EXIT_FAILED;
	}
	if (r == -EUSERS) {
		ctl_error("cannot plan '%s' under '%s': more than %d tasks on one GPU",
			  ctl->args[0], p.sim.policy->name, SIM_SHARED_TASKS_MAX);
		return CTL_EXIT_FAILED;
	}
	if (r < 0) {
		ctl_error("cannot plan '%s': %s", ctl->args[0], strerror(-r));
		return CTL_EXIT_FAILED;
	}
	if (p.table && p.all == PLANNING_IN_TIME) {
		r = plan_table_write(s, &p, ((const struct plan_options *)ctl->options)->table);
	}
	r = r == CTL_EXIT_OK ? report(ctl, s, &p) : r;
	planning_deinit(&p);
	return r;
}
