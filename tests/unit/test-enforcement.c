/*
 * test-enforcement.c: the list of enforcements matches the wire format and the promises that the
 * manual makes.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/enforcement.h"

#define E(value)   SBEET__ENFORCEMENT__ENFORCEMENT_##value
#define BIT(value) ENFORCEMENT_BIT(value)

static void enforcement_has_a_row_for_each_value_of_the_protocol(void **state) {
	const ProtobufCEnumDescriptor *d = &sbeet__enforcement__descriptor;

	assert_int_equal(d->n_values, ENFORCEMENT_N);
	for (unsigned i = 0; i < d->n_values; i++) {
		const char *name = enforcement_name((Sbeet__Enforcement)d->values[i].value);
		const char *wire = d->values[i].name + strlen("ENFORCEMENT_");

		assert_int_equal(d->values[i].value, i);
		assert_int_equal(strcasecmp(name, wire), 0);
		for (const char *c = name; *c; c++) {
			assert_true(islower((unsigned char)*c));
		}
	}
}

static void enforcement_keeps_its_promises(void **state) {
	assert_int_equal(ENFORCEMENT_WITH(ENFORCEMENT_EXACT), BIT(WHOLE) | BIT(SMID) | BIT(GREEN));
	assert_int_equal(ENFORCEMENT_WITH(ENFORCEMENT_CONFINES),
			 BIT(SMID) | BIT(COUNT) | BIT(GREEN));
	assert_int_equal(ENFORCEMENT_WITH(ENFORCEMENT_BETWEEN),
			 BIT(WHOLE) | BIT(COUNT) | BIT(GREEN));
	assert_int_equal(ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN), BIT(SMID) | BIT(COUNT));
	assert_int_equal(ENFORCEMENT_WITH(ENFORCEMENT_IN_GROUPS), BIT(GREEN));
	assert_int_equal(ENFORCEMENT_ANY, BIT(WHOLE) | BIT(SMID) | BIT(COUNT) | BIT(GREEN));
	assert_true(enforcement_has(E(GREEN), ENFORCEMENT_EXACT));
	assert_false(enforcement_has(E(COUNT), ENFORCEMENT_EXACT));
	assert_false(enforcement_has(E(NONE), ENFORCEMENT_EXACT));
}

static void enforcement_is_none_when_unknown(void **state) {
	for (int e = ENFORCEMENT_N; e < 70; e++) {
		assert_string_equal(enforcement_name((Sbeet__Enforcement)e), "none");
		assert_false(enforcement_has((Sbeet__Enforcement)e, ENFORCEMENT_EXACT));
	}
	assert_string_equal(enforcement_name((Sbeet__Enforcement)-1), "none");
	assert_false(enforcement_has((Sbeet__Enforcement)-1, ENFORCEMENT_CONFINES));
}

static void enforcement_of_part_prefers_exact_sets(void **state) {
	uint32_t all = ENFORCEMENT_ANY | 1u << 31; /* a newer shim's bit counts for nothing */

	assert_int_equal(enforcement_of_part(all, false, false), E(SMID));
	assert_int_equal(enforcement_of_part(all, false, true), E(SMID));
	assert_int_equal(enforcement_of_part(all, true, true), E(GREEN));
	assert_int_equal(enforcement_of_part(all, true, false), E(COUNT));
	assert_int_equal(enforcement_of_part(all & ~BIT(GREEN), true, true), E(COUNT));
}

static void enforcement_of_part_is_none_where_there_is_no_way(void **state) {
	assert_int_equal(enforcement_of_part(0, true, true), E(NONE));
	assert_int_equal(enforcement_of_part(BIT(WHOLE), true, true), E(NONE));
	assert_int_equal(enforcement_of_part(BIT(WHOLE), false, true), E(NONE));
	assert_int_equal(enforcement_of_part(BIT(COUNT) | BIT(GREEN), false, true), E(NONE));
	assert_int_equal(enforcement_of_part(BIT(SMID), true, true), E(NONE));
	assert_int_equal(enforcement_of_part(BIT(GREEN), true, false), E(NONE));
}

static void enforcement_kept_is_none_once_work_ran_outside(void **state) {
	assert_int_equal(enforcement_kept(E(GREEN), false), E(GREEN));
	assert_int_equal(enforcement_kept(E(GREEN), true), E(NONE));
	assert_int_equal(enforcement_kept(E(COUNT), true), E(NONE));
	assert_int_equal(enforcement_kept(E(WHOLE), true), E(WHOLE));
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(enforcement_has_a_row_for_each_value_of_the_protocol),
		cmocka_unit_test(enforcement_keeps_its_promises),
		cmocka_unit_test(enforcement_is_none_when_unknown),
		cmocka_unit_test(enforcement_of_part_prefers_exact_sets),
		cmocka_unit_test(enforcement_of_part_is_none_where_there_is_no_way),
		cmocka_unit_test(enforcement_kept_is_none_once_work_ran_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
