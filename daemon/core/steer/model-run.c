/*
 * model-run.c: see model-run.h.
 */
#include "daemon/core/steer/model-run.h"

#include <assert.h>

struct run {
	const struct model_task *tasks;
	const struct model_wake *wake;
	nsec_t releases[MODEL_TASKS_MAX]; /* of the open job, or of the next one */
	nsec_t begins[MODEL_TASKS_MAX];	  /* the next one; UINT64_MAX: one is open */
	struct model model;
	uint64_t random;
	unsigned missed; /* so far */
	struct model_result *results;
};

uint64_t model_random(uint64_t *state, uint64_t below) {
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (*state >> 33) % below : 0;
}

static nsec_t draw(struct run *r, nsec_t below) {
	return model_random(&r->random, below);
}

static void job_begins(struct run *r, unsigned task, nsec_t now) {
	nsec_t wake = 0;

	/* A job that could not begin at its release has woken up long ago, and who always has work
	 * does not sleep. */
	if (r->releases[task] == now && r->tasks[task].period) {
		wake = r->wake->min + draw(r, r->wake->max - r->wake->min + 1);
	}
	r->begins[task] = UINT64_MAX;
	model_begin(&r->model, task, now, r->releases[task], wake, 1);
}

static void job_ends(struct run *r, unsigned task, nsec_t now) {
	nsec_t response = now - r->releases[task], deadline = r->tasks[task].deadline;
	struct model_result *result = &r->results[task];

	result->done++;
	result->response += response;
	result->longest = response > result->longest ? response : result->longest;
	if (deadline && response > deadline) {
		nsec_t late = response - deadline;

		result->missed++;
		r->missed++;
		result->tardiness += late < deadline ? late : deadline;
	}
	r->releases[task] = r->tasks[task].period ? r->releases[task] + r->tasks[task].period : now;
	r->begins[task] = r->releases[task] > now ? r->releases[task] : now;
}

static nsec_t next_event(const struct run *r) {
	nsec_t next = model_next(&r->model);

	for (unsigned i = 0; i < r->model.n; i++) {
		next = r->begins[i] < next ? r->begins[i] : next;
	}
	return next;
}

/* What was released and could be seen to the end, and what of it never ended. */
static void count(struct run *r, nsec_t time) {
	for (unsigned i = 0; i < r->model.n; i++) {
		const struct model_task *task = &r->tasks[i];
		struct model_result *result = &r->results[i];
		nsec_t release = r->releases[i];

		result->released = result->done;
		if (task->deadline && release + task->deadline <= time) {
			nsec_t left = time - release - task->deadline;
			unsigned never = 1 + (unsigned)(task->period ? left / task->period : 0);

			result->released += never;
			result->missed += never;
			result->tardiness += never * task->deadline;
		}
	}
}

static void moment(struct run *r, nsec_t now) {
	uint32_t ended;

	for (unsigned i = 0; i < r->model.n; i++) {
		if (r->begins[i] == now) {
			job_begins(r, i, now);
		}
	}
	ended = model_advance(&r->model, now);
	for (unsigned i = 0; ended && i < r->model.n; i++) {
		if (ended & 1u << i) {
			job_ends(r, i, now);
		}
	}
}

/* Whether it has to end here; else one more event is counted. */
static bool is_spent(const struct run *r, struct model_limit *limit) {
	if (!limit) {
		return false;
	}
	if (limit->events == 0 || r->missed >= limit->missed) {
		return true;
	}
	limit->events--;
	return false;
}

nsec_t model_run(const struct model_gpu *gpu, const struct model_wake *wake,
		 const struct model_task *tasks, const struct model_place *places, unsigned n,
		 nsec_t time, uint64_t seed, struct model_limit *limit, struct model_result *ret) {
	struct run r = {.tasks = tasks, .wake = wake, .random = seed, .results = ret};

	model_init(&r.model, gpu, tasks, places, n);
	for (unsigned i = 0; i < n; i++) {
		r.releases[i] = draw(&r, tasks[i].period ? tasks[i].period : 1) + 1;
		r.begins[i] = r.releases[i];
		ret[i] = (struct model_result){0};
	}
	for (nsec_t now = next_event(&r); now < time; now = next_event(&r)) {
		if (is_spent(&r, limit)) {
			time = now;
			break;
		}
		moment(&r, now);
	}
	count(&r, time);
	return time;
}

void model_result_add(struct model_result *sum, const struct model_result *one) {
	sum->released += one->released;
	sum->missed += one->missed;
	sum->done += one->done;
	sum->response += one->response;
	sum->tardiness += one->tardiness;
	sum->longest = one->longest > sum->longest ? one->longest : sum->longest;
}

double model_result_late(const struct model_result *result) {
	return result->released ? (double)result->missed / result->released : 0;
}

struct model_result model_result_sum(const struct model_result *results, unsigned n) {
	struct model_result sum = {0};

	for (unsigned i = 0; i < n; i++) {
		model_result_add(&sum, &results[i]);
	}
	return sum;
}

unsigned model_level(const struct model_task *tasks, unsigned n, unsigned task) {
	nsec_t deadline = tasks[task].deadline;
	unsigned rank = 0;

	for (unsigned i = 0; i < n; i++) {
		nsec_t other = tasks[i].deadline;

		rank += other && (other < deadline || (other == deadline && i < task));
	}
	return deadline && rank < PROTO_TERMS_LEVEL_MAX ? PROTO_TERMS_LEVEL_MAX - rank : 0;
}

double model_worse(const double *part, const double *alone, unsigned n, double jobs) {
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += part[i] > alone[i] ? part[i] - alone[i] : 0;
	}
	return sum * jobs / n;
}
