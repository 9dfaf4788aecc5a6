/*
 * table-file.h: the schedule of policy `table` from the file that `sbeetctl plan --table` writes:
 *
 *	{"hyperperiod_ns": 100000000,
 *	 "jobs": [{"task": "camera", "gpu": 0, "sms": "0-15", "start_ns": 0, "length_ns": 5000000}]}
 */
#pragma once

#include "daemon/core/timetable.h"

struct table_file;

/* Return: 0; -ENOMEM, -EINVAL or why the file can't be read, a negative errno, with @why. Whether
 * there are such GPUs is for timetable_check(). */
int table_file_new(struct table_file **ret, const char *path, char *why, size_t size);

/* Takes NULL. Nobody may follow its table any more. */
struct table_file *table_file_free(struct table_file *f);

struct timetable *table_file_table(struct table_file *f);

/* The number that the table has for the task of this name; 0: it is not in it. Takes NULL. */
unsigned table_file_task(const struct table_file *f, const char *name);
