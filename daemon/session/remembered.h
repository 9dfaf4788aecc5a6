/*
 * remembered.h: what is known of programs with a deadline that have ended: one that is started
 * again, after a crash or an update, goes on where the one before has ended, as far as terms are
 * concerned. It is taken for the same if user, program, task and times are.
 *
 * Only so many are remembered, the latest: users who end more of them than that at once make sbeetd
 * learn about the others again, no more.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/session/work-seen.h"
#include "proto/limits.h"
#include "proto/units.h"

/* Programs, about as many as are there at once. */
#define REMEMBERED_MAX 64

/* Long enough to start a program that loads a large model. */
#define REMEMBERED_FOR (300 * NSEC_PER_SEC)

struct remembered_program {
	uid_t uid;
	char program[PROTO_NAME_MAX + 1], task[PROTO_NAME_MAX + 1];
	nsec_t period, deadline;
};

struct remembered_entry {
	struct remembered_program who;
	uint64_t line; /* see struct session; 0: the entry is free */
	struct work_seen seen;
	nsec_t ended;
};

/* All 0 at first. */
struct remembered {
	struct remembered_entry entries[REMEMBERED_MAX];
};

/* It has ended @now, and no session has @line, which is not 0, any more. */
void remembered_add(struct remembered *r, const struct remembered_program *who, uint64_t line,
		    const struct work_seen *seen, nsec_t now);

/* It is there again. Of several the last one that has ended is forgotten here, and told. Return:
 * false if nothing is known. */
bool remembered_take(struct remembered *r, const struct remembered_program *who, nsec_t now,
		     uint64_t *ret_line, struct work_seen *ret_seen);
