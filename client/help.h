/*
 * help.h: --help, printed from the tables.
 */
#pragma once

#include "client/verb.h"

/* Help for @verb, or for the whole program if it is NULL, on stdout. */
void help_print(const struct verb *const *table, const struct verb *verb);

/* The verbs that begin with the word @noun: "gpu". */
void help_print_noun(const struct verb *const *table, const char *noun);
