/* plan-cases.c: see plan-cases.h. */
#include "plan-cases.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MAX 7
#define SMS	  8

static const char *const policies[] = {"sbeet-mg",  "lookahead", "sbeet",     "sbeet-mg-offline",
				       "bfd-sbeet", "fcfs",	 "rm",	      "stgm",
				       "load-dist", "bcf",	 "wfd-sbeet", "lcf"};

static const unsigned periods_ms[] = {10, 12, 15, 20, 25, 30, 40, 50, 60};

static uint64_t pick(uint64_t *random, uint64_t low, uint64_t high) {
	return low + sim_random(random) % (high - low + 1);
}

static void set_params(struct planning *p, uint64_t seed) {
	struct params *params = &p->sim.params;

	params_default(params);
	params->sched.skip_hopeless = seed / 3 % 2;
	params->sched.free_at_kernel_end = seed / 5 % 4 == 0;
	params->sched.migration_cost = seed / 7 % 4 == 0 ? NSEC_PER_MSEC / 5 : 0;
	params->sched.reading = seed / 11 % 5 == 0 ? SCHED_READING_LITERAL : SCHED_READING_FIT;
	params->sched.queue = seed / 13 % 5 == 0 ? SCHED_QUEUE_PRIORITY : SCHED_QUEUE_EDF;
	params->sequential = seed / 17 % 3 == 0;
	params->overhead = seed / 19 % 4 == 0 ? NSEC_PER_MSEC / 10 : 0;
	p->sim.policy =
		sched_policy_find(policies[seed % (sizeof(policies) / sizeof(policies[0]))]);
}

/* One task of so many microseconds on all SMs of the first GPU, half of them copies at most. */
static void print_task(FILE *profiles, FILE *tasks, unsigned i, uint64_t g_us, unsigned period_ms,
		       bool two_gpus, uint64_t *random) {
	uint64_t copy = pick(random, 0, g_us / 5), work = (g_us - 2 * copy) * SMS;
	uint64_t period = (uint64_t)period_ms * 1000, deadline = pick(random, period / 2, period);

	fprintf(profiles,
		"%s{\"name\": \"p%u\", \"on\": {\"a\": {\"linear\": \"%" PRIu64
		"us\", \"copy_in\": \"%" PRIu64 "us\", \"copy_out\": \"%" PRIu64
		"us\", \"watts_per_sm\": %" PRIu64 "}",
		i ? ", " : "", i, work, copy, copy, pick(random, 1, 5));
	if (two_gpus) {
		fprintf(profiles,
			", \"b\": {\"linear\": \"%" PRIu64 "us\", \"watts_per_sm\": %" PRIu64 "}",
			work, pick(random, 1, 3));
	}
	fprintf(profiles, "}}");
	fprintf(tasks,
		"%s{\"name\": \"t%u\", \"profile\": \"p%u\", \"period\": \"%ums\", \"deadline\": "
		"\"%" PRIu64 "us\", \"offset\": \"%" PRIu64 "us\", \"priority\": %" PRIu64 "}",
		i ? ", " : "", i, i, period_ms, pick(random, 0, 1) ? period : deadline,
		pick(random, 0, period / 2), pick(random, 1, 9));
}

void plan_case_make(struct plan_case *ret, uint64_t seed, unsigned demand_permille) {
	uint64_t random = seed, left;
	unsigned n = (unsigned)pick(&random, 2, TASKS_MAX), n_gpus = (unsigned)pick(&random, 1, 2);
	char *profiles_text, *tasks_text, *text, error[256];
	size_t profiles_size, tasks_size;
	FILE *profiles = open_memstream(&profiles_text, &profiles_size);
	FILE *tasks = open_memstream(&tasks_text, &tasks_size);

	*ret = (struct plan_case){.hyperperiod = 600 * NSEC_PER_MSEC};
	left = (uint64_t)demand_permille * n_gpus;
	for (unsigned i = 0; i < n; i++) {
		unsigned period = periods_ms[pick(&random, 0, 8)];
		uint64_t most = 2 * left / (n - i),
			 share = i + 1 < n ? pick(&random, 1, most) : left;

		share = share > 950 ? 950 : share;
		left -= share < left ? share : left;
		print_task(profiles, tasks, i, share * period > 100 ? share * period : 100, period,
			   n_gpus > 1, &random);
	}
	fclose(profiles);
	fclose(tasks);
	if (asprintf(&text,
		     "{\"gpus\": [{\"name\": \"a\", \"sms\": %u, \"static_w\": 10, "
		     "\"idle_w_per_sm\": 0.5}%s], \"profiles\": [%s], \"tasks\": [%s]}",
		     SMS,
		     n_gpus > 1 ? ", {\"name\": \"b\", \"sms\": 6, \"static_w\": 5, "
				  "\"idle_w_per_sm\": 0.2}"
				: "",
		     profiles_text, tasks_text) < 0 ||
	    scenario_init(&ret->scenario, "case", text, strlen(text), NULL, NULL, error,
			  sizeof(error)) < 0) {
		fprintf(stderr, "case %" PRIu64 ": %s\n", seed, error);
		abort();
	}
	free(profiles_text);
	free(tasks_text);
	free(text);
	for (size_t i = 0; i < ret->scenario.n_tasks; i++) {
		nsec_t offset = ret->scenario.tasks[i].first_release;

		ret->offset = offset > ret->offset ? offset : ret->offset;
	}
	set_params(&ret->planning, seed);
}

void plan_case_deinit(struct plan_case *c) {
	planning_deinit(&c->planning);
	scenario_deinit(&c->scenario);
}

static uint64_t simulate(const struct plan_case *c, struct simulation *s) {
	uint64_t missed;

	if (simulation_run(s, &c->scenario) < 0) {
		abort();
	}
	missed = s->result.count.missed;
	simulation_deinit(s);
	return missed;
}

uint64_t plan_case_simulate(const struct plan_case *c, unsigned hyperperiods) {
	struct simulation s = {.policy = c->planning.sim.policy,
			       .params = c->planning.sim.params,
			       .stays = true,
			       .duration = c->offset + hyperperiods * c->hyperperiod};

	return simulate(c, &s);
}

uint64_t plan_case_vary(struct plan_case *c, uint64_t seed, unsigned hyperperiods) {
	uint64_t random = seed;
	struct simulation s = {.policy = c->planning.sim.policy,
			       .params = c->planning.sim.params,
			       .stays = pick(&random, 0, 3) > 0,
			       .duration = hyperperiods * c->hyperperiod,
			       .seed = seed};
	bool others = pick(&random, 0, 2) > 0;

	s.params.exec = SIM_EXEC_SHARE;
	s.params.exec_share_permille = (unsigned)pick(&random, 200, 1000);
	for (size_t i = 0; i < c->scenario.n_tasks; i++) {
		struct sched_task *task = &c->scenario.tasks[i];

		if (others) {
			task->first_release = pick(&random, 0, task->period - 1);
		}
		task->fixed_gpu = (int)pick(&random, 0, c->scenario.n_gpus - 1);
		task->fixed_sms = smset_range(0, 1);
	}
	return simulate(c, &s);
}

/* ---- tables ---- */

struct entry {
	size_t task;
	nsec_t start, length;
	unsigned gpu;
	struct smset sms;
};

static nsec_t time_of(const json_t *job, const char *key) {
	return (nsec_t)json_integer_value(json_object_get(job, key));
}

static struct entry read_entry(const struct plan_case *c, const json_t *job) {
	struct entry e = {.start = time_of(job, "start_ns"), .length = time_of(job, "length_ns")};
	const char *name = json_string_value(json_object_get(job, "task"));

	e.gpu = (unsigned)json_integer_value(json_object_get(job, "gpu"));
	if (smset_parse(json_string_value(json_object_get(job, "sms")), &e.sms) < 0) {
		abort();
	}
	while (strcmp(c->scenario.task_names[e.task], name) != 0) {
		e.task++;
	}
	return e;
}

/* Both have an SM at some time, in a schedule that repeats after @cycle. */
static bool collide(const struct entry *a, const struct entry *b, nsec_t cycle) {
	nsec_t a_to_b = (b->start + cycle - a->start) % cycle;
	nsec_t b_to_a = (a->start + cycle - b->start) % cycle;

	return a->gpu == b->gpu && !smset_disjoint(&a->sms, &b->sms) &&
	       (a_to_b < a->length || b_to_a < b->length);
}

static const char *check_entry(const struct plan_case *c, const struct entry *list, size_t n,
			       size_t i, nsec_t cycle) {
	const struct sched_task *task = &c->scenario.tasks[list[i].task];
	const struct profile_table *profile = task->profiles[list[i].gpu];

	for (size_t k = 0; k < n; k++) {
		if (k != i && collide(&list[i], &list[k], cycle)) {
			return "two jobs have an SM at the same time";
		}
		if (list[k].task == list[i].task && list[k].gpu != list[i].gpu) {
			return "a program would have to move";
		}
	}
	if (!profile || list[i].length < profile_total(profile, smset_count(&list[i].sms)) +
						 c->planning.sim.params.overhead) {
		return "a job may take longer than its entry";
	}
	return NULL;
}

/* The first start of the task at or after @release, the one that its program gets: when its entry
 * is over, counted from there. */
static nsec_t response_of(const struct entry *list, size_t n, size_t task, nsec_t release,
			  nsec_t cycle) {
	nsec_t least = UINT64_MAX, response = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		nsec_t wait = (list[i].start + cycle - release) % cycle;

		if (list[i].task == task && wait < least) {
			least = wait;
			response = wait + list[i].length;
		}
	}
	return response;
}

static const char *check_releases(const struct plan_case *c, const struct entry *list, size_t n,
				  size_t index, nsec_t cycle) {
	const struct sched_task *task = &c->scenario.tasks[index];

	for (uint64_t k = 0; k < cycle / task->period; k++) {
		nsec_t release = (task->first_release + k * task->period) % cycle;

		if (response_of(list, n, index, release, cycle) > task->deadline) {
			return "a job ends after its deadline";
		}
	}
	return cycle % task->period == 0 ? NULL : "releases do not repeat with it";
}

const char *plan_case_check_table(const struct plan_case *c, const char *path) {
	json_t *table = json_load_file(path, 0, NULL);
	const json_t *jobs = json_object_get(table, "jobs");
	nsec_t cycle = time_of(table, "hyperperiod_ns");
	size_t n = json_array_size(jobs);
	struct entry *list = calloc(n + 1, sizeof(*list));
	const char *fault = n == 0 ? "there is no table" : NULL;

	if (!list) {
		abort();
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = read_entry(c, json_array_get(jobs, i));
	}
	for (size_t i = 0; !fault && i < n; i++) {
		fault = check_entry(c, list, n, i, cycle);
	}
	for (size_t i = 0; !fault && i < c->scenario.n_tasks; i++) {
		fault = check_releases(c, list, n, i, cycle);
	}
	free(list);
	json_decref(table);
	return fault;
}
