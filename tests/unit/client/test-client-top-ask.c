/*
 * test-client-top-ask.c: what `top` asks before it changes something, and the verb that it then
 * runs.
 */
#include <curses.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/live/top-ask.h"

#define GPU(number, is_drained)                                                                    \
	{                                                                                          \
		PROTOBUF_C_MESSAGE_INIT(&sbeet__control__gpu__descriptor), .index = (number),      \
									   .drained = (is_drained) \
	}
#define SESSION(number, its_task)                                                            \
	{                                                                                    \
		PROTOBUF_C_MESSAGE_INIT(&sbeet__control__session__descriptor),               \
			.id = (number), .pid = 100 + (number), .program = (char *)"python3", \
			.task = (char *)(its_task)                                           \
	}

static Sbeet__Control__Gpu gpu_list[] = {GPU(0, false), GPU(1, true)};
static Sbeet__Control__Session session_list[] = {SESSION(3, "cam"), SESSION(4, "train"),
						 SESSION(5, "train"), SESSION(6, "-s")};

static Sbeet__Control__Gpu *gpus[] = {&gpu_list[0], &gpu_list[1]};
static Sbeet__Control__Session *sessions[] = {&session_list[0], &session_list[1], &session_list[2],
					      &session_list[3]};
static struct snapshot_task tasks[] = {{.name = "-s"}, {.name = "cam"}, {.name = "train"}};
static const struct snapshot scene = {
	.gpus = gpus,
	.n_gpus = 2,
	.sessions = sessions,
	.n_sessions = 4,
	.tasks = tasks,
	.n_tasks = 3,
};

/* @keys: the first one begins; '$' stands for Enter, '!' for Escape. Return: the last line. */
static const char *asked(struct top_ask *a, const char *keys) {
	static char line[1024];

	assert_true(top_ask_begin(a, *keys, &scene, ""));
	while (*++keys) {
		assert_int_not_equal(a->state, TOP_ASK_NOTHING);
		top_ask_press(a, *keys == '$' ? '\n' : *keys == '!' ? 27 : *keys, &scene);
	}
	top_ask_print(a, line, sizeof(line));
	return line;
}

/* Says yes to the question. Return: the verb, in one line. */
static const char *verb(struct top_ask *a) {
	static char text[1024];

	assert_int_equal(a->state, TOP_ASK_SURE);
	top_ask_press(a, 'y', &scene);
	assert_int_equal(a->state, TOP_ASK_YES);
	text[0] = '\0';
	for (size_t i = 0; i < TOP_ASK_WORDS && *a->words[i]; i++) {
		strcat(strcat(text, i > 0 ? "|" : ""), a->words[i]);
	}
	return text;
}

static void a_change_is_made_after_yes_only(void **state) {
	static const int no[] = {'n', 'N', '\n', 27, ' ', 'q', '0', KEY_DOWN};
	struct top_ask a = {0};

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		assert_string_equal(asked(&a, "D0$"), "Drain GPU 0? y/n");
		assert_int_equal(a.state, TOP_ASK_SURE);
		top_ask_press(&a, KEY_RESIZE, &scene);
		assert_int_equal(a.state, TOP_ASK_SURE);
		top_ask_press(&a, no[i], &scene);
		assert_int_equal(a.state, TOP_ASK_NOTHING);
	}
	asked(&a, "D!");
	assert_int_equal(a.state, TOP_ASK_NOTHING);
	asked(&a, "D$");
	assert_int_equal(a.state, TOP_ASK_NOTHING);
	asked(&a, "D0!");
	assert_int_equal(a.state, TOP_ASK_NOTHING);
	assert_false(top_ask_begin(&a, 'd', &scene, ""));
	assert_false(top_ask_begin(&a, 'y', &scene, ""));
}

static void a_gpu_is_drained_or_resumed(void **state) {
	struct top_ask a = {0};

	asked(&a, "D0$");
	assert_string_equal(verb(&a), "gpu|drain|0");
	assert_string_equal(asked(&a, "D1$"), "Resume GPU 1? y/n");
	assert_string_equal(verb(&a), "gpu|resume|1");
	assert_string_equal(asked(&a, "D7$"), "drain or resume GPU: 7_  no GPU '7'");
	assert_int_equal(a.state, TOP_ASK_WHICH);
	assert_string_equal(asked(&a, "Dx$"), "drain or resume GPU: x_  no GPU 'x'");
	/* it is mended in place */
	top_ask_press(&a, KEY_BACKSPACE, &scene);
	top_ask_press(&a, '1', &scene);
	top_ask_press(&a, '\n', &scene);
	assert_string_equal(verb(&a), "gpu|resume|1");
}

static void a_program_is_named_by_task_or_session(void **state) {
	struct top_ask a = {0};

	assert_string_equal(asked(&a, "Ecam$"),
			    "End session 3 of task cam, python3 with pid 103? y/n");
	assert_string_equal(verb(&a), "session|kill|3");
	assert_string_equal(asked(&a, "E5$"),
			    "End session 5 of task train, python3 with pid 105? y/n");
	assert_string_equal(verb(&a), "session|kill|5");
	assert_non_null(strstr(asked(&a, "Etrain$"), "task train has 2 sessions, type one: 4 5"));
	assert_int_equal(a.state, TOP_ASK_WHICH);
	assert_non_null(strstr(asked(&a, "E9$"), "no task or session '9'"));
	assert_int_equal(a.state, TOP_ASK_WHICH);
	assert_non_null(strstr(asked(&a, "E103$"), "no task or session '103'")); /* a pid is none */
}

static void a_task_gets_priority_and_deadline(void **state) {
	struct top_ask a = {0};

	assert_string_equal(asked(&a, "Pcam -5$"), "Set the priority of task cam to -5? y/n");
	assert_string_equal(verb(&a), "task|set|--priority=-5|--|cam");
	assert_string_equal(asked(&a, "Tcam 20ms$"), "Set the deadline of task cam to 20ms? y/n");
	assert_string_equal(verb(&a), "task|set|--deadline=20ms|--|cam");
	asked(&a, "P-s 5$");
	assert_string_equal(verb(&a), "task|set|--priority=5|--|-s");
	/* one value, whatever it looks like */
	asked(&a, "Pcam 5 --save$");
	assert_string_equal(verb(&a), "task|set|--priority=5 --save|--|cam");
	assert_non_null(strstr(asked(&a, "Tcam$"), "type a task and its new deadline"));
	assert_non_null(strstr(asked(&a, "Tcam $"), "type a task and its new deadline"));
	assert_non_null(strstr(asked(&a, "Pcamera 5$"), "no task 'camera'"));
	assert_int_equal(a.state, TOP_ASK_WHICH);
}

static void what_there_is_one_of_is_suggested(void **state) {
	struct snapshot one = scene;
	struct top_ask a = {0};

	one.n_gpus = 1;
	assert_true(top_ask_begin(&a, 'D', &one, ""));
	assert_string_equal(a.text, "0");
	assert_true(top_ask_begin(&a, 'P', &scene, "tra"));
	assert_string_equal(a.text, "train ");
	assert_true(top_ask_begin(&a, 'E', &scene, "ca"));
	assert_string_equal(a.text, "cam");
	assert_true(top_ask_begin(&a, 'E', &scene, ""));
	assert_string_equal(a.text, "");
	assert_true(top_ask_begin(&a, 'D', &scene, "ca"));
	assert_string_equal(a.text, "");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_made_after_yes_only),
		cmocka_unit_test(a_gpu_is_drained_or_resumed),
		cmocka_unit_test(a_program_is_named_by_task_or_session),
		cmocka_unit_test(a_task_gets_priority_and_deadline),
		cmocka_unit_test(what_there_is_one_of_is_suggested),
	};

	return cmocka_run_group_tests_name("client-top-ask", tests, NULL, NULL);
}
