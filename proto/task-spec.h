/*
 * task-spec.h: what is said of a task, by its program or by an administrator, and the table of its
 * fields: see task-spec.def. Text forms are in task-text.h, bounds of messages in validate.c. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/job-spec.h"
#include "proto/limits.h"
#include "sbeet.pb-c.h"

enum task_kind {
	TASK_KIND_NAME,
	TASK_KIND_CLASS,
	TASK_KIND_SCOPE,
	TASK_KIND_JOBS,
	TASK_KIND_TIME,
	TASK_KIND_COUNT,
	TASK_KIND_INT,
	TASK_KIND_FLAG,
	TASK_KIND_INDEX,
};

/* What makes a job of operations. */
enum task_jobs {
	TASK_JOBS_AUTO,	     /* the first one, until the program has waited or is quiet */
	TASK_JOBS_MARKS,     /* what it marks, alone: see sbeet.h */
	TASK_JOBS_OPERATION, /* each launch and each copy by itself */
};

typedef char task_kind_name[PROTO_NAME_MAX + 1];
typedef Sbeet__TaskClass task_kind_class;
typedef Sbeet__Scope task_kind_scope;
typedef enum task_jobs task_kind_jobs;

#define TASK_TYPE_NAME	task_kind_name
#define TASK_TYPE_CLASS task_kind_class
#define TASK_TYPE_SCOPE task_kind_scope
#define TASK_TYPE_JOBS	task_kind_jobs

/* The members are the fields: name, task_class, period and so on. */
struct task_spec {
	struct job_spec job;
#define JOB_FIELD(NAME, member, kind, ...)
#define TASK_FIELD(NAME, member, kind, ...)  TASK_TYPE_##kind member;
#define OWN_FIELD(NAME, member, kind, ...)   TASK_TYPE_##kind member;
#define GIVEN_FIELD(NAME, member, kind, ...) TASK_TYPE_##kind member;
#include "proto/task-spec.def"
};

/* Nothing is said. */
#define TASK_SPEC_NULL ((struct task_spec){.gpu = -1})

enum task_field {
#define TASK_FIELD(NAME, ...)  TASK_FIELD_##NAME,
#define OWN_FIELD(NAME, ...)   TASK_FIELD_##NAME,
#define GIVEN_FIELD(NAME, ...) TASK_FIELD_##NAME,
#include "proto/task-spec.def"
	_TASK_FIELD_N,
};

struct task_field_row {
	const char *key;      /* "min-sms" */
	const char *option;   /* "--min-sms" */
	const char *variable; /* "SBEET_MIN_SMS"; NULL: a program does not say it */
	const char *wire;     /* "min_sms" */
	const char *help;     /* for an administrator; NULL: only the program says it */
	enum task_kind kind;
	int64_t least, most;
	size_t offset; /* in struct task_spec */
};

extern const struct task_field_row task_fields[_TASK_FIELD_N];

/* The field's member of @spec, of the type of its kind. */
static inline void *task_field_of(enum task_field field, const struct task_spec *spec) {
	return (char *)spec + task_fields[field].offset;
}

/* Its place in @wire; NULL: it is not in TaskSpec. */
const void *task_field_on_wire(enum task_field field, const Sbeet__TaskSpec *wire);

/* Its bit in TaskChange.mask: 1 << its number in TaskSpec; 0: it is not there. */
uint32_t task_field_bit(enum task_field field);

bool task_field_equal(enum task_field field, const struct task_spec *a, const struct task_spec *b);
void task_field_copy(enum task_field field, const struct task_spec *from, struct task_spec *to);

/* @ret: initialised; borrows texts of @spec. */
void task_spec_to_wire(const struct task_spec *spec, Sbeet__TaskSpec *ret);

/* @wire: validated. */
void task_spec_from_wire(const Sbeet__TaskSpec *wire, struct task_spec *ret);

/* Takes away what a program may not say of itself. */
void task_spec_keep_own(struct task_spec *spec);
