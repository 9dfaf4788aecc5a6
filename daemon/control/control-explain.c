/*
 * control-explain.c: see control-explain.h.
 */
#include "daemon/control/control-explain.h"

#include "daemon/control/answer.h"
#include "daemon/core/explain.h"
#include "daemon/engine/engine.h"

/* Looked at in one piece; one with all that was tried takes some microseconds to pack. */
#define DECISIONS_PER_PIECE 8

static void fill_try(const struct explain_try *try, Sbeet__Control__Try *ret) {
	sbeet__control__try__init(ret);
	ret->wait = try->wait;
	ret->gpu = try->gpu;
	ret->sms = try->n_sms;
	ret->start_ns = try->start;
	ret->finish_ns = try->finish;
	ret->feasible = try->feasible;
	ret->loss = try->loss;
	ret->energy_pj = try->energy_pj;
	ret->chosen = try->chosen;
}

/* One packet with one decision: with all that was tried it is some kilobytes. */
static void send_decision(struct control_client *client, uint32_t id,
			  const struct explain_entry *e) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Explanation explanation = SBEET__CONTROL__EXPLANATION__INIT;
	Sbeet__Control__Decision d = SBEET__CONTROL__DECISION__INIT, *decisions[] = {&d};
	Sbeet__Control__Try tries[EXPLAIN_TRIES_MAX], *pointers[EXPLAIN_TRIES_MAX];
	uint8_t sms[sizeof(struct smset)];

	for (size_t i = 0; i < e->n_tries; i++) {
		fill_try(&e->tries[i], &tries[i]);
		pointers[i] = &tries[i];
	}
	d.number = e->number;
	d.session = e->owner;
	d.job = e->tag;
	d.task = (char *)e->label;
	d.policy = (char *)e->policy;
	d.first_ns = e->first;
	d.last_ns = e->last;
	d.times = e->times;
	d.starts = e->gpu >= 0;
	d.gpu = e->gpu >= 0 ? (uint32_t)e->gpu : 0;
	d.sms.data = sms;
	d.sms.len = smset_to_bytes(&e->sms, sms);
	d.release_ns = e->release;
	d.requested_ns = e->requested;
	d.deadline_ns = e->deadline;
	d.predicted_finish_ns = e->finish;
	d.energy_pj = e->energy_pj;
	d.ended_ns = e->ended;
	d.completed = e->completed;
	d.reason = (char *)explain_reason_name(e->reason);
	d.text = (char *)explain_reason_text(e->reason);
	d.stop = (char *)(e->stop ? e->stop : "");
	d.stop_takes_ns = e->stop_takes;
	d.tries = pointers;
	d.n_tries = e->n_tries;
	d.tries_left_out = (uint32_t)e->n_left_out;
	explanation.decisions = decisions;
	explanation.n_decisions = 1;
	reply.id = id;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_EXPLANATION;
	reply.explanation = &explanation;
	control_client_send(client, &reply);
}

static void send_end(struct control_client *client, const struct answer *a) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Explanation last = SBEET__CONTROL__EXPLANATION__INIT;

	last.complete = a->complete;
	reply.id = a->id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_EXPLANATION;
	reply.explanation = &last;
	control_client_send(client, &reply);
}

/* The next of the decisions up to the one that was last when the question came. */
static bool step(struct control_client *client, struct answer *a) {
	const struct explain *e = sched_explain(engine_sched(client->control->engine));
	size_t n = e ? explain_count(e) : 0;
	uint64_t oldest = n > 0 ? explain_get(e, 0)->number : 0;

	if (a->next < oldest) {
		a->next = oldest;
	}
	for (int i = 0; i < DECISIONS_PER_PIECE && a->next <= a->end; i++, a->next++) {
		const struct explain_entry *entry = explain_get(e, (size_t)(a->next - oldest));

		if ((a->wanted_session == 0 || a->wanted_session == entry->owner) &&
		    (a->wanted_job == 0 || a->wanted_job == entry->tag)) {
			send_decision(client, a->id, entry);
		}
	}
	if (a->next <= a->end) {
		return false;
	}
	send_end(client, a);
	return true;
}

void control_explain(struct control_client *client, const Sbeet__Control__Request *request) {
	const Sbeet__Control__ExplainRequest *wanted = request->explain;
	const struct explain *e = sched_explain(engine_sched(client->control->engine));
	struct answer *a = &client->answer;
	size_t n = e ? explain_count(e) : 0;

	a->wanted_session = wanted->session;
	a->wanted_job = wanted->job;
	a->next = 1;
	a->end = n > 0 ? explain_get(e, n - 1)->number : 0;
	a->complete = n == 0 || explain_get(e, 0)->number == 1;
	answer_begin(client, request->id, client->control->now(), step);
}
