/*
 * verbs.c: the table; see verb.h.
 */
#include "client/verb.h"

const struct verb *const verbs[] = {
#define VERB(file, name) &verb_##name,
#include "client/verbs.def"
	NULL,
};
