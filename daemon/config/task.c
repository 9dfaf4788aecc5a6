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

void task_init(struct task_spec *task, const Sbeet__TaskSpec *spec, const char *program) {
	*task = TASK_SPEC_NULL;
	if (spec) {
		task_spec_from_wire(spec, task);
		task_spec_keep_own(task);
		task->deadline = task->deadline ? task->deadline : task->period;
	}
	if (!*task->name) {
		name_from_program(program, task->name);
	}
}

void task_start(struct releases *releases, const struct task_spec *task, nsec_t now) {
	*releases = (struct releases){
		.first = task->period && task->offset ? now + task->offset : 0,
	};
}

/* The last point of the grid; before the first one a job is released when it is requested. */
static nsec_t last_point(nsec_t first, nsec_t period, nsec_t at) {
	return at < first ? at : at - (at - first) % period;
}

/* The release that came due while the job before was still there; @at if there was none. */
static nsec_t due_before(const struct task_last *last, nsec_t period, nsec_t at) {
	nsec_t late, due;

	if (last->ended < last->release + period) {
		return at;
	}
	late = (last->ended - last->release) % period;
	due = last->ended - late;
	return at - due < period ? due : at; /* else another one has come since */
}

/* The job runs on: it was requested, at @at, at once after the one before. */
static nsec_t run_on(struct releases *releases, nsec_t period, nsec_t at) {
	const struct task_last *last = &releases->last;
	nsec_t release;

	releases->queued = releases->queued + period < at ? releases->queued + period : at;
	releases->queues |= releases->held_up && at + period / TASK_PAUSE < last->release + period;
	release = releases->queues ? releases->queued : due_before(last, period, at);
	releases->woken = false;
	releases->held_up = release < at;
	releases->waiting = (at - releases->queued) / period;
	return release;
}

/* The job was requested when it was released. */
static nsec_t begin_anew(struct releases *releases, nsec_t at, bool paced) {
	releases->paced = paced;
	releases->woken = releases->held_up = false;
	releases->queued = at;
	releases->waiting = 0;
	return at;
}

/* The program has paused. */
static void leave_out(struct releases *releases, nsec_t period) {
	nsec_t late = releases->last.ended > releases->queued
			      ? releases->last.ended - releases->queued
			      : 0;

	if (releases->paced && late >= period) {
		releases->queues = false;
		releases->left_out += late / period;
	}
}

nsec_t task_release(struct releases *releases, const struct task_spec *task,
		    const struct task_request *request) {
	const struct task_last *last = &releases->last;
	nsec_t at = request->at, pause;

	if (!task->period) {
		return at;
	}
	if (releases->first) {
		return last_point(releases->first, task->period, at);
	}
	if (!request->alone || !last->ended || last->tid != request->tid ||
	    last->gpu != request->gpu || at < last->ended) {
		return begin_anew(releases, at, false);
	}
	pause = at - last->ended;
	if (pause > task->period / TASK_AT_ONCE) {
		leave_out(releases, task->period);
		begin_anew(releases, at, pause >= task->period / TASK_PAUSE);
		releases->woken = true;
		return at;
	}
	return releases->paced ? run_on(releases, task->period, at)
			       : begin_anew(releases, at, false);
}

void task_lost_sight(struct releases *releases) {
	releases->last.ended = 0;
}

void task_ended(struct releases *releases, const struct task_last *job) {
	releases->last = *job;
}

nsec_t task_deadline(const struct task_spec *task, nsec_t release, nsec_t own) {
	nsec_t deadline = own ? own : task->deadline;

	if (own && task->period && own > task->period) {
		deadline = task->period;
	}
	return deadline ? release + deadline : 0;
}
