/* simulation.c: see simulation.h. */
#include "client/sim/simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "client/base/json.h"
#include "client/sim/simulated.h"

struct collector {
	struct simulation *s;
	size_t allocated;
	bool failed;
};

static void collect(void *userdata, const struct sim_segment *segment) {
	struct collector *c = userdata;
	struct simulation *s = c->s;

	if (s->n_segments == c->allocated) {
		size_t n = c->allocated ? 2 * c->allocated : 256;
		struct sim_segment *segments = reallocarray(s->segments, n, sizeof(*segments));

		if (!segments) {
			c->failed = true;
			return;
		}
		s->segments = segments;
		c->allocated = n;
	}
	s->segments[s->n_segments++] = *segment;
}

static bool pass_boundary(void *userdata, const struct sim_boundary *boundary) {
	struct collector *c = userdata;

	return c->s->on_boundary(c->s->userdata, boundary);
}

static void collect_decision(void *userdata, const struct explain_entry *entry) {
	struct collector *c = userdata;

	c->s->explained[c->s->n_explained++] = *entry;
}

/* CPU time: what else the machine does is not the policy's cost. */
static nsec_t cpu_time(void *userdata) {
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return nsec_from_timespec(t);
}

int simulation_run(struct simulation *s, const struct scenario *scenario) {
	struct collector c = {.s = s};
	struct sched_gpu_model models[SCHED_GPUS_MAX];
	struct sim_setup setup = {
		.gpus = models,
		.n_gpus = scenario->n_gpus,
		.tasks = scenario->tasks,
		.n_tasks = scenario->n_tasks,
		.moves = s->stays ? scenario->task_moves : NULL,
		.duration = s->duration,
		.seed = s->seed,
		.on_segment = collect,
		.boundary = s->boundary,
		.hyperperiod = s->hyperperiod,
		.on_boundary = pass_boundary,
		.n_explain = s->n_explain,
		.on_explained = collect_decision,
		.clock = cpu_time,
		.userdata = &c,
	};
	int r;

	for (size_t k = 0; k < scenario->n_gpus; k++) {
		models[k] = scenario->gpus[k].model;
	}
	simulated_setup(s->policy, &s->params, &setup);
	s->segments = NULL;
	s->n_segments = 0;
	s->explained = calloc(s->n_explain + 1, sizeof(*s->explained));
	s->n_explained = 0;
	if (!s->explained) {
		return -ENOMEM;
	}
	r = sim_run(&setup, &s->result);
	if (r == 0 && c.failed) {
		sim_result_deinit(&s->result);
		r = -ENOMEM;
	}
	if (r < 0) {
		free(s->segments);
		free(s->explained);
		s->segments = NULL;
		s->explained = NULL;
		s->n_segments = s->n_explained = 0;
	}
	return r;
}

void simulation_deinit(struct simulation *s) {
	sim_result_deinit(&s->result);
	free(s->segments);
	free(s->explained);
	*s = (struct simulation){0};
}

static json_t *ratio_json(const struct sim_count *count) {
	return json_real(sim_miss_ppm(count) / 1000000.0);
}

static json_t *joules(uint64_t pj) {
	return json_real((double)pj / POWER_PJ_PER_J);
}

static json_t *count_json(const struct sim_count *count) {
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "released", json_u64(count->released),
			 "completed", json_u64(count->completed), "missed", json_u64(count->missed),
			 "open", json_u64(count->open), "miss_ratio", ratio_json(count));
}

static json_t *task_json(const struct scenario *scenario, const struct sim_task_result *t,
			 size_t index) {
	json_t *o = count_json(&t->count);

	json_object_set_new(o, "task", json_text(scenario->task_names[index]));
	json_object_set_new(o, "home",
			    t->home < 0 ? json_null() : json_text(scenario->gpus[t->home].name));
	json_object_set_new(
		o, "response_ns",
		t->count.completed == 0
			? json_null()
			: json_pack("{s:o, s:o, s:o, s:o}", "min", json_u64(t->response.min),
				    "mean", json_u64(t->response.mean), "p99",
				    json_u64(t->response.p99), "max", json_u64(t->response.max)));
	json_object_set_new(o, "lateness_max_ns",
			    t->lateness_max == INT64_MIN ? json_null()
							 : json_integer(t->lateness_max));
	return o;
}

static json_t *segment_json(const struct scenario *scenario, const struct sim_segment *s) {
	char sms[SMSET_TEXT_MAX];

	smset_print(&s->sms, sms, sizeof(sms));
	return json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu",
			 json_text(scenario->gpus[s->gpu].name), "sms", sms, "n_sms",
			 (int)smset_count(&s->sms), "task",
			 json_text(scenario->task_names[s->task]), "job", json_u64(s->job),
			 "start_ns", json_u64(s->start), "end_ns", json_u64(s->end),
			 "kernel_start_ns", json_u64(s->kernel_start), "kernel_end_ns",
			 json_u64(s->kernel_end));
}

struct decision simulation_decision(const struct simulation *s, const struct scenario *scenario,
				    const char *const *gpu_names, size_t i, char job[static 96]) {
	const struct explain_entry *e = &s->explained[i];

	snprintf(job, 96, "%s.%llu", scenario->task_names[e->owner - 1],
		 (unsigned long long)e->tag);
	return (struct decision){.job = job,
				 .reason = explain_reason_name(e->reason),
				 .text = explain_reason_text(e->reason),
				 .gpu_names = gpu_names,
				 .entry = e,
				 .absolute = true};
}

static json_t *decisions_json(const struct simulation *s, const struct scenario *scenario) {
	const char *gpus[SCHED_GPUS_MAX];
	json_t *list = json_array();

	for (size_t k = 0; k < scenario->n_gpus; k++) {
		gpus[k] = scenario->gpus[k].name;
	}
	for (size_t i = 0; i < s->n_explained; i++) {
		char job[96];
		struct decision d = simulation_decision(s, scenario, gpus, i, job);
		json_t *o;

		d.task = scenario->task_names[s->explained[i].owner - 1];
		o = decision_json(&d);
		if (json_array_append_new(list, o) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *simulation_json(const struct simulation *s, const struct scenario *scenario) {
	const struct sim_result *r = &s->result;
	json_t *gpus = json_array(), *tasks = json_array(), *segments = json_array();
	json_t *o = count_json(&r->count);

	for (size_t k = 0; k < scenario->n_gpus; k++) {
		json_array_append_new(gpus, json_pack("{s:o, s:o, s:o}", "gpu",
						      json_text(scenario->gpus[k].name), "energy_j",
						      joules(r->energy_pj[k]), "active_ns",
						      json_u64(r->active[k])));
	}
	for (size_t i = 0; i < r->n_tasks; i++) {
		json_array_append_new(tasks, task_json(scenario, &r->tasks[i], i));
	}
	for (size_t i = 0; i < s->n_segments; i++) {
		json_array_append_new(segments, segment_json(scenario, &s->segments[i]));
	}
	json_object_set_new(o, "policy", json_text(s->policy->name));
	json_object_set_new(o, "params", params_json(&s->params));
	json_object_set_new(o, "energy_j", joules(r->energy_total_pj));
	json_object_set_new(o, "gpus", gpus);
	json_object_set_new(o, "tasks", tasks);
	json_object_set_new(o, "decisions", json_u64(r->decisions));
	json_object_set_new(o, "grants", json_u64(r->grants));
	json_object_set_new(o, "decision_cost_ns",
			    json_pack("{s:o, s:o, s:o, s:o}", "mean",
				      json_u64(r->decisions ? r->cost.total / r->decisions : 0),
				      "p50", json_u64(r->cost.p50), "p99", json_u64(r->cost.p99),
				      "max", json_u64(r->cost.max)));
	json_object_set_new(o, "segments", segments);
	if (s->n_explain > 0) {
		json_object_set_new(o, "explained", decisions_json(s, scenario));
	}
	return o;
}
