/*
 * test-task-spec.c: every field of a task is in the table, and goes through messages and texts
 * unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/task-text.h"

/* A value that is not the one of a task of which nothing is said. */
static const char *const examples[] = {
	[TASK_KIND_NAME] = "camera",  [TASK_KIND_CLASS] = "realtime", [TASK_KIND_SCOPE] = "thread",
	[TASK_KIND_TIME] = "20500us", [TASK_KIND_COUNT] = "7",	      [TASK_KIND_INT] = "5",
	[TASK_KIND_INDEX] = "3",      [TASK_KIND_JOBS] = "marks",     [TASK_KIND_FLAG] = "yes",
};

static const char *example(enum task_field field) {
	return examples[task_fields[field].kind];
}

static struct task_spec full(void) {
	struct task_spec spec = TASK_SPEC_NULL;

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		assert_int_equal(task_text_read(field, example(field), TASK_WRITER_ADMIN, &spec),
				 0);
	}
	return spec;
}

static void message_has_the_fields_of_the_table(void **state) {
	const ProtobufCMessageDescriptor *message = &sbeet__task_spec__descriptor;
	static const ProtobufCType types[] = {
		[TASK_KIND_NAME] = PROTOBUF_C_TYPE_STRING,
		[TASK_KIND_CLASS] = PROTOBUF_C_TYPE_ENUM,
		[TASK_KIND_TIME] = PROTOBUF_C_TYPE_UINT64,
		[TASK_KIND_COUNT] = PROTOBUF_C_TYPE_UINT32,
		[TASK_KIND_INT] = PROTOBUF_C_TYPE_INT32,
		[TASK_KIND_FLAG] = PROTOBUF_C_TYPE_UINT32,
		[TASK_KIND_INDEX] = PROTOBUF_C_TYPE_UINT32,
	};
	unsigned n = 0;

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		const struct task_field_row *row = &task_fields[field];
		const ProtobufCFieldDescriptor *found =
			protobuf_c_message_descriptor_get_field_by_name(message, row->wire);

		if (!found && *row->wire == '\0') {
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->type, types[row->kind]);
		assert_true(task_field_bit(field) == UINT32_C(1) << found->id);
		n++;
	}
	assert_int_equal(n, message->n_fields);
}

static void messages_carry_every_field(void **state) {
	struct task_spec spec = full(), copy;
	Sbeet__TaskSpec wire = SBEET__TASK_SPEC__INIT;

	task_spec_to_wire(&spec, &wire);
	task_spec_from_wire(&wire, &copy);
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		bool carried = task_field_on_wire(field, &wire);

		assert_false(task_field_equal(field, &spec, &TASK_SPEC_NULL));
		assert_true(task_field_equal(field, &copy, carried ? &spec : &TASK_SPEC_NULL));
	}
	sbeet__task_spec__init(&wire);
	task_spec_from_wire(&wire, &copy);
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		assert_true(task_field_equal(field, &copy, &TASK_SPEC_NULL));
	}
}

static void what_is_printed_is_read_again(void **state) {
	const struct task_spec specs[] = {full(), TASK_SPEC_NULL};
	char text[TASK_TEXT_MAX];

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		assert_string_equal(task_text_print(field, &specs[0], text), example(field));
		for (size_t i = 0; i < 2; i++) {
			struct task_spec copy = specs[1 - i];
			const char *printed = task_text_print(field, &specs[i], text);

			if (*printed) { /* no name: nothing to write */
				assert_int_equal(
					task_text_read(field, printed, TASK_WRITER_ADMIN, &copy),
					0);
				assert_true(task_field_equal(field, &copy, &specs[i]));
			}
		}
	}
}

static void nonsense_changes_nothing(void **state) {
	static const char *const texts[] = {"", "?", "-5000", "nonesuch ", "1 0", "none"};
	const struct task_spec spec = full();

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			struct task_spec copy = spec;
			int r = task_text_read(field, texts[i], TASK_WRITER_PROGRAM, &copy);

			if (task_fields[field].kind != TASK_KIND_NAME || i < 2) {
				assert_true(r < 0);
				assert_true(task_field_equal(field, &copy, &spec));
			}
		}
	}
}

static void programs_say_only_what_is_theirs(void **state) {
	struct task_spec spec = full(), before = spec;

	task_spec_keep_own(&spec);
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		assert_true(task_field_equal(
			field, &spec, task_fields[field].variable ? &before : &TASK_SPEC_NULL));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_has_the_fields_of_the_table),
		cmocka_unit_test(messages_carry_every_field),
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(nonsense_changes_nothing),
		cmocka_unit_test(programs_say_only_what_is_theirs),
	};

	return cmocka_run_group_tests_name("task-spec", tests, NULL, NULL);
}
