/*
 * plan-table.h: the schedule of a hyperperiod as a file for sbeetd's policy `table`: see
 * daemon/gpu/table-file.h.
 */
#pragma once

#include "client/sim/planning.h"

/* Writes that of @p, in which all are in time for ever, to @path; "-": stdout. Return: an enum
 * ctl_exit, after an error on stderr. */
int plan_table_write(const struct scenario *s, const struct planning *p, const char *path);
