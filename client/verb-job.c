/*
 * verb-job.c: `sbeetctl job ...`: what sbeetd can tell of single jobs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/live/control.h"
#include "client/options.h"
#include "client/sim/decision.h"
#include "client/verb.h"
#include "proto/units.h"

/* "SESSION.JOB", as `status` names jobs, or "SESSION": all of its jobs. Return: 0, -EINVAL. */
static int parse_id(const char *text, Sbeet__Control__ExplainRequest *ret) {
	const char *dot = strchr(text, '.');
	char session[24];
	int64_t n, job = 0;

	if (dot && ((size_t)(dot - text) >= sizeof(session) ||
		    units_parse_int(dot + 1, 1, INT64_MAX, &job) < 0)) {
		return -EINVAL;
	}
	snprintf(session, sizeof(session), "%.*s", dot ? (int)(dot - text) : (int)sizeof(session),
		 text);
	if (strlen(text) >= sizeof(session) + 24 ||
	    units_parse_int(session, 1, INT64_MAX, &n) < 0) {
		return -EINVAL;
	}
	ret->session = (uint64_t)n;
	ret->job = (uint64_t)job;
	return 0;
}

static int ask(const Sbeet__Control__ExplainRequest *wanted, struct control_answer *ret) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct control *control;
	char error[512];
	int r = control_open(&control, error, sizeof(error));

	if (r == 0) {
		request.body_case = SBEET__CONTROL__REQUEST__BODY_EXPLAIN;
		request.explain = (Sbeet__Control__ExplainRequest *)wanted;
		r = control_call(control, &request, ret, error, sizeof(error));
		control_close(control);
	}
	if (r != 0) {
		ctl_error("%s", error);
	}
	return r;
}

/* A decision as it came. */
struct told {
	struct explain_entry entry;
	char job[48];
	struct decision decision;
};

static void told_init(struct told *t, const Sbeet__Control__Decision *m) {
	decision_from_message(m, &t->entry);
	snprintf(t->job, sizeof(t->job), "%llu.%llu", (unsigned long long)m->session,
		 (unsigned long long)m->job);
	t->decision = (struct decision){.job = t->job,
					.task = m->task,
					.reason = m->reason,
					.text = m->text,
					.entry = &t->entry};
}

typedef int (*told_fn)(const struct ctl *ctl, const struct told *told, void *data);

static int print_one(const struct ctl *ctl, const struct told *told, void *data) {
	bool *first = data;

	if (!*first) {
		printf("\n");
	}
	*first = false;
	return decision_print(ctl, &told->decision, stdout);
}

static int add_json(const struct ctl *ctl, const struct told *told, void *data) {
	(void)ctl;
	return json_array_append_new(data, decision_json(&told->decision)) < 0 ? -ENOMEM : 0;
}

/* Return: how many decisions there were, or -ENOMEM. */
static int for_each(const struct ctl *ctl, const struct control_answer *a, told_fn visit,
		    void *data, bool *ret_complete) {
	int n = 0;

	for (size_t i = 0; i < a->n_replies; i++) {
		const Sbeet__Control__Explanation *e = a->replies[i]->explanation;

		if (a->replies[i]->body_case != SBEET__CONTROL__REPLY__BODY_EXPLANATION) {
			continue;
		}
		*ret_complete = e->complete;
		for (size_t j = 0; j < e->n_decisions; j++, n++) {
			struct told told;
			int r;

			told_init(&told, e->decisions[j]);
			r = visit(ctl, &told, data);
			if (r < 0) {
				return r;
			}
		}
	}
	return n;
}

static int show(const struct ctl *ctl, const struct control_answer *a) {
	bool complete = true, first = true;
	json_t *list = NULL;
	int n;

	if (ctl->common.json != JSON_OFF) {
		list = json_array();
		n = for_each(ctl, a, add_json, list, &complete);
	} else {
		n = for_each(ctl, a, print_one, &first, &complete);
	}
	if (n < 0) {
		json_decref(list);
		ctl_error("cannot explain '%s': out of memory", ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	if (list && listing_json(ctl, json_pack("{s:o, s:b}", "decisions", list, "complete",
						(int)complete)) != CTL_EXIT_OK) {
		return CTL_EXIT_FAILED;
	}
	if (n == 0) {
		ctl_error("sbeetd keeps no decision about '%s': there was no such job%s",
			  ctl->args[0],
			  complete ? "; 'sbeetctl job list' shows those that run or wait"
				   : ", or it was before the last 256 decisions, which are all "
				     "that it keeps");
		return CTL_EXIT_NO_OBJECT;
	}
	return CTL_EXIT_OK;
}

static int explain(const struct ctl *ctl) {
	Sbeet__Control__ExplainRequest wanted = SBEET__CONTROL__EXPLAIN_REQUEST__INIT;
	struct control_answer answer;
	int r;

	if (parse_id(ctl->args[0], &wanted) < 0) {
		ctl_error(
			"bad job '%.64s': expected SESSION.JOB as 'sbeetctl status' shows it, "
			"such as 3.17, or SESSION for all of its jobs",
			ctl->args[0]);
		return CTL_EXIT_USAGE;
	}
	r = ask(&wanted, &answer);
	if (r == CTL_EXIT_OK) {
		r = show(ctl, &answer);
		control_answer_deinit(&answer);
	}
	return r;
}

const struct verb verb_job_explain = {
	.name = "job explain",
	.args = "SESSION[.JOB]",
	.summary = "explain why a job got its GPU and SMs, or why it waited",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.help = "sbeetd keeps its last 256 decisions. Times are in ms after the job's release; "
		"'*' marks\nthe choice that was taken. LOSS is the sum of the deadlines that the "
		"policy expects to be\nmissed after a choice, weighed by how soon they come.\n",
	.function = explain,
};
