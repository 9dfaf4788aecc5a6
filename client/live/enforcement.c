/*
 * enforcement.c: see enforcement.h.
 */
#include "client/live/enforcement.h"

const char *enforcement_name(Sbeet__Enforcement e) {
	switch (e) {
	case SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE:
		return "whole";
	case SBEET__ENFORCEMENT__ENFORCEMENT_SMID:
		return "smid";
	case SBEET__ENFORCEMENT__ENFORCEMENT_COUNT:
		return "count";
	case SBEET__ENFORCEMENT__ENFORCEMENT_GREEN:
		return "green";
	default:
		return "none";
	}
}

bool enforcement_is_exact(Sbeet__Enforcement e) {
	return e == SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE ||
	       e == SBEET__ENFORCEMENT__ENFORCEMENT_SMID ||
	       e == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
}
