/*
 * test-gate.c: in which programs streams wait beside others. The environment is read once a
 * process, so each is looked at in a child.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/gate.h"
#include "shim/place.h"

static unsigned n_streams;

unsigned __wrap_place_count(void);
unsigned __wrap_place_count(void) {
	return n_streams;
}

/* Of a program with up to @most streams, in this order: whether others go on exactly in the first
 * @n cases. */
static bool go_on_until(const char *connections, unsigned n, unsigned most) {
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		bool right = true;

		if (connections) {
			setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
		} else {
			unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
		}
		for (n_streams = 1; n_streams <= most; n_streams++) {
			right &= gate_others_go_on() == (n_streams <= n);
		}
		_exit(right ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status == 0;
}

static void gate_holds_few_streams_without_more_connections(void **state) {
	assert_true(go_on_until(NULL, 3, 100));
	assert_true(go_on_until("", 3, 100));
	assert_true(go_on_until("8", 3, 100));
	assert_true(go_on_until("31", 3, 100));
}

/* With more streams than connections some share one, and one that waits would block others. */
static void gate_holds_as_many_streams_as_connections(void **state) {
	assert_true(go_on_until("32", 32, 100));
	assert_true(go_on_until("64", 32, 100)); /* the driver makes no more than 32 */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_holds_few_streams_without_more_connections),
		cmocka_unit_test(gate_holds_as_many_streams_as_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
