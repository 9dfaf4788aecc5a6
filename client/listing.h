/*
 * listing.h: a table as the command line wants it: --columns, --sort, --no-legend, --color, and the
 * width of the terminal. The same for every verb that prints one.
 */
#pragma once

#include "client/ctl.h"
#include "client/table.h"

/* For standard output. */
struct table_style listing_style(const struct ctl *ctl);

/* As --columns and --sort say. Return: an enum ctl_exit, after an error on stderr. */
int listing_arrange(const struct ctl *ctl, struct table *t);

/* Prints @t to standard output and frees it; an error calls it @what ("the profiles"). Return
 * likewise. */
int listing_print(const struct ctl *ctl, struct table *t, const char *what);

/* Both, arranged first. */
int listing_show(const struct ctl *ctl, struct table *t, const char *what);
