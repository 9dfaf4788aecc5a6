/*
 * trace-html.c: the timeline as one page: client/live/timeline/page.html with the trace in it. See
 * trace-export.h.
 *
 * Numbers only go where the page expects them, texts as JSON in which no "<" is left: nothing in a
 * trace can become part of the page. Times are in ns since the trace began, so that a page's
 * numbers hold them exactly.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/live/timeline.h"
#include "client/live/trace-export.h"
#include "proto/enforcement.h"

/* Where the page wants its data. */
#define MARK "@TRACE@"

/* JSON that may stand inside a <script>. Takes over @value. */
static int write_json(json_t *value, FILE *out) {
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(value);
	if (!text) {
		return -ENOMEM;
	}
	for (const char *c = text; *c; c++) {
		if (*c == '<') {
			fputs("\\u003c", out);
		} else {
			putc(*c, out);
		}
	}
	free(text);
	return 0;
}

static int64_t since(const struct trace *t, nsec_t time) {
	return (int64_t)time - (int64_t)t->first;
}

/* null where there is no such time */
static void write_time(const struct trace *t, nsec_t time, FILE *out) {
	if (time) {
		fprintf(out, ",%" PRId64, since(t, time));
	} else {
		fputs(",null", out);
	}
}

/* [first, n, first, n, ...] */
static void write_sms(const struct smset *sms, FILE *out) {
	int sm = smset_next(sms, 0);
	const char *comma = "";

	putc('[', out);
	while (sm >= 0) {
		unsigned end = (unsigned)sm + 1;

		while (end < PROTO_SMS_MAX && smset_has(sms, end)) {
			end++;
		}
		fprintf(out, "%s%d,%u", comma, sm, end - (unsigned)sm);
		comma = ",";
		sm = end < PROTO_SMS_MAX ? smset_next(sms, end) : -1;
	}
	putc(']', out);
}

/* [session, job, task, gpu, state, how held, SMs, release, granted, finished, deadline, predicted,
 * launches, requested] */
static void write_job(const struct trace *t, const struct trace_job *job, FILE *out) {
	fprintf(out, "[%" PRIu64 ",%" PRIu64 ",%u,%u,%d,%d,", job->session, job->job, job->task,
		job->gpu, (int)job->state, (int)job->enforcement);
	write_sms(&job->sms, out);
	write_time(t, job->release, out);
	write_time(t, job->granted, out);
	write_time(t, job->finished, out);
	write_time(t, job->deadline, out);
	write_time(t, job->predicted_finish, out);
	fprintf(out, ",%" PRIu64, job->launches);
	write_time(t, job->requested, out);
	putc(']', out);
}

/* [task, name, [time, ...]] of a row. @order: its operations. */
static int write_row(const struct trace *t, const struct trace_row *row, const uint32_t *order,
		     FILE *out) {
	int r;

	fprintf(out, "[%u,", row->task);
	r = write_json(json_text(row->name), out);
	fputs(",[", out);
	for (uint64_t i = 0; i < row->n; i++) {
		fprintf(out, "%s%" PRId64, i ? "," : "", since(t, t->ops.list[order[i]].time));
	}
	fputs("]]", out);
	return r;
}

/* Row by row. */
static int write_ops(const struct trace *t, FILE *out) {
	const struct trace_ops *ops = &t->ops;
	uint32_t *order = calloc(ops->n + 1, sizeof(*order));
	size_t *end = calloc(ops->n_rows + 1, sizeof(*end));
	int r = order && end ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ops->n_rows; i++) {
		end[i + 1] = end[i] + ops->rows[i].n;
	}
	for (size_t i = 0; r == 0 && i < ops->n; i++) {
		order[end[ops->list[i].row]++] = (uint32_t)i;
	}
	for (size_t i = 0; r == 0 && i < ops->n_rows; i++) {
		fputs(i ? ",\n" : "\n", out);
		r = write_row(t, &ops->rows[i], &order[end[i] - ops->rows[i].n], out);
	}
	free(order);
	free(end);
	return r;
}

static json_t *gpus_json(const struct trace *t) {
	json_t *gpus = json_array();

	for (unsigned i = 0; i < EVENT_GPUS_MAX; i++) {
		const struct trace_gpu *g = &t->gpus[i];

		if (g->there) {
			json_array_append_new(gpus,
					      json_pack("{s:I, s:o, s:o, s:I}", "index",
							(json_int_t)i, "name", json_text(g->name),
							"sharing", json_text(g->sharing), "n_sms",
							(json_int_t)g->n_sms));
		}
	}
	return gpus;
}

/* The enforcements, by number. */
static json_t *held_json(void) {
	json_t *held = json_array();

	for (unsigned i = 0; i < ENFORCEMENT_N; i++) {
		Sbeet__Enforcement e = (Sbeet__Enforcement)i;

		json_array_append_new(held,
				      json_pack("{s:s, s:b}", "name", enforcement_name(e), "exact",
						enforcement_has(e, ENFORCEMENT_EXACT)));
	}
	return held;
}

static json_t *tasks_json(const struct trace *t) {
	json_t *tasks = json_array();

	for (size_t i = 0; i < t->n_tasks; i++) {
		const struct trace_task *task = &t->tasks[i];

		json_array_append_new(
			tasks,
			json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
				  json_text(task->name), "realtime",
				  task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME,
				  "period", (json_int_t)task->period, "deadline",
				  (json_int_t)task->deadline, "done", (json_int_t)task->n_done,
				  "missed", (json_int_t)task->n_missed, "abandoned",
				  (json_int_t)task->n_abandoned, "max_wait",
				  (json_int_t)task->max_wait, "max_response",
				  (json_int_t)task->max_response));
	}
	return tasks;
}

static json_t *notes_json(const struct trace *t) {
	json_t *notes = json_array();

	for (size_t i = 0; i < t->n_notes; i++) {
		json_array_append_new(notes,
				      json_pack("[I, I, o]", (json_int_t)since(t, t->notes[i].time),
						(json_int_t)t->notes[i].lost,
						json_text(t->notes[i].text)));
	}
	return notes;
}

static int write_data(const struct trace *t, const char *title, FILE *out) {
	char origin[32]; /* may be more than a page's numbers hold */
	int r;

	snprintf(origin, sizeof(origin), "%" PRIu64, t->first);
	r = write_json(json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
				 "origin", origin, "title", json_text(title), "version",
				 json_text(t->start.version), "policy", json_text(t->start.name),
				 "wall_ms",
				 (json_int_t)(((int64_t)t->first + t->start.wall_offset) /
					      (int64_t)NSEC_PER_MSEC),
				 "end", (json_int_t)(t->last - t->first), "lost",
				 (json_int_t)t->n_lost, "held", held_json(), "gpus", gpus_json(t),
				 "tasks", tasks_json(t), "notes", notes_json(t)),
		       out);
	fputs("</script>\n<script type=\"application/json\" id=\"jobs\">[", out);
	for (size_t i = 0; i < t->n_jobs; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_job(t, &t->jobs[i], out);
	}
	fputs("]</script>\n<script type=\"application/json\" id=\"power\">[", out);
	for (size_t i = 0; i < t->n_powers; i++) {
		fprintf(out, "%s[%" PRId64 ",%u,%" PRIu64 "]", i ? "," : "",
			since(t, t->powers[i].time), t->powers[i].gpu, t->powers[i].power_mw);
	}
	fputs("]</script>\n<script type=\"application/json\" id=\"ops\">[", out);
	if (r == 0) {
		r = write_ops(t, out);
	}
	putc(']', out);
	return r;
}

int trace_export_html(const struct trace *t, const char *title, FILE *out) {
	const char *mark = strstr(timeline_html, MARK);
	int r;

	fwrite(timeline_html, 1, (size_t)(mark - timeline_html), out);
	r = write_data(t, title, out);
	fputs(mark + strlen(MARK), out);
	return r;
}
