/*
 * trace-chrome.c: the Trace Event Format, which Perfetto and chrome://tracing read. See
 * trace-export.h.
 *
 * A process for each GPU (numbered from 1) has a thread for each group of SMs that was granted:
 * jobs on it never overlap. The process of the tasks has asynchronous slices, because the jobs of a
 * task may: a late start, the wait, then the run. Behind it each task has a process with a thread
 * for each of its kernels and each kind of copy: marks where the program issued them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/live/trace-export.h"
#include "proto/enforcement.h"

#define PID_TASKS (EVENT_GPUS_MAX + 1)

/* What has a track of its own on a GPU. */
struct group {
	uint32_t gpu;
	bool exact;
	struct smset sms;
};

struct writer {
	const struct trace *t;
	FILE *out;
	struct group *groups; /* owned */
	size_t n_groups, room;
	bool comma, failed;
};

/* Microseconds since the trace began; before it for what was so already. */
static double us(const struct writer *w, nsec_t time) {
	return (double)((int64_t)time - (int64_t)w->t->first) / 1000;
}

/* Takes over @event. */
static void write_event(struct writer *w, json_t *event) {
	fputs(w->comma ? ",\n" : "\n", w->out);
	w->comma = true;
	if (!event || json_dumpf(event, w->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0) {
		w->failed = true;
	}
	json_decref(event);
}

static void name_track(struct writer *w, const char *what, int pid, int tid, const char *name) {
	write_event(w, json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "ph", "M", "name", what, "pid",
				 pid, "tid", tid, "args", "name", json_text(name)));
}

/* The thread of a job's group on its GPU, named when it is first used; 0 without memory. */
static int track_of(struct writer *w, const struct trace_job *job) {
	bool exact = enforcement_has(job->enforcement, ENFORCEMENT_EXACT);
	char sms[SMSET_TEXT_MAX], name[SMSET_TEXT_MAX + 16];
	struct group *groups;
	size_t i;

	for (i = 0; i < w->n_groups; i++) {
		const struct group *g = &w->groups[i];

		if (g->gpu == job->gpu && g->exact == exact && smset_equal(&g->sms, &job->sms)) {
			return (int)i + 1;
		}
	}
	groups = reallocarray(w->groups, w->n_groups + 1, sizeof(*groups));
	if (!groups) {
		w->failed = true;
		return 0;
	}
	w->groups = groups;
	groups[w->n_groups++] = (struct group){job->gpu, exact, job->sms};
	smset_print(&job->sms, sms, sizeof(sms));
	/* A slot's set tells groups apart even where only its size means anything. */
	if (!exact) {
		snprintf(name, sizeof(name), "any %u SMs, slot %u", smset_count(&job->sms),
			 job->slot);
	} else {
		snprintf(name, sizeof(name), "SMs %s", sms);
	}
	name_track(w, "thread_name", (int)job->gpu + 1, (int)w->n_groups, name);
	return (int)w->n_groups;
}

static json_t *args_of(const struct writer *w, const struct trace_job *job) {
	char sms[SMSET_TEXT_MAX];
	json_t *deadline = job->deadline ? json_real(us(w, job->deadline)) : json_null();

	smset_print(&job->sms, sms, sizeof(sms));
	return json_pack("{s:s, s:I, s:s, s:o, s:b, s:I, s:f, s:f}", "sms", sms, "n_sms",
			 (json_int_t)smset_count(&job->sms), "held by",
			 enforcement_name(job->enforcement), "deadline_us", deadline, "missed",
			 (int)trace_job_missed(job), "launches", (json_int_t)job->launches,
			 "started_late_us", (double)trace_job_started_late(job) / 1000, "waited_us",
			 (double)trace_job_waited(job) / 1000);
}

static void write_async(struct writer *w, const struct trace_job *job, const char *name,
			const char *id, nsec_t from, nsec_t to) {
	for (int end = 0; end < 2; end++) {
		write_event(w,
			    json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f}", "ph", end ? "e" : "b",
				      "cat", "job", "name", name, "id", id, "pid", PID_TASKS, "tid",
				      (int)job->task + 1, "ts", us(w, end ? to : from)));
	}
}

static void write_job(struct writer *w, const struct trace_job *job) {
	char name[PROTO_NAME_MAX + 64], id[48];

	snprintf(id, sizeof(id), "%" PRIu64 ".%" PRIu64, job->session, job->job);
	snprintf(name, sizeof(name), "%s %s", w->t->tasks[job->task].name, id);
	if (trace_job_started_late(job) > 0) {
		write_async(w, job, "starts late", id, job->release, job->requested);
	}
	if (trace_job_waited(job) > 0) {
		write_async(w, job, "waits", id, job->requested, job->granted);
	}
	if (!job->granted || !job->finished) {
		return;
	}
	write_async(w, job, "runs", id, job->granted, job->finished);
	write_event(w,
		    json_pack("{s:s, s:o, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "name",
			      json_text(name), "pid", (int)job->gpu + 1, "tid", track_of(w, job),
			      "ts", us(w, job->granted), "dur",
			      us(w, job->finished) - us(w, job->granted), "args", args_of(w, job)));
	if (trace_job_missed(job)) {
		write_event(w, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f}", "ph", "i", "s", "t",
					 "name", "deadline missed", "pid", PID_TASKS, "tid",
					 (int)job->task + 1, "ts", us(w, job->deadline)));
	}
}

static int pid_of_row(const struct trace_row *row) {
	return PID_TASKS + 1 + (int)row->task;
}

static void write_op(struct writer *w, const struct trace_op *op) {
	const struct trace_row *row = &w->t->ops.rows[op->row];
	char job[48];
	json_t *args;

	snprintf(job, sizeof(job), "%" PRIu64 ".%" PRIu64, op->session, op->job);
	args = json_pack("{s:s, s:s, s:I}", "job", job, "held by",
			 enforcement_name(op->enforcement), "stream", (json_int_t)op->stream);
	if (op->blocks) {
		json_object_set_new(args, "blocks", json_u64(op->blocks));
		json_object_set_new(args, "block threads", json_u64(op->block_threads));
	}
	if (op->bytes) {
		json_object_set_new(args, "bytes", json_u64(op->bytes));
	}
	write_event(w, json_pack("{s:s, s:s, s:s, s:o, s:i, s:i, s:f, s:o}", "ph", "i", "s", "t",
				 "cat", "op", "name", json_text(row->name), "pid", pid_of_row(row),
				 "tid", (int)op->row + 1, "ts", us(w, op->time), "args", args));
}

static void write_ops(struct writer *w) {
	const struct trace_ops *ops = &w->t->ops;
	char name[PROTO_NAME_MAX + 32];

	for (size_t i = 0; i < ops->n_rows; i++) {
		const struct trace_row *row = &ops->rows[i];

		snprintf(name, sizeof(name), "kernels and copies of %s",
			 w->t->tasks[row->task].name);
		name_track(w, "process_name", pid_of_row(row), 0, name);
		name_track(w, "thread_name", pid_of_row(row), (int)i + 1, row->name);
	}
	for (size_t i = 0; i < ops->n; i++) {
		write_op(w, &ops->list[i]);
	}
}

static void write_names(struct writer *w) {
	const struct trace *t = w->t;
	char name[PROTO_NAME_MAX + 32];

	for (unsigned i = 0; i < EVENT_GPUS_MAX; i++) {
		if (t->gpus[i].there) {
			snprintf(name, sizeof(name), "GPU %u %s", i, t->gpus[i].name);
			name_track(w, "process_name", (int)i + 1, 0, name);
		}
	}
	name_track(w, "process_name", PID_TASKS, 0, "tasks");
	for (size_t i = 0; i < t->n_tasks; i++) {
		name_track(w, "thread_name", PID_TASKS, (int)i + 1, t->tasks[i].name);
	}
}

int trace_export_chrome(const struct trace *t, FILE *out) {
	struct writer w = {.t = t, .out = out};

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
	write_names(&w);
	for (size_t i = 0; i < t->n_jobs; i++) {
		write_job(&w, &t->jobs[i]);
	}
	for (size_t i = 0; i < t->n_powers; i++) {
		write_event(&w, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name",
					  "power", "pid", (int)t->powers[i].gpu + 1, "ts",
					  us(&w, t->powers[i].time), "args", "W",
					  (double)t->powers[i].power_mw / 1000));
	}
	write_ops(&w);
	fputs("\n]}\n", out);
	free(w.groups);
	return w.failed ? -ENOMEM : 0;
}
