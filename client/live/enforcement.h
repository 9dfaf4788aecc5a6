/*
 * enforcement.h: how SMs are held, in words.
 */
#pragma once

#include <stdbool.h>

#include "sbeet.pb-c.h"

/* "whole", "smid", "count", "green", "none". */
const char *enforcement_name(Sbeet__Enforcement e);

/* Whether a set that is held so names the very SMs; else just their number means anything. */
bool enforcement_is_exact(Sbeet__Enforcement e);
