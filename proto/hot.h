/*
 * hot.h: functions that the shim calls for each launch, or for each start and end of a job: see
 * shim/base/hot.h.
 */
#pragma once

/* Before a function's definition: it stands with the others. */
#define HOT_CODE __attribute__((hot))
