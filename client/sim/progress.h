/*
 * progress.h: a line on the terminal that says how far a long computation has come.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/units.h"

struct progress {
	nsec_t since; /* when the computation began */
	const char *units;
	bool shown;
};

/* @userdata: a struct progress. Writes the line over and over on stderr. */
void progress_show(void *userdata, size_t done, size_t all);

/* Removes the line, if there is one. */
void progress_end(const struct progress *p);
