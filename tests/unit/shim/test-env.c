/*
 * test-env.c: what SBEET_* says and what is made of nonsense. Read once a process, so each case is
 * looked at in a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/base/env.h"

/* Whether @holds in a child with @variables, pairs of name and value that end with NULL. */
static bool in_child(const char *const *variables, bool (*holds)(const struct env *env)) {
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		setenv("SBEET_LOG", "error", 1);
		for (; *variables; variables += 2) {
			setenv(variables[0], variables[1], 1);
		}
		_exit(holds(env_get()) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status == 0;
}

static bool is_default(const struct env *e) {
	return !e->disable && !e->whole && !e->require && !e->task.dependent &&
	       e->task.scope == SBEET__SCOPE__SCOPE_PROCESS && !e->socket && !*e->task.name &&
	       e->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT &&
	       e->task.period == 0 && e->task.deadline == 0 && e->task.offset == 0 &&
	       e->task.job.priority == 0 && e->task.job.min_sms == 0 && e->task.job.max_sms == 0 &&
	       e->timeout_ns == 5 * NSEC_PER_SEC;
}

static void env_is_unset_by_default(void **state) {
	const char *const nothing[] = {NULL};
	const char *const empty[] = {"SBEET_TASK", "",	"SBEET_PERIOD", "", "SBEET_REQUIRE",
				     "0",	   NULL};

	assert_true(in_child(nothing, is_default));
	assert_true(in_child(empty, is_default));
}

static bool is_full(const struct env *e) {
	return e->whole && e->task.dependent == 1 && e->measure && e->require && e->require_ns == 2 * NSEC_PER_SEC &&
	       e->task.scope == SBEET__SCOPE__SCOPE_THREAD &&
	       strcmp(e->socket, "/tmp/s.sock") == 0 && strcmp(e->task.name, "camera.1") == 0 &&
	       e->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME &&
	       e->task.period == 33 * NSEC_PER_MSEC && e->task.deadline == 20 * NSEC_PER_MSEC &&
	       e->task.offset == 500 * NSEC_PER_USEC && e->task.job.priority == -7 &&
	       e->task.job.min_sms == 4 && e->task.job.max_sms == 16 &&
	       e->timeout_ns == 2500 * NSEC_PER_MSEC;
}

static void env_reads_everything(void **state) {
	const char *const all[] = {"SBEET_WHOLE",
				   "1",
				   "SBEET_DEPENDENT",
				   "1",
				   "SBEET_ANY_GPU",
				   "1",
				   "SBEET_MEASURE",
				   "1",
				   "SBEET_REQUIRE",
				   "2s",
				   "SBEET_SCOPE",
				   "thread",
				   "SBEET_SOCKET",
				   "/tmp/s.sock",
				   "SBEET_TASK",
				   "camera.1",
				   "SBEET_CLASS",
				   "realtime",
				   "SBEET_PERIOD",
				   "33ms",
				   "SBEET_DEADLINE",
				   "20ms",
				   "SBEET_OFFSET",
				   "500us",
				   "SBEET_PRIORITY",
				   "-7",
				   "SBEET_MIN_SMS",
				   "4",
				   "SBEET_MAX_SMS",
				   "16",
				   "SBEET_TIMEOUT",
				   "2.5s",
				   NULL};

	assert_true(in_child(all, is_full));
}

static bool outlives_environment(const struct env *e) {
	char *task = getenv("SBEET_TASK");

	memset(task, 'x', strlen(task)); /* as programs do that set their title */
	return strcmp(e->task.name, "mine") == 0;
}

static void env_keeps_its_own_copies(void **state) {
	const char *const task[] = {"SBEET_TASK", "mine", NULL};

	assert_true(in_child(task, outlives_environment));
}

static void env_takes_nonsense_as_unset(void **state) {
	static const char *const nonsense[][3] = {
		{"SBEET_DISABLE", "yes", NULL},	  {"SBEET_SCOPE", "moon", NULL},
		{"SBEET_MEASURE", "2", NULL},	  {"SBEET_TASK", "a b", NULL},
		{"SBEET_CLASS", "fast", NULL},	  {"SBEET_PERIOD", "33", NULL},
		{"SBEET_DEADLINE", "-5ms", NULL}, {"SBEET_OFFSET", "soon", NULL},
		{"SBEET_PRIORITY", "1001", NULL}, {"SBEET_PRIORITY", "1e3", NULL},
		{"SBEET_MAX_SMS", "0", NULL},	  {"SBEET_MIN_SMS", "257", NULL},
		{"SBEET_TIMEOUT", "0s", NULL},	  {"SBEET_TIMEOUT", "2", NULL},
	};

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
		if (!in_child(nonsense[i], is_default)) {
			fail_msg("%s=%s", nonsense[i][0], nonsense[i][1]);
		}
	}
}

static bool is_required_for_a_while(const struct env *e) {
	return e->require && e->require_ns >= NSEC_PER_SEC;
}

/* Who asks for a daemon, however unclearly, must not run without one. */
static void env_requires_a_daemon_in_doubt(void **state) {
	const char *const unclear[] = {"SBEET_REQUIRE", "please", NULL};

	assert_true(in_child(unclear, is_required_for_a_while));
}

static bool is_only_disabled(const struct env *e) {
	return e->disable && !*e->task.name && !e->require;
}

static void env_reads_nothing_else_when_disabled(void **state) {
	const char *const disabled[] = {"SBEET_DISABLE", "1", "SBEET_TASK", "t",
					"SBEET_REQUIRE", "1", NULL};

	assert_true(in_child(disabled, is_only_disabled));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env_is_unset_by_default),
		cmocka_unit_test(env_reads_everything),
		cmocka_unit_test(env_keeps_its_own_copies),
		cmocka_unit_test(env_takes_nonsense_as_unset),
		cmocka_unit_test(env_requires_a_daemon_in_doubt),
		cmocka_unit_test(env_reads_nothing_else_when_disabled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
