/*
 * test-client-measuring.c: which numbers of SMs `sbeetctl profile run` measures if nobody says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "client/measuring.h"

static void eighths_are_numbers_that_can_be_had(void **state) {
	static const struct {
		struct measuring_parts parts;
		size_t n;
		unsigned sms[8];
	} cases[] = {
		{{46, 1, 1, 46}, 8, {5, 11, 17, 23, 28, 34, 40, 46}},
		{{46, 4, 4, 36}, 7, {4, 8, 16, 20, 28, 32, 46}}, /* the last 10 are one group */
		{{132, 16, 16, 112}, 8, {16, 32, 48, 64, 80, 96, 112, 132}},
		{{24, 16, 16, 24}, 2, {16, 24}},
		{{8, 8, 8, 8}, 1, {8}},
		{{3, 1, 1, 3}, 3, {1, 2, 3}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned sms[PROTO_SMS_MAX];

		assert_int_equal(measuring_eighths(&cases[i].parts, sms), cases[i].n);
		for (size_t k = 0; k < cases[i].n; k++) {
			assert_int_equal(sms[k], cases[i].sms[k]);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eighths_are_numbers_that_can_be_had),
	};

	return cmocka_run_group_tests_name("client-measuring", tests, NULL, NULL);
}
