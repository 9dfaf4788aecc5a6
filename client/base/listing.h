/*
 * listing.h: what verbs print, as the command line wants it: --json, --columns, --sort,
 * --no-legend,
 * --color, and the width of the terminal. The same for every verb.
 */
#pragma once

#include "client/base/ctl.h"
#include "client/base/json.h"
#include "client/base/table.h"

/* For standard output. */
struct table_style listing_style(const struct ctl *ctl);

/* As --columns and --sort say. Return: an enum ctl_exit, after an error on stderr. */
int listing_arrange(const struct ctl *ctl, struct table *t);

/* Prints @t to standard output and frees it; an error calls it @what ("the profiles"). Return
 * likewise. */
int listing_print(const struct ctl *ctl, struct table *t, const char *what);

/* Both, arranged first. */
int listing_show(const struct ctl *ctl, struct table *t, const char *what);

/* JSON in the form that --json asks for, on standard output; takes over @value, of which NULL
 * stands for a failed allocation. Return likewise. */
int listing_json(const struct ctl *ctl, json_t *value);
