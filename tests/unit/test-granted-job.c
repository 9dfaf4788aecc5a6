/*
 * test-granted-job.c: a granted job survives its way over the wire, whole.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "example-job.h"
#include "proto/granted-job.h"

static void granted_job_is_the_same_after_the_wire(void **state) {
	struct granted_job before = example_job(), after;
	uint8_t sms[32], packed[512];
	Sbeet__Held held, *read;
	size_t n;

	granted_job_to_wire(&before, sms, &held);
	n = sbeet__held__pack(&held, packed);
	read = sbeet__held__unpack(NULL, n, packed);
	assert_non_null(read);
	memset(&after, 0xff, sizeof(after));
	assert_int_equal(granted_job_from_wire(read, &after), 0);
	assert_memory_equal(&after, &before, sizeof(after));
	sbeet__held__free_unpacked(read, NULL);
}

/* A field of the message that the record does not know would be lost at each restart. */
static void granted_job_has_all_fields_of_the_message(void **state) {
	struct granted_job before = example_job();
	uint8_t sms[32], packed[512];
	Sbeet__Held held;
	unsigned seen = 0;
	size_t n;

	granted_job_to_wire(&before, sms, &held);
	n = sbeet__held__pack(&held, packed);
	for (unsigned i = 0; i < sbeet__held__descriptor.n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &sbeet__held__descriptor.fields[i];
		const uint8_t *value = (const uint8_t *)&held + f->offset;

		if (f->type == PROTOBUF_C_TYPE_BYTES) {
			seen += ((const ProtobufCBinaryData *)value)->len > 0;
		} else if (f->type == PROTOBUF_C_TYPE_UINT64) {
			seen += *(const uint64_t *)value != 0;
		} else {
			seen += *(const uint32_t *)value != 0;
		}
	}
	assert_true(n > 0);
	assert_int_equal(seen, sbeet__held__descriptor.n_fields);
}

static void granted_job_from_wire_refuses_what_names_no_sm(void **state) {
	struct granted_job before = example_job(), after = {.number = 77};
	uint8_t sms[32], long_set[33] = {1};
	Sbeet__Held held;

	granted_job_to_wire(&before, sms, &held);
	held.sms.len = 0;
	assert_int_equal(granted_job_from_wire(&held, &after), -EINVAL);
	held.sms.data = long_set;
	held.sms.len = sizeof(long_set);
	assert_int_equal(granted_job_from_wire(&held, &after), -EINVAL);
	held.sms.len = 1;
	held.gpu_uuid.len = 3;
	assert_int_equal(granted_job_from_wire(&held, &after), -EINVAL);
	assert_int_equal(after.number, 77); /* untouched */
	held.gpu_uuid.len = PROTO_UUID_BYTES;
	assert_int_equal(granted_job_from_wire(&held, &after), 0);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(granted_job_is_the_same_after_the_wire),
		cmocka_unit_test(granted_job_has_all_fields_of_the_message),
		cmocka_unit_test(granted_job_from_wire_refuses_what_names_no_sm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
