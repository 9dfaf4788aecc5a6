/*
 * taskvars.c: see taskvars.h.
 */
#include "proto/taskvars.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "proto/task-text.h"

/* What is being read. */
struct reading {
	const struct taskvar_source *from;
	enum task_field wrong;
	char *why;
	size_t size;
};

static int fail(struct reading *r, enum task_field wrong, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct reading *r, enum task_field wrong, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, r->size, format, args);
	va_end(args);
	r->wrong = wrong;
	return -EINVAL;
}

static int read_one(struct reading *r, enum task_field field, struct task_spec *spec) {
	const struct taskvar_source *from = &r->from[field];
	int error = from->text ? task_text_read(field, from->text, TASK_WRITER_PROGRAM, spec) : 0;

	if (error == 0) {
		return 0;
	}
	task_text_complain(field, TASK_WRITER_PROGRAM, error, from->name, from->text, r->why,
			   r->size);
	r->wrong = field;
	return -EINVAL;
}

/* Whether the values go together. */
static int check(struct reading *r, const struct task_spec *spec) {
	const struct taskvar_source *period = &r->from[TASK_FIELD_PERIOD],
				    *deadline = &r->from[TASK_FIELD_DEADLINE],
				    *offset = &r->from[TASK_FIELD_OFFSET],
				    *least = &r->from[TASK_FIELD_MIN_SMS],
				    *most = &r->from[TASK_FIELD_MAX_SMS];

	if (offset->text && !period->text) {
		return fail(r, TASK_FIELD_OFFSET,
			    "%s=%s needs a period (--period, SBEET_PERIOD): without one each job "
			    "is released when it is requested",
			    offset->name, offset->text);
	}
	if (spec->period && spec->deadline > spec->period) {
		return fail(r, TASK_FIELD_DEADLINE,
			    "%s=%s is longer than %s=%s: a job must end before the next one of its "
			    "task is released; sbeetd refuses such a task",
			    deadline->name, deadline->text, period->name, period->text);
	}
	if (spec->job.max_sms && spec->job.min_sms > spec->job.max_sms) {
		return fail(r, TASK_FIELD_MIN_SMS, "%s=%s is more than %s=%s", least->name,
			    least->text, most->name, most->text);
	}
	return 0;
}

int taskvars_read(struct task_spec *ret, const struct taskvar_source from[static _TASK_FIELD_N],
		  enum task_field *ret_wrong, char *why, size_t size) {
	struct reading reading = {.from = from, .why = why, .size = size};
	struct task_spec spec = TASK_SPEC_NULL;
	int r = 0;

	for (enum task_field field = 0; r == 0 && field < _TASK_FIELD_N; field++) {
		r = read_one(&reading, field, &spec);
	}
	if (r == 0) {
		r = check(&reading, &spec);
	}
	if (r < 0) {
		*ret_wrong = reading.wrong;
		return r;
	}
	if (!from[TASK_FIELD_CLASS].text && (spec.period || spec.deadline)) {
		spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	}
	*ret = spec;
	return 0;
}
