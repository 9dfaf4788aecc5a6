/*
 * task-text.c: see task-text.h.
 */
#include "proto/task-text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/validate.h"

static const char *const classes[] = {"best-effort", "realtime", NULL};
static const char *const scopes[] = {"process", "thread", NULL};
static const char *const jobs[] = {"auto", "marks", "operation", NULL};
static const char *const flags[] = {"no", "yes", NULL};

static int read_word(const char *text, const char *const *words, void *ret) {
	for (int i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*(int *)ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_time(const struct task_field_row *row, const char *text, enum task_writer writer,
		     nsec_t *ret) {
	nsec_t t;
	int r = units_parse_nsec(text, &t);

	if (r == 0 && writer == TASK_WRITER_PROGRAM && t < (nsec_t)row->least) {
		return -ERANGE;
	}
	/* An offset of 0 is one: it declares releases. A field that is 0 says that there is none. */
	t = t == 0 && row->least == 0 ? 1 : t;
	*ret = r == 0 ? t : *ret;
	return r;
}

/* How an administrator takes the field's value away; NULL: it always has one. */
static const char *none_word(const struct task_field_row *row) {
	switch (row->kind) {
	case TASK_KIND_TIME:
	case TASK_KIND_COUNT:
		return "none";
	case TASK_KIND_INDEX:
		return "any";
	default:
		return NULL;
	}
}

/* A profile of tasks.d may have any name that a file of profiles can have. */
static int read_name(const char *text, enum task_writer writer, char *ret) {
	if (writer == TASK_WRITER_PROGRAM ? validate_name(text) < 0
					  : !*text || validate_text(text, PROTO_NAME_MAX) < 0) {
		return -EINVAL;
	}
	snprintf(ret, sizeof(TASK_TYPE_NAME), "%s", text);
	return 0;
}

static int read_int(const struct task_field_row *row, const char *text, void *ret) {
	int64_t n;
	int r = units_parse_int(text, row->least, row->most, &n);

	if (r == 0) {
		*(int *)ret = (int)n;
	}
	return r;
}

/* As variables of the environment have it, and in words. */
static int read_flag(const char *text, void *ret) {
	static const char *const digits[] = {"0", "1", NULL};

	return read_word(text, digits, ret) == 0 ? 0 : read_word(text, flags, ret);
}

static int read_value(const struct task_field_row *row, const char *text, enum task_writer writer,
		      void *ret) {
	switch (row->kind) {
	case TASK_KIND_NAME:
		return read_name(text, writer, ret);
	case TASK_KIND_CLASS:
		return read_word(text, classes, ret);
	case TASK_KIND_SCOPE:
		return read_word(text, scopes, ret);
	case TASK_KIND_JOBS:
		return read_word(text, jobs, ret);
	case TASK_KIND_FLAG:
		return read_flag(text, ret);
	case TASK_KIND_TIME:
		return read_time(row, text, writer, ret);
	default:
		return read_int(row, text, ret);
	}
}

int task_text_read(enum task_field field, const char *text, enum task_writer writer,
		   struct task_spec *ret) {
	const struct task_field_row *row = &task_fields[field];
	const char *none = none_word(row);

	if (writer == TASK_WRITER_ADMIN && none && strcmp(text, none) == 0) {
		task_field_copy(field, &TASK_SPEC_NULL, ret);
		return 0;
	}
	return read_value(row, text, writer, task_field_of(field, ret));
}

static void say_time(const struct task_field_row *row, enum task_writer writer,
		     char ret[static TASK_TEXT_MAX]) {
	snprintf(ret, TASK_TEXT_MAX, "a time%s with a unit, such as %s",
		 writer == TASK_WRITER_PROGRAM && row->least ? " above 0" : "",
		 writer == TASK_WRITER_ADMIN ? "20ms"
		 : row->least		     ? "33ms, at most a day"
					     : "5ms, at most a day");
}

const char *task_text_expected(enum task_field field, enum task_writer writer,
			       char ret[static TASK_TEXT_MAX]) {
	const struct task_field_row *row = &task_fields[field];
	const char *none = writer == TASK_WRITER_ADMIN ? none_word(row) : NULL;
	size_t n;

	switch (row->kind) {
	case TASK_KIND_NAME:
		snprintf(ret, TASK_TEXT_MAX,
			 "1 to %d of A-Z a-z 0-9 . _ @ : + -, not starting with . or -",
			 PROTO_NAME_MAX);
		break;
	case TASK_KIND_CLASS:
		snprintf(ret, TASK_TEXT_MAX, "%s or %s", classes[1], classes[0]);
		break;
	case TASK_KIND_SCOPE:
		snprintf(ret, TASK_TEXT_MAX, "%s or %s", scopes[0], scopes[1]);
		break;
	case TASK_KIND_JOBS:
		snprintf(ret, TASK_TEXT_MAX, "%s or %s", jobs[0], jobs[1]);
		break;
	case TASK_KIND_FLAG:
		snprintf(ret, TASK_TEXT_MAX, "%s or %s", flags[1], flags[0]);
		break;
	case TASK_KIND_TIME:
		say_time(row, writer, ret);
		break;
	default:
		snprintf(ret, TASK_TEXT_MAX, "a whole number from %lld to %lld",
			 (long long)row->least, (long long)row->most);
		break;
	}
	n = strlen(ret);
	if (none) {
		snprintf(ret + n, TASK_TEXT_MAX - n, ", or %s", none);
	}
	return ret;
}

/* In the largest unit of which it is a whole number. */
static void print_time(nsec_t t, char ret[static TASK_TEXT_MAX]) {
	static const struct {
		nsec_t length;
		const char *name;
	} units[] = {{NSEC_PER_SEC, "s"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_USEC, "us"}, {1, "ns"}};
	size_t i = 0;

	while (t % units[i].length > 0) {
		i++;
	}
	snprintf(ret, TASK_TEXT_MAX, "%llu%s", (unsigned long long)(t / units[i].length),
		 units[i].name);
}

const char *task_text_print(enum task_field field, const struct task_spec *spec,
			    char ret[static TASK_TEXT_MAX]) {
	const struct task_field_row *row = &task_fields[field];
	const void *value = task_field_of(field, spec);

	if (none_word(row) && task_field_equal(field, spec, &TASK_SPEC_NULL)) {
		snprintf(ret, TASK_TEXT_MAX, "%s", none_word(row));
		return ret;
	}
	switch (row->kind) {
	case TASK_KIND_NAME:
		snprintf(ret, TASK_TEXT_MAX, "%s", (const char *)value);
		break;
	case TASK_KIND_CLASS:
		snprintf(ret, TASK_TEXT_MAX, "%s", classes[*(const int *)value]);
		break;
	case TASK_KIND_SCOPE:
		snprintf(ret, TASK_TEXT_MAX, "%s", scopes[*(const int *)value]);
		break;
	case TASK_KIND_JOBS:
		snprintf(ret, TASK_TEXT_MAX, "%s", jobs[*(const int *)value]);
		break;
	case TASK_KIND_FLAG:
		snprintf(ret, TASK_TEXT_MAX, "%s", flags[*(const unsigned *)value]);
		break;
	case TASK_KIND_TIME:
		print_time(*(const nsec_t *)value, ret);
		break;
	default:
		snprintf(ret, TASK_TEXT_MAX, "%d", *(const int *)value);
		break;
	}
	return ret;
}

void task_text_complain(enum task_field field, enum task_writer writer, int error, const char *name,
			const char *text, char *why, size_t size) {
	char expected[TASK_TEXT_MAX];
	bool option = *name == '-';

	snprintf(why, size, "%s '%.64s' of %s%s%s: expected %s",
		 error == -ERANGE ? "value out of range" : "bad value", text,
		 option ? "option '" : "", name, option ? "'" : "",
		 task_text_expected(field, writer, expected));
}
