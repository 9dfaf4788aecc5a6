/*
 * taskfile.h: tasks that the administrator describes: one tasks.d/NAME.conf each.
 *
 *	[match]  which programs are this task; all keys that are there must fit. None: those that
 *	         call themselves so (SBEET_TASK, or the executable's name)
 *	[task]   what the task is, whatever the program says of itself
 *
 * The first file in the order of their names that fits is the one that counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/task-spec.h"

#define TASKFILES_MAX	  256
#define TASKFILE_TEXT_MAX 200 /* longer than any line */

enum taskfile_key {
	TASKFILE_EXECUTABLE,
	TASKFILE_NAME,
	TASKFILE_UNIT,
	TASKFILE_CGROUP,
	_TASKFILE_MATCH_N,

	_TASKFILE_BEFORE_TASK = _TASKFILE_MATCH_N - 1,
#define TASK_FIELD(NAME, ...)  TASKFILE_##NAME,
#define GIVEN_FIELD(NAME, ...) TASKFILE_##NAME,
#include "proto/task-spec.def"
	_TASKFILE_KEY_N,
};

/* Rows by enum taskfile_key. */
extern const struct taskfile_row {
	const char *section, *key, *help;
	const char *expected;  /* of [match] */
	enum task_field field; /* of [task] */
} taskfile_table[_TASKFILE_KEY_N];

struct taskfile {
	char name[PROTO_NAME_MAX + 1];
	char file[PROTO_NAME_MAX + 8]; /* in tasks.d/ */
	struct {
		bool set;
		unsigned line;
		char text[TASKFILE_TEXT_MAX];
	} values[_TASKFILE_KEY_N];
	struct task_spec task; /* the values of [task] that are set */
};

/* What is known of a program. Texts may be empty. */
struct taskfile_program {
	const char *executable; /* path */
	const char *name;	/* of its task, as it says itself */
	const char *cgroup;	/* path */
};

#define TASKFILE_E_SECTION 1
#define TASKFILE_E_KEY	   2

/* @name: valid. */
void taskfile_init(struct taskfile *t, const char *name);

/* Return: 0, one of the above, or -EINVAL: @why says what was expected. */
int taskfile_set(struct taskfile *t, const char *section, const char *key, const char *value,
		 unsigned line, char *why, size_t why_size);

/* When all is set: whether the values go together. Return: 0, or -EINVAL with @why. */
int taskfile_check(const struct taskfile *t, char *why, size_t why_size);

bool taskfile_matches(const struct taskfile *t, const struct taskfile_program *program);

/* What is set goes over what is there. */
void taskfile_apply(const struct taskfile *t, struct task_spec *task);
