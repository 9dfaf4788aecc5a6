/* decision.c: see decision.h. */
#include "client/sim/decision.h"

#include <inttypes.h>

#include "client/base/json.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "daemon/core/power.h"

#define PJ_PER_MJ (POWER_PJ_PER_J / 1000)

void decision_from_message(const Sbeet__Control__Decision *m, struct explain_entry *ret) {
	*ret = (struct explain_entry){
		.number = m->number,
		.owner = m->session,
		.tag = m->job,
		.release = m->release_ns,
		.requested = m->requested_ns,
		.deadline = m->deadline_ns,
		.policy = m->policy,
		.first = m->first_ns,
		.last = m->last_ns,
		.times = m->times,
		.gpu = m->starts ? (int)m->gpu : -1,
		.finish = m->predicted_finish_ns,
		.energy_pj = m->energy_pj,
		.stop = *m->stop ? m->stop : NULL,
		.stop_takes = m->stop_takes_ns,
		.ended = m->ended_ns,
		.completed = m->completed,
		.n_tries = m->n_tries < EXPLAIN_TRIES_MAX ? m->n_tries : EXPLAIN_TRIES_MAX,
		.n_left_out = m->tries_left_out,
	};
	smset_from_bytes(m->sms.data, m->sms.len, &ret->sms);
	ret->n_left_out += m->n_tries - ret->n_tries;
	for (size_t i = 0; i < ret->n_tries; i++) {
		const Sbeet__Control__Try *t = m->tries[i];

		ret->tries[i] = (struct explain_try){.chosen = t->chosen,
						     .wait = t->wait,
						     .feasible = t->feasible,
						     .gpu = (uint8_t)t->gpu,
						     .n_sms = (uint16_t)t->sms,
						     .loss = t->loss,
						     .start = t->start_ns,
						     .finish = t->finish_ns,
						     .energy_pj = t->energy_pj};
	}
}

/* Milliseconds with two decimals, of a time relative to the job's release. */
struct msec {
	char text[32];
};

static struct msec msec(int64_t nsec) {
	uint64_t us = (uint64_t)(nsec < 0 ? -nsec : nsec) / 1000;
	struct msec m;

	snprintf(m.text, sizeof(m.text), "%s%" PRIu64 ".%02u", nsec < 0 ? "-" : "", us / 1000,
		 (unsigned)(us % 1000 / 10));
	return m;
}

static struct msec since_release(const struct decision *d, nsec_t time) {
	return msec((int64_t)(time - d->entry->release));
}

static void gpu_name(const struct decision *d, unsigned gpu, char *text, size_t size) {
	if (d->gpu_names) {
		snprintf(text, size, "%s", d->gpu_names[gpu]);
	} else {
		snprintf(text, size, "%u", gpu);
	}
}

static nsec_t started_late(const struct explain_entry *e) {
	return e->requested > e->release ? e->requested - e->release : 0;
}

/* Up to this decision. */
static nsec_t waited(const struct explain_entry *e) {
	nsec_t requested = e->release + started_late(e);

	return e->last > requested ? e->last - requested : 0;
}

static void print_delays(const struct explain_entry *e, FILE *out) {
	if (started_late(e) > 0) {
		fprintf(out, "  started %s ms late, ", msec((int64_t)started_late(e)).text);
	} else {
		fprintf(out, "  ");
	}
	fprintf(out, "waited %s ms%s\n", msec((int64_t)waited(e)).text,
		e->gpu < 0 ? " so far" : "");
}

static void print_outcome(const struct decision *d, FILE *out) {
	const struct explain_entry *e = d->entry;

	if (e->gpu >= 0) {
		char sms[SMSET_TEXT_MAX], gpu[64];

		smset_print(&e->sms, sms, sizeof(sms));
		gpu_name(d, (unsigned)e->gpu, gpu, sizeof(gpu));
		fprintf(out, "  %s ms after its release it starts on GPU %s with %u SMs (%s):\n",
			since_release(d, e->last).text, gpu, smset_count(&e->sms), sms);
	} else if (e->times > 1) {
		fprintf(out,
			"  from %s to %s ms after its release it waits (looked at %" PRIu64
			" times):\n",
			since_release(d, e->first).text, since_release(d, e->last).text, e->times);
	} else {
		fprintf(out, "  %s ms after its release it waits:\n",
			since_release(d, e->last).text);
	}
	fprintf(out, "  %s [%s]\n", d->text, d->reason);
}

/* While it runs. */
static void print_stop(const struct explain_entry *e, FILE *out) {
	if (!e->stop) {
		return;
	}
	fprintf(out, "  can be stopped by: %s", e->stop);
	if (e->stop_takes > 0) {
		fprintf(out, ", which took %s ms at most so far",
			msec((int64_t)e->stop_takes).text);
	}
	fputc('\n', out);
}

/* What has become of it. */
static void print_end(const struct decision *d, FILE *out) {
	const struct explain_entry *e = d->entry;

	if (e->gpu < 0) {
		return;
	}
	if (e->finish) {
		fprintf(out, "  predicted to end after %s ms, for %.3f mJ",
			since_release(d, e->finish).text, (double)e->energy_pj / PJ_PER_MJ);
	} else {
		fprintf(out, "  no prediction: its task has no profile in use");
	}
	if (e->ended == 0) {
		fprintf(out, "; it has not ended yet\n");
		return;
	}
	fprintf(out, "; %s after %s ms", e->completed ? "it ended" : "it was abandoned",
		since_release(d, e->ended).text);
	if (e->deadline && e->ended > e->deadline) {
		fprintf(out, ", %s ms too late", msec((int64_t)(e->ended - e->deadline)).text);
	} else if (e->deadline) {
		fprintf(out, ", in time");
	}
	fputc('\n', out);
}

static void add_try(struct table *t, const struct decision *d, const struct explain_try *try) {
	char gpu[64] = "";

	if (try->chosen) {
		table_text(t, "*");
	} else {
		table_blank(t);
	}
	table_text(t, try->wait ? "wait" : "start");
	if (try->n_sms > 0) {
		gpu_name(d, try->gpu, gpu, sizeof(gpu));
		table_text(t, gpu);
		table_number(t, try->n_sms);
		table_text(t, since_release(d, try->start).text);
	} else {
		table_text(t, NULL);
		table_text(t, NULL);
		table_text(t, NULL);
	}
	table_text(t, try->finish ? since_release(d, try->finish).text : NULL);
	table_text(t, try->feasible ? "yes" : "no");
	table_number(t, try->loss);
	if (try->finish) {
		table_value(t, try->energy_pj, "%.3f", (double)try->energy_pj / PJ_PER_MJ);
	} else {
		table_text(t, NULL);
	}
}

static int print_tries(const struct ctl *ctl, const struct decision *d, FILE *out) {
	static const struct table_column columns[] = {
		{"chosen", " "},
		{"choice", "CHOICE"},
		{"gpu", "GPU", .elastic = true},
		{"n_sms", "SMS", .right = true},
		{"start", "START ms", .right = true},
		{"finish", "FINISH ms", .right = true},
		{"feasible", "ALL IN TIME"},
		{"loss", "LOSS", .right = true},
		{"energy", "ENERGY mJ", .right = true},
	};
	struct table_style style = listing_style(ctl);
	struct table *t;
	int r;

	r = table_new(&t, columns, sizeof(columns) / sizeof(columns[0]));
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < d->entry->n_tries; i++) {
		add_try(t, d, &d->entry->tries[i]);
	}
	r = table_print(t, &style, out);
	table_free(t);
	if (r == 0 && d->entry->n_left_out > 0) {
		fprintf(out, "  and %zu more choices\n", d->entry->n_left_out);
	}
	return r;
}

int decision_print(const struct ctl *ctl, const struct decision *d, FILE *out) {
	const struct explain_entry *e = d->entry;

	fprintf(out, "job %s", d->job);
	if (d->task && *d->task) {
		fprintf(out, " of %s", d->task);
	}
	if (d->absolute) {
		fprintf(out, ", released at %s ms", msec((int64_t)e->release).text);
	}
	if (e->deadline) {
		fprintf(out, ", deadline %s ms after its release",
			since_release(d, e->deadline).text);
	}
	fprintf(out, ", policy %s\n", e->policy);
	print_delays(e, out);
	print_outcome(d, out);
	print_stop(e, out);
	print_end(d, out);
	/* One choice of which nothing is known says what was said above. */
	if (e->n_tries == 0 ||
	    (e->n_tries == 1 && e->tries[0].chosen && !e->finish && e->n_left_out == 0)) {
		return 0;
	}
	return print_tries(ctl, d, out);
}

static json_t *gpu_json(const struct decision *d, int gpu) {
	if (gpu < 0) {
		return json_null();
	}
	return d->gpu_names ? json_text(d->gpu_names[gpu]) : json_integer(gpu);
}

static json_t *try_json(const struct decision *d, const struct explain_try *t) {
	bool placed = t->n_sms > 0;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:i, s:o, s:b}", "choice",
			 t->wait ? "wait" : "start", "gpu", gpu_json(d, placed ? t->gpu : -1),
			 "n_sms", json_u64_known(t->n_sms), "start_ns",
			 placed ? json_u64(t->start) : json_null(), "finish_ns",
			 json_u64_known(t->finish), "feasible", (int)t->feasible, "loss",
			 (int)t->loss, "energy_j",
			 t->finish ? json_real((double)t->energy_pj / POWER_PJ_PER_J) : json_null(),
			 "chosen", (int)t->chosen);
}

json_t *decision_json(const struct decision *d) {
	const struct explain_entry *e = d->entry;
	char sms[SMSET_TEXT_MAX];
	json_t *tries = json_array();
	bool starts = e->gpu >= 0;

	for (size_t i = 0; i < e->n_tries; i++) {
		json_array_append_new(tries, try_json(d, &e->tries[i]));
	}
	smset_print(&e->sms, sms, sizeof(sms));
	return json_pack(
		"{s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"number", json_u64(e->number), "job", d->job, "task",
		json_text(d->task && *d->task ? d->task : NULL), "policy", e->policy, "release_ns",
		json_u64(e->release), "deadline_ns", json_u64_known(e->deadline), "first_ns",
		json_u64(e->first), "last_ns", json_u64(e->last), "times", json_u64(e->times),
		"starts", (int)starts, "gpu", gpu_json(d, e->gpu), "sms",
		starts ? json_text(sms) : json_null(), "n_sms",
		starts ? json_u64(smset_count(&e->sms)) : json_null(), "predicted_finish_ns",
		json_u64_known(e->finish), "energy_j",
		starts && e->finish ? json_real((double)e->energy_pj / POWER_PJ_PER_J)
				    : json_null(),
		"ended_ns", json_u64_known(e->ended), "completed",
		e->ended ? json_boolean(e->completed) : json_null(), "missed",
		e->ended && e->deadline ? json_boolean(e->ended > e->deadline) : json_null(),
		"reason", d->reason, "text", d->text, "tries", tries, "tries_left_out",
		json_u64(e->n_left_out), "requested_ns", json_u64(e->release + started_late(e)),
		"started_late_ns", json_u64(started_late(e)), "waited_ns", json_u64(waited(e)),
		"stop", json_text(e->stop), "stop_takes_ns", json_u64_known(e->stop_takes));
}
