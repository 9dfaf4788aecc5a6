/* runs.c: see runs.h. */
#include "client/live/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/ctl.h"
#include "client/base/json.h"

uint64_t runs_now(void) {
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return nsec_from_timespec(t);
}

static void read_run(const Sbeet__Control__Run *m, struct run *ret) {
	*ret = (struct run){
		.number = m->number,
		.jobs = m->jobs,
		.misses = m->misses,
		.within_period = m->jobs_within_period,
		.abandoned = m->abandoned,
		.launches = m->launches,
		.energy_mj = m->energy_mj,
		.started_ns = m->started_ns,
		.ended_ns = m->ended_ns,
		.period = m->period_ns,
		.deadline = m->deadline_ns,
		.gpu = m->gpu_ns,
		.responses = m->responses_ns,
		.started_late = m->started_late_ns,
		.waits = m->waits_ns,
		.max_response = m->max_response_ns,
		.max_started_late = m->max_started_late_ns,
		.max_wait = m->max_wait_ns,
		.pid = m->pid,
		.uid = m->uid,
		.gpus = m->gpus,
		.n_processes = 1,
		.realtime = m->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME,
		.restarted = m->restarted,
	};
	snprintf(ret->task, sizeof(ret->task), "%s", m->task);
	snprintf(ret->program, sizeof(ret->program), "%s", m->program);
	snprintf(ret->ended, sizeof(ret->ended), "%s", *m->ended ? m->ended : "running");
	for (size_t i = 0; i < m->n_responses; i++) {
		histogram_add(&ret->response, m->responses[i]->index, m->responses[i]->count);
	}
}

static int compare(const void *a, const void *b) {
	const struct run *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Return: whether there was memory for them. */
static bool collect(const struct control_answer *a, struct runs *ret) {
	size_t n = 0;

	for (size_t i = 0; i < a->n_replies; i++) {
		n += a->replies[i]->body_case == SBEET__CONTROL__REPLY__BODY_HISTORY
			     ? a->replies[i]->history->n_runs
			     : 0;
	}
	*ret = (struct runs){.list = calloc(n + 1, sizeof(*ret->list))};
	for (size_t i = 0; ret->list && i < a->n_replies; i++) {
		const Sbeet__Control__Reply *reply = a->replies[i];

		if (reply->body_case != SBEET__CONTROL__REPLY__BODY_HISTORY) {
			continue;
		}
		for (size_t k = 0; k < reply->history->n_runs; k++) {
			read_run(reply->history->runs[k], &ret->list[ret->n++]);
		}
		ret->n_connected += reply->history->connected;
	}
	return ret->list != NULL;
}

int runs_ask(struct control *c, const char *task, const char *run, struct runs *ret, char *error,
	     size_t error_size) {
	Sbeet__Control__HistoryRequest body = SBEET__CONTROL__HISTORY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct control_answer answer;
	bool collected;
	int r;

	body.task = (char *)task;
	body.run = (char *)run;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_HISTORY;
	request.history = &body;
	r = control_call(c, &request, &answer, error, error_size);
	if (r != 0) {
		return r;
	}
	collected = collect(&answer, ret);
	control_answer_deinit(&answer);
	if (!collected) {
		snprintf(error, error_size, "cannot keep the history: out of memory");
		return CTL_EXIT_FAILED;
	}
	qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return 0;
}

void runs_deinit(struct runs *runs) {
	free(runs->list);
	*runs = (struct runs){0};
}

static uint64_t larger(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

static void merge(struct run *into, const struct run *from) {
	into->jobs += from->jobs;
	into->misses += from->misses;
	into->within_period += from->within_period;
	into->abandoned += from->abandoned;
	into->launches += from->launches;
	into->energy_mj += from->energy_mj;
	into->gpu += from->gpu;
	into->responses += from->responses;
	into->started_late += from->started_late;
	into->waits += from->waits;
	into->max_response = larger(into->max_response, from->max_response);
	into->max_started_late = larger(into->max_started_late, from->max_started_late);
	into->max_wait = larger(into->max_wait, from->max_wait);
	into->restarted |= from->restarted;
	into->gpus |= from->gpus;
	into->n_processes += from->n_processes;
	into->pid = 0;
	if (into->started_ns > from->started_ns) {
		into->started_ns = from->started_ns;
	}
	if (from->ended_ns == 0 || into->ended_ns == 0) {
		into->ended_ns = 0;
		snprintf(into->ended, sizeof(into->ended), "running");
	} else if (from->ended_ns > into->ended_ns) {
		into->ended_ns = from->ended_ns;
		memcpy(into->ended, from->ended, sizeof(into->ended));
	}
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		histogram_add(&into->response, i, from->response.counts[i]);
	}
}

void runs_merge_tasks(struct runs *runs) {
	size_t n = 0;

	for (size_t i = 0; i < runs->n; i++) {
		size_t k = 0;

		while (k < n && strcmp(runs->list[k].task, runs->list[i].task) != 0) {
			k++;
		}
		if (k < n) {
			merge(&runs->list[k], &runs->list[i]);
		} else if (n++ != i) {
			runs->list[k] = runs->list[i];
		}
	}
	runs->n = n;
}

nsec_t run_percentile(const struct run *run, unsigned percent) {
	nsec_t t = histogram_percentile(&run->response, percent);

	return t < run->max_response ? t : run->max_response;
}

bool runs_split_frames(uint64_t jobs, uint64_t within_period) {
	return within_period >= 3 && within_period >= jobs / 4;
}

nsec_t run_duration(const struct run *run, uint64_t now) {
	uint64_t end = run->ended_ns ? run->ended_ns : now;

	return end > run->started_ns ? end - run->started_ns : 0;
}

static json_t *mean_json(nsec_t sum, uint64_t n) {
	return n > 0 ? json_u64(sum / n) : json_null();
}

static json_t *percentile_json(const struct run *run, unsigned percent) {
	return run->jobs > 0 ? json_u64(run_percentile(run, percent)) : json_null();
}

static json_t *gpus_json(const struct run *run) {
	json_t *list = run->gpus ? json_array() : json_null();

	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		if (run->gpus >> i & 1) {
			json_array_append_new(list, json_integer(i));
		}
	}
	return list;
}

json_t *run_json(const struct run *run, uint64_t now) {
	json_t *o = json_pack(
		"{s:o, s:o, s:o, s:I, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:b}", "task",
		json_text(run->task), "program", json_text(run->program), "pid",
		json_u64_known(run->pid), "uid", (json_int_t)run->uid, "processes",
		(int)run->n_processes, "class", run->realtime ? "realtime" : "best-effort",
		"period_ns", json_u64_known(run->period), "deadline_ns",
		json_u64_known(run->deadline), "started_ns", json_u64(run->started_ns), "ended_ns",
		json_u64_known(run->ended_ns), "duration_ns", json_u64(run_duration(run, now)),
		"ended", run->ended, "restarted", (int)run->restarted);
	json_t *figures = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o}",
		"jobs", json_u64(run->jobs), "misses", json_u64(run->misses), "jobs_within_period",
		json_u64(run->within_period), "abandoned", json_u64(run->abandoned), "launches",
		json_u64(run->launches), "mean_response_ns", mean_json(run->responses, run->jobs),
		"p50_response_ns", percentile_json(run, 50), "p90_response_ns",
		percentile_json(run, 90), "p99_response_ns", percentile_json(run, 99),
		"max_response_ns", json_u64_known(run->max_response), "mean_started_late_ns",
		mean_json(run->started_late, run->jobs), "max_started_late_ns",
		run->jobs ? json_u64(run->max_started_late) : json_null(), "mean_wait_ns",
		mean_json(run->waits, run->jobs), "max_wait_ns",
		run->jobs ? json_u64(run->max_wait) : json_null(), "gpu_ns", json_u64(run->gpu),
		"energy_j", run->energy_mj ? json_real((double)run->energy_mj / 1e3) : json_null(),
		"gpus", gpus_json(run));
	int r = o && figures ? json_object_update(o, figures) : -1;

	json_decref(figures);
	if (r < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}
