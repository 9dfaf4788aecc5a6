/*
 * findings.h: what the facts mean: a state, a line and a command for each check. Pure.
 */
#pragma once

#include <stddef.h>

#include "client/doctor/facts.h"

enum finding_state {
	FINDING_OK,
	FINDING_NOTE,	 /* programs can be managed; something could be better */
	FINDING_MISSING, /* programs can't be managed as long as this is so */
};

#define FINDING_COMMAND 512

struct finding {
	const char *name; /* of the check: "driver" */
	enum finding_state state;
	char text[1280];	       /* one line */
	char command[FINDING_COMMAND]; /* to type; empty: none helps */
};

#define FINDINGS_MAX 16

/* "ok", "note", "missing". */
const char *finding_state_name(enum finding_state state);

/* The findings of all checks, in their order. Return: their number. */
size_t findings_judge(const struct facts *f, struct finding ret[static FINDINGS_MAX]);
