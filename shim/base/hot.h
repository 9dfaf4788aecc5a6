/*
 * hot.h: what each launch, and each start and end of a job use, stands together, code and data, so
 * that a program which comes back from a pause has few cache lines and pages to fetch.
 * tests/bench/count-launch.sh counts them.
 */
#pragma once

#include "proto/hot.h"

/* Before one that is a part of such a function. */
#define HOT_INLINE static inline __attribute__((always_inline))

/* What is so for most launches. */
#define HOT_EXPECT(condition) __builtin_expect(condition, true)

/* Before a variable that is not thread-local: hardly ever written, and of these what each launch
 * reads; or written by each job. Of a large one only the begin should be used often. */
#define HOT_LAUNCH  __attribute__((section("sbeet_hot_launch")))
#define HOT_DATA    __attribute__((section("sbeet_hot")))
#define HOT_WRITTEN __attribute__((section("sbeet_hot_written")))
