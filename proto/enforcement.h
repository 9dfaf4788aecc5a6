/*
 * enforcement.h: the ways to hold a job on its SMs, and what each one promises.
 *
 * The list below is the only place that says so: names, masks and choices are made from it. A new
 * enforcement needs a number in sbeet.proto, a row here, the code in shim/enforce/ that makes it
 * true, with enforce_mask() there, and an entry in sbeet-protocol(7); one that is not BY_TWIN also
 * what it can hold in can_keep() of shim/op.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sbeet.pb-c.h"

enum enforcement_trait {
	/* The job runs on the very SMs of its set; without it, on as many. */
	ENFORCEMENT_EXACT = 1u << 0,
	/* The job stays on a part of the GPU. */
	ENFORCEMENT_CONFINES = 1u << 1,
	/* It does so beside other processes (MPS); without it, only beside jobs of its own. */
	ENFORCEMENT_BETWEEN = 1u << 2,
	/* Kernel by kernel, each through its twin (shim/enforce/twin.h). */
	ENFORCEMENT_BY_TWIN = 1u << 3,
	/* The set must be made of whole groups of SMs (sm_step of a Request). */
	ENFORCEMENT_IN_GROUPS = 1u << 4,
};

/* X(value, name, traits, argument). Of several that serve, the exact ones come first, then the
 * lower number. */
#define ENFORCEMENTS(X, argument)                                                                 \
	X(NONE, "none", 0u, argument)                                                             \
	X(WHOLE, "whole", ENFORCEMENT_EXACT | ENFORCEMENT_BETWEEN, argument)                      \
	X(SMID, "smid", ENFORCEMENT_EXACT | ENFORCEMENT_CONFINES | ENFORCEMENT_BY_TWIN, argument) \
	X(COUNT, "count", ENFORCEMENT_CONFINES | ENFORCEMENT_BETWEEN | ENFORCEMENT_BY_TWIN,       \
	  argument)                                                                               \
	X(GREEN, "green",                                                                         \
	  ENFORCEMENT_EXACT | ENFORCEMENT_CONFINES | ENFORCEMENT_BETWEEN | ENFORCEMENT_IN_GROUPS, \
	  argument)

#define ENFORCEMENT_ADD_ONE(value, name, traits, argument) +1
#define ENFORCEMENT_ADD_BIT(value, name, traits, wanted) \
	| (((traits) & (wanted)) ? ENFORCEMENT_BIT(value) : 0u)

/* How many there are, NONE included. */
enum { ENFORCEMENT_N = 0 ENFORCEMENTS(ENFORCEMENT_ADD_ONE, ) };

/* The bit of the enforcement @value (WHOLE, SMID, ...) in a mask. */
#define ENFORCEMENT_BIT(value) (1u << SBEET__ENFORCEMENT__ENFORCEMENT_##value)

/* The mask of those that have one of @traits: a constant. */
#define ENFORCEMENT_WITH(traits) (0u ENFORCEMENTS(ENFORCEMENT_ADD_BIT, traits))

/* The mask of all that promise anything: all but NONE. */
#define ENFORCEMENT_ANY ENFORCEMENT_WITH(ENFORCEMENT_EXACT | ENFORCEMENT_CONFINES)

/* Whether @e has @trait. One that is unknown has none. */
static inline bool enforcement_has(Sbeet__Enforcement e, enum enforcement_trait trait) {
	return (unsigned)e < ENFORCEMENT_N && (ENFORCEMENT_WITH(trait) >> e & 1u);
}

/* As users and JSON see it: "whole", "smid", ...; "none" for one that is unknown. */
const char *enforcement_name(Sbeet__Enforcement e);

/*
 * The best way to hold a job on a part of a GPU. @can: the mask of what its process can do.
 * @between: other processes use the GPU as well. @in_groups: the part is made of groups that the
 * process can use. Return: NONE if there is no way.
 */
Sbeet__Enforcement enforcement_of_part(uint32_t can, bool between, bool in_groups);

/* What holds a job that was granted @e, if part of its work ran @unconfined. */
static inline Sbeet__Enforcement enforcement_kept(Sbeet__Enforcement e, bool unconfined) {
	return unconfined && e != SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE
		       ? SBEET__ENFORCEMENT__ENFORCEMENT_NONE
		       : e;
}
