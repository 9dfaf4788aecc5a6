/*
 * miss-log.h: tells the log of missed deadlines: of a program's first one at once, then once in ten
 * seconds with the number of those between, within the budget of its user.
 */
#pragma once

#include "proto/units.h"

struct job;

/* @job was complete after its deadline. */
void miss_log(const struct job *job, nsec_t now);
