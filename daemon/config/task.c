/*
 * task.c: names and timing of tasks. See task.h.
 */
#include "daemon/config/task.h"

#include <stdio.h>
#include <string.h>

#include "proto/validate.h"

/* A name from an executable's: what is not allowed in names becomes '_'. */
static void name_from_program(const char *program, char name[static PROTO_NAME_MAX + 1]) {
	size_t n = 0;

	for (const char *p = program; *p && n < PROTO_NAME_MAX; p++) {
		char c[2] = {*p, '\0'};
		bool inside = n > 0 && strchr(".-", *p);

		name[n++] = inside || validate_name(c) == 0 ? *p : '_';
	}
	name[n] = '\0';
	if (n == 0) {
		snprintf(name, PROTO_NAME_MAX + 1, "unnamed");
	}
}

void task_init(struct task *task, const Sbeet__TaskSpec *spec, const char *program, nsec_t now) {
	*task = (struct task){.gpu = -1};
	if (spec) {
		task->task_class = spec->task_class;
		task->period = spec->period_ns;
		task->deadline = spec->deadline_ns ? spec->deadline_ns : spec->period_ns;
		task->offset = spec->offset_ns;
		task->priority = spec->priority;
		task->min_sms = spec->min_sms;
		task->max_sms = spec->max_sms;
	}
	if (spec && *spec->name) {
		snprintf(task->name, sizeof(task->name), "%s", spec->name);
	} else {
		name_from_program(program, task->name);
	}
	task_start(task, now);
}

void task_start(struct task *task, nsec_t now) {
	task->first_release = task->period && task->offset ? now + task->offset : 0;
	task->last = (struct task_last){0};
	task->paced = false;
}

/* The last point of the grid; before the first one a job is released when it is requested. */
static nsec_t last_point(const struct task *task, nsec_t at) {
	return at < task->first_release ? at : at - (at - task->first_release) % task->period;
}

/* The release that came due while the job before was still there; @at if there was none. */
static nsec_t due_before(const struct task *task, nsec_t at) {
	const struct task_last *last = &task->last;
	nsec_t late, due;

	if (last->ended < last->release + task->period) {
		return at;
	}
	late = (last->ended - last->release) % task->period;
	due = last->ended - late;
	return at - due < task->period ? due : at; /* else another one has come since */
}

nsec_t task_release(struct task *task, const struct task_request *request) {
	const struct task_last *last = &task->last;
	nsec_t at = request->at, pause;

	if (!task->period) {
		return at;
	}
	if (task->first_release) {
		return last_point(task, at);
	}
	if (!request->alone || !last->ended || last->tid != request->tid ||
	    last->gpu != request->gpu || at < last->ended) {
		task->paced = false;
		return at;
	}
	pause = at - last->ended;
	if (pause > task->period / TASK_AT_ONCE) {
		task->paced = pause >= task->period / TASK_PAUSE;
		return at;
	}
	return task->paced ? due_before(task, at) : at;
}

void task_ended(struct task *task, const struct task_last *job) {
	task->last = *job;
}

nsec_t task_deadline(const struct task *task, nsec_t release) {
	return task->deadline ? release + task->deadline : 0;
}
