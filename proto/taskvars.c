/*
 * taskvars.c: see taskvars.h.
 */
#include "proto/taskvars.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/validate.h"

/* The index of @text among @words, which NULL ends. */
static int read_word(const char *text, const char *const *words, int *ret) {
	for (int i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_time(const char *text, nsec_t *ret) {
	int r = units_parse_nsec(text, ret);

	return r == 0 && *ret == 0 ? -ERANGE : r;
}

static int read_sms(const char *text, unsigned *ret) {
	int64_t n;
	int r = units_parse_int(text, 1, PROTO_SMS_MAX, &n);

	*ret = r == 0 ? (unsigned)n : 0;
	return r;
}

static int read_task(const char *text, struct taskvars *vars) {
	int r = validate_name(text);

	if (r == 0) {
		snprintf(vars->task, sizeof(vars->task), "%s", text);
	}
	return r;
}

static int read_class(const char *text, struct taskvars *vars) {
	static const char *const words[] = {"best-effort", "realtime", NULL};
	int i = 0, r = read_word(text, words, &i);

	vars->task_class = (Sbeet__TaskClass)i;
	return r;
}

static int read_period(const char *text, struct taskvars *vars) {
	return read_time(text, &vars->period);
}

static int read_deadline(const char *text, struct taskvars *vars) {
	return read_time(text, &vars->deadline);
}

static int read_offset(const char *text, struct taskvars *vars) {
	return units_parse_nsec(text, &vars->offset);
}

static int read_priority(const char *text, struct taskvars *vars) {
	int64_t n;
	int r = units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &n);

	vars->priority = r == 0 ? (int)n : 0;
	return r;
}

static int read_min_sms(const char *text, struct taskvars *vars) {
	return read_sms(text, &vars->min_sms);
}

static int read_max_sms(const char *text, struct taskvars *vars) {
	return read_sms(text, &vars->max_sms);
}

static int read_scope(const char *text, struct taskvars *vars) {
	static const char *const words[] = {"process", "thread", NULL};
	int i = 0, r = read_word(text, words, &i);

	vars->scope = (Sbeet__Scope)i;
	return r;
}

#define EXPECTED_TIME "a time above 0 with a unit, such as 33ms, at most a day"
#define EXPECTED_SMS  "a whole number from 1 to 256"

static const struct {
	const char *variable, *option, *expected;
	int (*read)(const char *text, struct taskvars *vars);
} table[_TASKVAR_N] = {
	[TASKVAR_TASK] = {"SBEET_TASK", "--task",
			  "1 to 64 of A-Z a-z 0-9 . _ @ : + -, not starting with . or -",
			  read_task},
	[TASKVAR_CLASS] = {"SBEET_CLASS", "--class", "realtime or best-effort", read_class},
	[TASKVAR_PERIOD] = {"SBEET_PERIOD", "--period", EXPECTED_TIME, read_period},
	[TASKVAR_DEADLINE] = {"SBEET_DEADLINE", "--deadline", EXPECTED_TIME, read_deadline},
	[TASKVAR_OFFSET] = {"SBEET_OFFSET", "--offset",
			    "a time with a unit, such as 5ms, at most a day", read_offset},
	[TASKVAR_PRIORITY] = {"SBEET_PRIORITY", "--priority", "a whole number from -1000 to 1000",
			      read_priority},
	[TASKVAR_MIN_SMS] = {"SBEET_MIN_SMS", "--min-sms", EXPECTED_SMS, read_min_sms},
	[TASKVAR_MAX_SMS] = {"SBEET_MAX_SMS", "--max-sms", EXPECTED_SMS, read_max_sms},
	[TASKVAR_SCOPE] = {"SBEET_SCOPE", "--scope", "process or thread", read_scope},
};

const char *taskvar_variable(enum taskvar var) {
	return table[var].variable;
}

const char *taskvar_option(enum taskvar var) {
	return table[var].option;
}

/* What is being read. */
struct reading {
	const struct taskvar_source *from;
	enum taskvar wrong;
	char *why;
	size_t size;
};

static int fail(struct reading *r, enum taskvar wrong, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct reading *r, enum taskvar wrong, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, r->size, format, args);
	va_end(args);
	r->wrong = wrong;
	return -EINVAL;
}

static int read_one(struct reading *r, enum taskvar var, struct taskvars *vars) {
	const struct taskvar_source *from = &r->from[var];
	int error = from->text ? table[var].read(from->text, vars) : 0;

	if (error == 0) {
		return 0;
	}
	return fail(r, var, "%s '%.64s' of %s%s%s: expected %s",
		    error == -ERANGE ? "value out of range" : "bad value", from->text,
		    *from->name == '-' ? "option '" : "", from->name, *from->name == '-' ? "'" : "",
		    table[var].expected);
}

/* Whether the values go together. */
static int check(struct reading *r, const struct taskvars *vars) {
	const struct taskvar_source *period = &r->from[TASKVAR_PERIOD],
				    *deadline = &r->from[TASKVAR_DEADLINE],
				    *offset = &r->from[TASKVAR_OFFSET],
				    *least = &r->from[TASKVAR_MIN_SMS],
				    *most = &r->from[TASKVAR_MAX_SMS];

	if (offset->text && !period->text) {
		return fail(r, TASKVAR_OFFSET,
			    "%s=%s needs a period (--period, SBEET_PERIOD): without one each job "
			    "is released when it is requested",
			    offset->name, offset->text);
	}
	if (vars->period && vars->deadline > vars->period) {
		return fail(r, TASKVAR_DEADLINE,
			    "%s=%s is longer than %s=%s: a job must end before the next one of its "
			    "task is released; sbeetd refuses such a task",
			    deadline->name, deadline->text, period->name, period->text);
	}
	if (vars->max_sms && vars->min_sms > vars->max_sms) {
		return fail(r, TASKVAR_MIN_SMS, "%s=%s is more than %s=%s", least->name,
			    least->text, most->name, most->text);
	}
	return 0;
}

int taskvars_read(struct taskvars *ret, const struct taskvar_source from[static _TASKVAR_N],
		  enum taskvar *ret_wrong, char *why, size_t size) {
	struct reading reading = {.from = from, .why = why, .size = size};
	struct taskvars vars = {0};
	int r = 0;

	for (enum taskvar var = 0; r == 0 && var < _TASKVAR_N; var++) {
		r = read_one(&reading, var, &vars);
	}
	if (r == 0) {
		r = check(&reading, &vars);
	}
	if (r < 0) {
		*ret_wrong = reading.wrong;
		return r;
	}
	if (!from[TASKVAR_CLASS].text && (vars.period || vars.deadline)) {
		vars.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	}
	*ret = vars;
	return 0;
}
