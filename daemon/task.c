/*
 * task.c: names and timing of tasks. See task.h.
 */
#include "daemon/task.h"

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
	task->grid_known = task->grid_fixed = task->period && task->offset;
	task->first_release = task->grid_fixed ? now + task->offset : 0;
	task->n_behind = 0;
}

static void grid_begin(struct task *task, nsec_t at) {
	task->first_release = at;
	task->grid_known = true;
	task->n_behind = 0;
}

/* How far to move the grid because of a job of an idle program, @into behind its point. */
static nsec_t behind(struct task *task, nsec_t into) {
	if (into <= task->period / 8) {
		task->n_behind = 0;
		return 0;
	}
	if (task->n_behind == 0 || into < task->least_behind) {
		task->least_behind = into;
	}
	if (++task->n_behind < TASK_BEHIND_MAX) {
		return 0;
	}
	task->n_behind = 0;
	return task->least_behind;
}

nsec_t task_release(struct task *task, nsec_t opened) {
	nsec_t idle_since = task->idle_since, into, moved;

	task->idle_since = 0;
	if (!task->period) {
		return opened;
	}
	if (!task->grid_known || (!task->grid_fixed && idle_since && opened >= idle_since &&
				  (opened - idle_since) / 2 >= task->period)) {
		grid_begin(task, opened);
	}
	if (opened < task->first_release) {
		/* Before its offset: the job is early, and is counted from where it is. */
		return opened;
	}
	into = (opened - task->first_release) % task->period;
	if (task->grid_fixed) {
		return opened - into;
	}
	if (into >= task->period - task->period / 8) {
		grid_begin(task, opened);
		return opened;
	}
	if (idle_since && idle_since <= opened - into) {
		moved = behind(task, into);
		task->first_release += moved;
		into -= moved;
	}
	return opened - into;
}

void task_idle(struct task *task, nsec_t now) {
	task->idle_since = now;
}

nsec_t task_deadline(const struct task *task, nsec_t release) {
	return task->deadline ? release + task->deadline : 0;
}
