/*
 * point.c: see point.h.
 */
#include "shim/point.h"

#include "shim/base/hot.h"

HOT_WRITTEN _Atomic point_t point_clock = 1;
