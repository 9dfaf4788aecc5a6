/*
 * enforcement.c: see enforcement.h.
 */
#include "proto/enforcement.h"

#include <strings.h>

#define NAME(value, name, traits, argument) [SBEET__ENFORCEMENT__ENFORCEMENT_##value] = name,

static const char *const names[ENFORCEMENT_N] = {ENFORCEMENTS(NAME, )};

#undef NAME

const char *enforcement_name(Sbeet__Enforcement e) {
	return names[(unsigned)e < ENFORCEMENT_N ? e : SBEET__ENFORCEMENT__ENFORCEMENT_NONE];
}

Sbeet__Enforcement enforcement_of_part(uint32_t can, bool between, bool in_groups) {
	uint32_t mask = can & ENFORCEMENT_WITH(ENFORCEMENT_CONFINES);

	mask &= between ? ENFORCEMENT_WITH(ENFORCEMENT_BETWEEN)
			: ~ENFORCEMENT_WITH(ENFORCEMENT_BETWEEN);
	if (!in_groups) {
		mask &= ~ENFORCEMENT_WITH(ENFORCEMENT_IN_GROUPS);
	}
	if (mask & ENFORCEMENT_WITH(ENFORCEMENT_EXACT)) {
		mask &= ENFORCEMENT_WITH(ENFORCEMENT_EXACT);
	}
	return mask ? (Sbeet__Enforcement)(ffs((int)mask) - 1)
		    : SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
}
