/*
 * job-spec.h: what each job takes over from its task as it is: the JOB_FIELDs of task-spec.def. All
 * zero: nothing is said. Pure.
 */
#pragma once

#include "proto/units.h"

#define TASK_TYPE_TIME	nsec_t
#define TASK_TYPE_COUNT unsigned
#define TASK_TYPE_INT	int
#define TASK_TYPE_FLAG	unsigned /* 0 or 1 */
#define TASK_TYPE_INDEX int

/* The members are the fields: priority, min_sms, max_sms and so on. */
struct job_spec {
#define TASK_FIELD(NAME, member, kind, ...)
#define JOB_FIELD(NAME, member, kind, ...) TASK_TYPE_##kind member;
#include "proto/task-spec.def"
};
