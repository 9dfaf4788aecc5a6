/*
 * segments.h: a set of tasks with CPU and GPU segments from a JSON file, ready to be analysed.
 *
 * sbeet-scenario(5) documents the form.
 */
#pragma once

#include "client/sim/imports.h"
#include "daemon/core/analysis/rta.h"

struct segments {
	struct rta_set set; /* tasks by priority, as rta.h wants them; sums filled in */
	char **names;	    /* owned; in the same order */
};

/*
 * @file: its name, for errors. @epsilon: stands for the file's; RTA_FOREVER: the file must have it.
 * @from: how to open the profiles that it imports.
 * Return: 0; -EINVAL with one line in @error; -ENOMEM.
 */
int segments_init(struct segments *ret, const char *file, const char *text, size_t size,
		  nsec_t epsilon, const struct imports *from, char *error, size_t error_size);
void segments_deinit(struct segments *s);
