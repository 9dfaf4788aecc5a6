/*
 * control-history.c: see control-history.h.
 */
#include "daemon/control/control-history.h"

#include <stdio.h>
#include <string.h>

#include "daemon/control/answer.h"
#include "daemon/session/session.h"
#include "daemon/watch/history.h"

/* In one packet, each of at most 6 KiB; and looked at for one. */
#define RUNS_PER_PACKET	 4
#define PLACES_PER_PIECE 64

struct batch {
	Sbeet__Control__History history;
	Sbeet__Control__Run runs[RUNS_PER_PACKET], *run_pointers[RUNS_PER_PACKET];
	Sbeet__Control__Bucket buckets[RUNS_PER_PACKET][HISTOGRAM_BUCKETS],
		*bucket_pointers[RUNS_PER_PACKET][HISTOGRAM_BUCKETS];
};

static void fill_responses(const struct histogram *h, Sbeet__Control__Bucket *list,
			   Sbeet__Control__Bucket **pointers, Sbeet__Control__Run *ret) {
	ret->responses = pointers;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		size_t n = ret->n_responses;

		if (h->counts[i] > 0) {
			sbeet__control__bucket__init(&list[n]);
			list[n].index = (uint32_t)i;
			list[n].count = h->counts[i];
			pointers[n] = &list[n];
			ret->n_responses++;
		}
	}
}

static void fill_run(const struct history_run *run, Sbeet__Control__Run *ret) {
	sbeet__control__run__init(ret);
	ret->number = run->number;
	ret->task = (char *)run->task;
	ret->program = (char *)run->program;
	ret->pid = run->pid;
	ret->uid = run->uid;
	ret->task_class = (Sbeet__TaskClass)run->task_class;
	ret->period_ns = run->period;
	ret->deadline_ns = run->deadline;
	ret->started_ns = (uint64_t)run->started;
	ret->ended_ns = run->end == HISTORY_END_NONE ? 0 : (uint64_t)run->ended;
	ret->ended = (char *)history_end_name(run->end);
	ret->jobs = run->jobs;
	ret->misses = run->misses;
	ret->abandoned = run->abandoned;
	ret->launches = run->launches;
	ret->gpu_ns = run->gpu;
	ret->energy_mj = run->energy_mj;
	ret->responses_ns = run->responses;
	ret->max_response_ns = run->max_response;
	ret->started_late_ns = run->started_late;
	ret->max_started_late_ns = run->max_started_late;
	ret->waits_ns = run->waits;
	ret->max_wait_ns = run->max_wait;
	ret->restarted = run->restarted;
	ret->gpus = run->gpus;
	ret->jobs_within_period = run->within_period;
}

static bool is_wanted(const struct answer *a, const struct history_run *run) {
	return run->number > 0 && run->number < a->end &&
	       (!*a->task || strcmp(a->task, run->task) == 0) &&
	       (!*a->run || strcmp(a->run, run->run) == 0);
}

static uint32_t count_connected(const struct sessions *all, const char *run) {
	const struct session *s;
	uint32_t n = 0;

	TAILQ_FOREACH(s, &all->list, link) {
		n += *run && strcmp(s->run, run) == 0;
	}
	return n;
}

/* The next places. */
static bool step(struct control_client *client, struct answer *a) {
	const struct history *history = client->control->history;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	struct batch b;

	sbeet__control__history__init(&b.history);
	b.history.runs = b.run_pointers;
	for (int i = 0;
	     i < PLACES_PER_PIECE && b.history.n_runs < RUNS_PER_PACKET && a->next < HISTORY_RUNS;
	     i++) {
		const struct history_run *run = &history->runs[a->next++];

		if (is_wanted(a, run)) {
			size_t n = b.history.n_runs++;

			fill_run(run, &b.runs[n]);
			fill_responses(&run->response, b.buckets[n], b.bucket_pointers[n],
				       &b.runs[n]);
			b.run_pointers[n] = &b.runs[n];
		}
	}
	if (a->next == HISTORY_RUNS) {
		b.history.connected = a->n_connected;
		reply.last = true;
	}
	if (reply.last || b.history.n_runs > 0) {
		reply.id = a->id;
		reply.body_case = SBEET__CONTROL__REPLY__BODY_HISTORY;
		reply.history = &b.history;
		control_client_send(client, &reply);
	}
	return reply.last;
}

void control_history(struct control_client *client, const Sbeet__Control__Request *request) {
	struct answer *a = &client->answer;

	a->next = 0;
	a->end = client->control->history->next_number;
	snprintf(a->task, sizeof(a->task), "%s", request->history->task);
	snprintf(a->run, sizeof(a->run), "%s", request->history->run);
	/* First: of those that are not connected any more the runs are told as ended. */
	a->n_connected = count_connected(client->control->sessions, a->run);
	answer_begin(client, request->id, client->control->now(), step);
}
