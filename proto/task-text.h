/*
 * task-text.h: the text forms of a task's fields, the same wherever somebody writes them: in the
 * environment, as options, in tasks.d. Pure.
 */
#pragma once

#include "proto/task-spec.h"

/* Longest text that is printed or expected, with its NUL. */
#define TASK_TEXT_MAX 96

/*
 * Who writes. An administrator may write "none" where a program leaves the field out, and "any" of
 * an index.
 */
enum task_writer {
	TASK_WRITER_PROGRAM,
	TASK_WRITER_ADMIN,
};

/* Return: 0; -EINVAL: not in the form of the field; -ERANGE. @ret: only this field, untouched on
 * failure. */
int task_text_read(enum task_field field, const char *text, enum task_writer writer,
		   struct task_spec *ret);

/* What task_text_read() understands, to follow "expected". Returns @ret. */
const char *task_text_expected(enum task_field field, enum task_writer writer,
			       char ret[static TASK_TEXT_MAX]);

/* Its value in @spec as an administrator writes it: task_text_read() gives it back exactly. Returns
 * @ret. */
const char *task_text_print(enum task_field field, const struct task_spec *spec,
			    char ret[static TASK_TEXT_MAX]);

/* Says in one line what is wrong with @text of option or variable @name; @error: what
 * task_text_read() returned. */
void task_text_complain(enum task_field field, enum task_writer writer, int error, const char *name,
			const char *text, char *why, size_t size);
