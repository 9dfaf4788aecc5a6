/*
 * task-spec.c: see task-spec.h.
 */
#include "proto/task-spec.h"

#include <stdio.h>
#include <string.h>

#define ROW(NAME, member, kind_, least_, most_, key_, wire_, variable_, help_) \
	[TASK_FIELD_##NAME] = {.key = (key_),                                  \
			       .option = "--" key_,                            \
			       .variable = (variable_),                        \
			       .wire = (wire_),                                \
			       .help = (help_),                                \
			       .kind = TASK_KIND_##kind_,                      \
			       .least = (least_),                              \
			       .most = (most_),                                \
			       .offset = offsetof(struct task_spec, member)},

const struct task_field_row task_fields[_TASK_FIELD_N] = {
#define JOB_FIELD(NAME, member, kind, least, most, key, wire, own_help, help) \
	ROW(NAME, job.member, kind, least, most, key, wire, "SBEET_" #NAME, help)
#define TASK_FIELD(NAME, member, kind, least, most, key, wire, own_help, help) \
	ROW(NAME, member, kind, least, most, key, wire, "SBEET_" #NAME, help)
#define OWN_FIELD(NAME, member, kind, least, most, key, wire, own_help, letter) \
	ROW(NAME, member, kind, least, most, key, wire, "SBEET_" #NAME, NULL)
#define GIVEN_FIELD(NAME, member, kind, least, most, key, wire, help) \
	ROW(NAME, member, kind, least, most, key, wire, NULL, help)
#include "proto/task-spec.def"
};

static const ProtobufCFieldDescriptor *find(enum task_field field) {
	return protobuf_c_message_descriptor_get_field_by_name(&sbeet__task_spec__descriptor,
							       task_fields[field].wire);
}

const void *task_field_on_wire(enum task_field field, const Sbeet__TaskSpec *wire) {
	const ProtobufCFieldDescriptor *found = find(field);

	return found ? (const char *)wire + found->offset : NULL;
}

uint32_t task_field_bit(enum task_field field) {
	const ProtobufCFieldDescriptor *found = find(field);

	return found ? UINT32_C(1) << found->id : 0;
}

/* Of its member; also of its place in a message, but for names. */
static size_t size_of(enum task_field field) {
	static const size_t sizes[] = {
		[TASK_KIND_NAME] = sizeof(TASK_TYPE_NAME),
		[TASK_KIND_CLASS] = sizeof(TASK_TYPE_CLASS),
		[TASK_KIND_SCOPE] = sizeof(TASK_TYPE_SCOPE),
		[TASK_KIND_JOBS] = sizeof(TASK_TYPE_JOBS),
		[TASK_KIND_TIME] = sizeof(TASK_TYPE_TIME),
		[TASK_KIND_COUNT] = sizeof(TASK_TYPE_COUNT),
		[TASK_KIND_INT] = sizeof(TASK_TYPE_INT),
		[TASK_KIND_FLAG] = sizeof(TASK_TYPE_FLAG),
		[TASK_KIND_INDEX] = sizeof(TASK_TYPE_INDEX),
	};

	return sizes[task_fields[field].kind];
}

void task_field_copy(enum task_field field, const struct task_spec *from, struct task_spec *to) {
	memcpy(task_field_of(field, to), task_field_of(field, from), size_of(field));
}

bool task_field_equal(enum task_field field, const struct task_spec *a, const struct task_spec *b) {
	const void *x = task_field_of(field, a), *y = task_field_of(field, b);

	return task_fields[field].kind == TASK_KIND_NAME ? strcmp(x, y) == 0
							 : memcmp(x, y, size_of(field)) == 0;
}

void task_spec_to_wire(const struct task_spec *spec, Sbeet__TaskSpec *ret) {
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		void *to = (void *)task_field_on_wire(field, ret);
		void *from = task_field_of(field, spec);

		if (!to) {
			continue;
		}
		if (task_fields[field].kind == TASK_KIND_NAME) {
			*(char **)to = from;
		} else if (task_fields[field].kind == TASK_KIND_INDEX) {
			*(uint32_t *)to = (uint32_t)(*(int *)from + 1);
		} else {
			memcpy(to, from, size_of(field));
		}
	}
}

void task_spec_from_wire(const Sbeet__TaskSpec *wire, struct task_spec *ret) {
	*ret = TASK_SPEC_NULL;
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		const void *from = task_field_on_wire(field, wire);
		void *to = task_field_of(field, ret);

		if (!from) {
			continue;
		}
		if (task_fields[field].kind == TASK_KIND_NAME) {
			snprintf(to, size_of(field), "%s", *(char *const *)from);
		} else if (task_fields[field].kind == TASK_KIND_INDEX) {
			*(int *)to = (int)*(const uint32_t *)from - 1;
		} else {
			memcpy(to, from, size_of(field));
		}
	}
}

void task_spec_keep_own(struct task_spec *spec) {
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		if (!task_fields[field].variable) {
			task_field_copy(field, &TASK_SPEC_NULL, spec);
		}
	}
}
