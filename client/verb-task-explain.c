/*
 * verb-task-explain.c: `sbeetctl task explain`: where the programs of a task run without asking,
 * why, and what came of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/live/objects.h"
#include "client/live/runs.h"
#include "client/live/terms.h"
#include "client/live/watch.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/units.h"

struct explain_options {
	nsec_t watch; /* 0: once */
};

static const struct option explain_options[] = {
	{"watch", 'w', OPTION_OPTIONAL, "SEC", OPTION_WATCH_SUMMARY, option_watch,
	 offsetof(struct explain_options, watch), OPTION_WATCH_EXPECTED},
	{0},
};

static bool is_of_task(const struct ctl *ctl, const Sbeet__Control__Session *session) {
	return strcmp(session->task, ctl->args[0]) == 0;
}

/* Return: CTL_EXIT_OK or CTL_EXIT_NO_OBJECT, after an error on stderr. */
static int check_task(const struct ctl *ctl, const struct snapshot *s) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (is_of_task(ctl, s->sessions[i])) {
			return CTL_EXIT_OK;
		}
	}
	ctl_error("no task '%.64s'; 'sbeetctl task list' lists them", ctl->args[0]);
	return CTL_EXIT_NO_OBJECT;
}

static void print_time(FILE *out, const char *before, uint64_t t) {
	char text[32];

	units_print_nsec(t, text, sizeof(text));
	fprintf(out, "%s%s", before, text);
}

static void print_jobs(FILE *out, const char *what, uint64_t jobs, uint64_t misses,
		       uint64_t mean_response) {
	fprintf(out, "    %s: %llu of %llu jobs late", what, (unsigned long long)misses,
		(unsigned long long)jobs);
	if (mean_response) {
		print_time(out, ", mean response ", mean_response);
	}
}

/* What came of the last judgement. */
static const char *verdict_text(const char *verdict) {
	static const struct {
		const char *name, *text;
	} texts[] = {
		{"", "not compared yet"},
		{"wait", "too few jobs so far to compare"},
		{"try", "jobs were late; something else is tried"},
		{"plan", "late jobs were not as predicted, so a new plan was asked for"},
		{"back", "of all that ran these terms did best"},
		{"keep", "it is kept"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(verdict, texts[i].name) == 0) {
			return texts[i].text;
		}
	}
	return "by a newer sbeetd";
}

static void print_plan(const struct snapshot *s, const Sbeet__Control__TermsPlan *p, FILE *out) {
	char age[32];

	print_jobs(out, "predicted", p->predicted_jobs, p->predicted_misses,
		   p->predicted_response_ns);
	fputc('\n', out);
	print_jobs(out, "measured", p->jobs, p->misses, p->response_ns);
	if (p->since_ns <= s->service->now_ns) {
		object_print_age(s->service->now_ns - p->since_ns, age, sizeof(age));
		fprintf(out, ", in %s", age);
	}
	if (p->unreported > 0) {
		fprintf(out, "; the program could not tell of %llu more",
			(unsigned long long)p->unreported);
	}
	fprintf(out, "\n    plan %u since programs or tasks changed: %s\n", p->plans,
		verdict_text(p->verdict));
	if (p->slow != 1) {
		fprintf(out,
			"    its kernels are assumed to take %.2f times as long as in its "
			"profile\n",
			p->slow);
	}
}

static void print_terms(const struct snapshot *s, const Sbeet__Control__Terms *t, FILE *out) {
	char now[TERMS_TEXT_MAX], began[TERMS_TEXT_MAX], age[32];
	unsigned n_sms = snapshot_gpu_sms(s, t->gpu);

	terms_print(t->word, n_sms, now);
	fprintf(out, "  GPU %u: %s", t->gpu, now);
	if (t->since_ns && t->since_ns <= s->service->now_ns) {
		object_print_age(s->service->now_ns - t->since_ns, age, sizeof(age));
		fprintf(out, ", for %s", age);
	}
	fprintf(out, "\n    why: %s\n", *t->reason ? t->reason : "not known");
	if (t->began) {
		terms_print(t->began, n_sms, began);
		fprintf(out, "    its last job ran under: %s\n",
			strcmp(now, began) == 0 ? "the same" : began);
	}
	if (t->plan) {
		print_plan(s, t->plan, out);
	}
}

static void print_session(const struct snapshot *s, const Sbeet__Control__Session *e, FILE *out) {
	char program[PROTO_NAME_MAX + 1];

	snprintf(program, sizeof(program), "%s", e->program);
	terminal_clean(program);
	fprintf(out, "Session %llu, pid %u (%s)\n", (unsigned long long)e->id, e->pid, program);
	if (e->n_terms == 0) {
		fprintf(out, "  asks for each job on every GPU: its library reads no terms\n");
	}
	for (size_t i = 0; i < e->n_terms; i++) {
		print_terms(s, e->terms[i], out);
	}
	fprintf(out, "  %llu jobs, %llu too late", (unsigned long long)e->jobs,
		(unsigned long long)e->misses);
	if (e->unreported > 0) {
		fprintf(out, ", %llu more that it could not tell of",
			(unsigned long long)e->unreported);
	}
	if (e->deadline_ns) {
		print_time(out, "; deadline ", e->deadline_ns);
	}
	if (e->last_response_ns) {
		print_time(out, ", last job ", e->last_response_ns);
		print_time(out, ", longest ", e->max_response_ns);
	}
	if (runs_split_frames(e->jobs, e->jobs_within_period)) {
		fprintf(out,
			"\n  %llu of the jobs began within the period of another "
			"one: " RUNS_SPLIT_FRAMES,
			(unsigned long long)e->jobs_within_period);
	}
	fputc('\n', out);
}

static int explain_text(const struct ctl *ctl, const struct snapshot *s, unsigned rows,
			char **ret_text) {
	int r = check_task(ctl, s);
	bool first = true;
	char *text = NULL;
	size_t size;
	FILE *out;

	(void)rows;
	if (r != CTL_EXIT_OK) {
		return r;
	}
	out = open_memstream(&text, &size);
	for (size_t i = 0; out && i < s->n_sessions; i++) {
		if (is_of_task(ctl, s->sessions[i])) {
			fputs(first ? "" : "\n", out);
			first = false;
			print_session(s, s->sessions[i], out);
		}
	}
	if (!out || fclose(out) == EOF) {
		free(text);
		ctl_error("cannot explain '%.64s': out of memory", ctl->args[0]);
		return CTL_EXIT_FAILED;
	}
	*ret_text = text;
	return CTL_EXIT_OK;
}

static int explain_json(const struct ctl *ctl, const struct snapshot *s, json_t **ret) {
	json_t *list = NULL;
	int r = check_task(ctl, s);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	list = json_array();
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (is_of_task(ctl, s->sessions[i]) &&
		    json_array_append_new(list, snapshot_session_json(s, i)) < 0) {
			json_decref(list);
			ctl_error("cannot explain '%.64s': out of memory", ctl->args[0]);
			return CTL_EXIT_FAILED;
		}
	}
	*ret = list;
	return CTL_EXIT_OK;
}

static int explain(const struct ctl *ctl) {
	static const struct watch_view view = {.json = explain_json, .text = explain_text};
	const struct explain_options *o = ctl->options;

	return watch_run(ctl, o->watch, &view);
}

const struct verb verb_task_explain = {
	.name = "task explain",
	.args = "ID",
	.summary = "explain where a task's programs run without asking, and why",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.options = explain_options,
	.options_size = sizeof(struct explain_options),
	.function = explain,
};
