/*
 * test-shim-settings.c: a program that is preloaded with SBEET_* in its environment says the same
 * to sbeetd as one that `sbeetctl run` starts with options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "mini.h"

#define MAX 9

/* What a Hello says of the session. */
struct said {
	uint8_t task[512];
	size_t n;
	Sbeet__Scope scope;
	uint32_t enforcement_mask;
	size_t n_features;
};

static struct said hear(const char *const *options, const char *const *environment) {
	struct said said = {0};
	Sbeet__ToDaemon *m;
	struct mini mini;
	int fd;

	mini_init(&mini);
	mini.run = options;
	mini_listen(&mini);
	mini_start(&mini, environment);
	mini_tell(&mini, "@0 init");
	fd = mini_accept_only(&mini);
	m = mini_expect(fd, SBEET__TO_DAEMON__BODY_HELLO);
	said.n = sbeet__task_spec__get_packed_size(m->hello->task);
	assert_true(said.n <= sizeof(said.task));
	sbeet__task_spec__pack(m->hello->task, said.task);
	said.scope = m->hello->scope;
	said.enforcement_mask = m->hello->enforcement_mask;
	said.n_features = m->hello->n_features;
	mini_free(m);
	close(fd);
	mini_answers(&mini, "0 init 0");
	mini_deinit(&mini);
	return said;
}

static void variables_do_what_options_do(void **state) {
	static const char *const nothing[] = {NULL};
	static const struct {
		const char *options[MAX], *environment[MAX];
		bool realtime;
	} cases[] = {
		{{NULL}, {NULL}, false},
		{{"--period=33ms", "--deadline=20ms"},
		 {"SBEET_PERIOD=33ms", "SBEET_DEADLINE=20ms"},
		 true},
		{{"--deadline=20ms", "--priority=7"},
		 {"SBEET_DEADLINE=20ms", "SBEET_PRIORITY=7"},
		 true},
		{{"--period=33ms", "--class=best-effort"},
		 {"SBEET_PERIOD=33ms", "SBEET_CLASS=best-effort"},
		 false},
		{{"--task=camera", "--period=33ms", "--offset=5ms", "--scope=thread", "--min-sms=4",
		  "--max-sms=16", "--whole", "--any-gpu"},
		 {"SBEET_TASK=camera", "SBEET_PERIOD=33ms", "SBEET_OFFSET=5ms",
		  "SBEET_SCOPE=thread", "SBEET_MIN_SMS=4", "SBEET_MAX_SMS=16", "SBEET_WHOLE=1",
		  "SBEET_ANY_GPU=1"},
		 true},
		{{"--priority=-3"}, {"SBEET_PRIORITY=-3"}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct said run = hear(cases[i].options, nothing);
		struct said preloaded = hear(NULL, cases[i].environment);
		struct said inherited = hear(nothing, cases[i].environment);
		Sbeet__TaskSpec *task = sbeet__task_spec__unpack(NULL, run.n, run.task);

		assert_non_null(task);
		assert_int_equal(task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME,
				 cases[i].realtime);
		sbeet__task_spec__free_unpacked(task, NULL);
		assert_memory_equal(&run, &preloaded, sizeof(run));
		assert_memory_equal(&run, &inherited, sizeof(run));
	}
}

static void variables_are_all_told(void **state) {
	static const char *const all[] = {"SBEET_TASK=camera",	"SBEET_CLASS=realtime",
					  "SBEET_PERIOD=33ms",	"SBEET_DEADLINE=20ms",
					  "SBEET_OFFSET=5ms",	"SBEET_PRIORITY=-7",
					  "SBEET_MIN_SMS=4",	"SBEET_MAX_SMS=16",
					  "SBEET_SCOPE=thread", NULL};
	struct said said = hear(NULL, all);
	Sbeet__TaskSpec *task = sbeet__task_spec__unpack(NULL, said.n, said.task);

	assert_non_null(task);
	assert_string_equal(task->name, "camera");
	assert_int_equal(task->task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	assert_int_equal(task->period_ns, 33000000);
	assert_int_equal(task->deadline_ns, 20000000);
	assert_int_equal(task->offset_ns, 5000000);
	assert_int_equal(task->priority, -7);
	assert_int_equal(task->min_sms, 4);
	assert_int_equal(task->max_sms, 16);
	assert_int_equal(said.scope, SBEET__SCOPE__SCOPE_THREAD);
	sbeet__task_spec__free_unpacked(task, NULL);
}

/* Of a preloaded program only what is wrong is left out; `run` refuses: test-cli-run.c. */
static void wrong_variables_are_left_out(void **state) {
	static const struct {
		const char *environment[MAX], *left[MAX];
	} cases[] = {
		{{"SBEET_PERIOD=33", "SBEET_PRIORITY=7"}, {"SBEET_PRIORITY=7"}},
		{{"SBEET_PERIOD=33ms", "SBEET_DEADLINE=50ms"}, {"SBEET_PERIOD=33ms"}},
		{{"SBEET_DEADLINE=0ms"}, {NULL}},
		{{"SBEET_OFFSET=5ms", "SBEET_DEADLINE=5ms"}, {"SBEET_DEADLINE=5ms"}},
		{{"SBEET_MIN_SMS=9", "SBEET_MAX_SMS=8"}, {"SBEET_MAX_SMS=8"}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct said wrong = hear(NULL, cases[i].environment);
		struct said left = hear(NULL, cases[i].left);

		assert_memory_equal(&wrong, &left, sizeof(wrong));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_do_what_options_do),
		cmocka_unit_test(variables_are_all_told),
		cmocka_unit_test(wrong_variables_are_left_out),
	};

	return cmocka_run_group_tests_name("shim-settings", tests, NULL, NULL);
}
