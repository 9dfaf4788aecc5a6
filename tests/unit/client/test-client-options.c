/*
 * test-client-options.c: sbeetctl's command line against tables, the real one and one of its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/options.h"
#include "daemon/book/suggest.h"
#include "proto/units.h"

struct sample {
	bool all;
	const char *name;
	nsec_t wait_ns;
	const char *maybe;
};

static int parse_maybe(const char *text, void *target) {
	*(const char **)target = text ? text : "alone";
	return 0;
}

static const struct option sample_options[] = {
	{"all", 'a', OPTION_FLAG, NULL, "all", option_flag, offsetof(struct sample, all), NULL},
	{"name", 'n', OPTION_REQUIRED, "NAME", "name", option_string, offsetof(struct sample, name),
	 NULL},
	{"wait", 0, OPTION_REQUIRED, "TIME", "wait", option_duration,
	 offsetof(struct sample, wait_ns), "a time"},
	{"maybe", 'm', OPTION_OPTIONAL, "X", "maybe", parse_maybe, offsetof(struct sample, maybe),
	 NULL},
	{0},
};

static const struct verb show = {
	.name = "show", .args = "", .summary = "show", .flags = VERB_READS | VERB_TABLE};
static const struct verb task_list = {.name = "task list",
				      .args = "[ID]",
				      .summary = "list",
				      .max_args = 1,
				      .options = sample_options,
				      .options_size = sizeof(struct sample)};
static const struct verb task_set = {.name = "task set",
				     .args = "NAME",
				     .summary = "set",
				     .min_args = 1,
				     .max_args = 2,
				     .options = sample_options,
				     .options_size = sizeof(struct sample)};
static const struct verb start = {.name = "start",
				  .args = "PROGRAM",
				  .summary = "start",
				  .flags = VERB_COMMAND,
				  .min_args = 1,
				  .max_args = SIZE_MAX,
				  .options = sample_options,
				  .options_size = sizeof(struct sample)};
static const struct verb *const table[] = {&show, &task_list, &task_set, &start, NULL};

#define ARGV(...) ((char **)(const char *[]){"sbeetctl", __VA_ARGS__ __VA_OPT__(, ) NULL})

static struct command parse(char **argv) {
	struct command c;
	char error[256] = "";
	int r = command_init(&c, table, argv, error, sizeof(error));

	assert_string_equal(error, "");
	assert_int_equal(r, 0);
	return c;
}

static void refuse(char **argv, const char *message) {
	struct command c = {.options = &c}; /* must stay as it is */
	char error[256] = "";

	assert_int_equal(command_init(&c, table, argv, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, message);
	assert_ptr_equal(c.options, &c);
}

static void options_take_the_first_verb_when_none_is_given(void **state) {
	struct command c = parse(ARGV());

	assert_ptr_equal(c.ctl.verb, &show);
	assert_true(c.ctl.bare);
	command_deinit(&c);
}

static void options_stand_before_or_after_the_verb(void **state) {
	char **lines[] = {
		ARGV("--name", "x", "--wait=5ms", "-a", "task", "list", "id"),
		ARGV("task", "list", "id", "--name=x", "--wait", "5ms", "-a"),
		ARGV("-anx", "task", "list", "--wait", "5ms", "--", "id"),
		ARGV("-a", "-n", "x", "task", "list", "--wait=9ms", "id", "--wait=5ms"),
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct command c = parse(lines[i]);
		const struct sample *s = c.ctl.options;

		assert_ptr_equal(c.ctl.verb, &task_list);
		assert_false(c.ctl.bare);
		assert_true(s->all);
		assert_string_equal(s->name, "x");
		assert_int_equal(s->wait_ns, 5 * NSEC_PER_MSEC);
		assert_null(s->maybe);
		assert_int_equal(c.ctl.n_args, 1);
		assert_string_equal(c.ctl.args[0], "id");
		assert_null(c.ctl.args[1]);
		command_deinit(&c);
	}
}

static void options_take_an_optional_value_only_with_equals(void **state) {
	struct command c = parse(ARGV("task", "list", "--maybe", "id"));
	const struct sample *s = c.ctl.options;

	assert_string_equal(s->maybe, "alone");
	assert_string_equal(c.ctl.args[0], "id");
	command_deinit(&c);

	c = parse(ARGV("task", "list", "--maybe=y", "id"));
	s = c.ctl.options;
	assert_string_equal(s->maybe, "y");
	command_deinit(&c);
}

static void options_leave_a_command_line_alone(void **state) {
	struct command c = parse(ARGV("start", "-a", "prog", "-n", "--", "--help", "task"));
	const struct sample *s = c.ctl.options;

	assert_true(s->all);
	assert_null(s->name);
	assert_false(c.ctl.common.help);
	assert_int_equal(c.ctl.n_args, 5);
	assert_string_equal(c.ctl.args[0], "prog");
	assert_string_equal(c.ctl.args[2], "--");
	command_deinit(&c);

	c = parse(ARGV("start", "--", "--prog", "--", "x"));
	assert_int_equal(c.ctl.n_args, 3);
	assert_string_equal(c.ctl.args[0], "--prog");
	assert_string_equal(c.ctl.args[1], "--");
	command_deinit(&c);
}

static void options_take_values_that_look_like_options(void **state) {
	struct command c = parse(ARGV("task", "list", "--name", "-5"));
	const struct sample *s = c.ctl.options;

	assert_string_equal(s->name, "-5");
	command_deinit(&c);
}

static void options_take_a_single_dash_as_an_argument(void **state) {
	struct command c = parse(ARGV("task", "set", "-", "-a"));

	assert_int_equal(c.ctl.n_args, 1);
	assert_string_equal(c.ctl.args[0], "-");
	command_deinit(&c);
}

static void options_refuse_with_one_line(void **state) {
	refuse(ARGV("shwo"), "unknown verb 'shwo'. Did you mean 'show'?");
	refuse(ARGV("frobnicate"), "unknown verb 'frobnicate'; see 'sbeetctl --help'");
	refuse(ARGV(""), "unknown verb ''; see 'sbeetctl --help'");
	refuse(ARGV("task"), "'task' needs one of: list, set");
	refuse(ARGV("task", "lst"), "'task' needs one of: list, set");
	refuse(ARGV("start", "--nmae=x", "p"), "unknown option '--nmae=x'. Did you mean '--name'?");
	refuse(ARGV("--zzzzzz", "start"), "unknown option '--zzzzzz'; see 'sbeetctl --help'");
	refuse(ARGV("start", "-z"), "unknown option '-z'; see 'sbeetctl start --help'");
	refuse(ARGV("start", "--="), "unknown option '--='; see 'sbeetctl start --help'");
	refuse(ARGV("--name=x", "show"), "option '--name' belongs to 'task list', not to 'show'");
	refuse(ARGV("start", "--all=1", "p"), "option '--all' takes no value");
	refuse(ARGV("start", "--name"), "option '--name' needs a value: --name=NAME");
	refuse(ARGV("start", "-n"), "option '-n' needs a value: -n NAME");
	refuse(ARGV("start", "--wait=5", "p"), "bad value '5' of option '--wait': expected a time");
	refuse(ARGV("start", "--wait=99999h", "p"),
	       "value out of range '99999h' of option '--wait': expected a time");
	refuse(ARGV("show", "--json=xml"),
	       "bad value 'xml' of option '--json': expected short, pretty or off");
	refuse(ARGV("show", "--color=blue"),
	       "bad value 'blue' of option '--color': expected auto, always or never");
	refuse(ARGV("show", "x"), "'show' takes no argument 'x'");
	refuse(ARGV("task", "set"), "'task set' needs NAME; see 'sbeetctl task set --help'");
}

static void options_of_help_need_no_arguments(void **state) {
	struct command c = parse(ARGV("task", "set", "--help"));

	assert_true(c.ctl.common.help);
	assert_ptr_equal(c.ctl.verb, &task_set);
	command_deinit(&c);
}

/* Before the verb is known an option is looked up by name alone; see options.c. */
static void options_of_one_name_have_one_form_in_all_verbs(void **state) {
	for (const struct verb *const *a = verbs; *a; a++) {
		for (const struct option *o = (*a)->options; o && o->name; o++) {
			for (const struct verb *const *b = verbs; *b; b++) {
				const struct option *other;
				bool own;

				other = options_find(*b, o->name, strlen(o->name), &own);
				assert_true(!other || other->value == o->value);
				other = o->letter ? options_find_letter(*b, o->letter, &own) : NULL;
				assert_true(!other || other->value == o->value);
			}
		}
	}
}

static void every_option_explains_itself(void **state) {
	for (const struct verb *const *v = verbs; *v; v++) {
		assert_non_null((*v)->summary);
		assert_non_null((*v)->args);
		assert_non_null((*v)->function);
		for (const struct option *o = (*v)->options; o && o->name; o++) {
			assert_non_null(o->summary);
			assert_non_null(o->parse);
			assert_true((o->value == OPTION_FLAG) == !o->value_name);
			assert_true(o->offset < (*v)->options_size);
		}
	}
}

static const char *suggestion(const char *text) {
	static const char *const names[] = {"status", "run", "version", "sessions", NULL};
	struct suggest s = suggest_start(text);

	for (size_t i = 0; names[i]; i++) {
		suggest_offer(&s, names[i]);
	}
	return s.best;
}

static void suggest_finds_near_names_only(void **state) {
	assert_string_equal(suggestion("stauts"), "status");
	assert_string_equal(suggestion("stat"), "status");
	assert_string_equal(suggestion("sesions"), "sessions");
	assert_string_equal(suggestion("rnu"), "run");
	assert_string_equal(suggestion("versoin"), "version");
	assert_null(suggestion("xyz"));
	assert_null(suggestion("completely-different"));
	assert_null(suggestion("a-word-that-is-much-longer-than-any-name-of-ours"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_take_the_first_verb_when_none_is_given),
		cmocka_unit_test(options_stand_before_or_after_the_verb),
		cmocka_unit_test(options_take_an_optional_value_only_with_equals),
		cmocka_unit_test(options_leave_a_command_line_alone),
		cmocka_unit_test(options_take_values_that_look_like_options),
		cmocka_unit_test(options_take_a_single_dash_as_an_argument),
		cmocka_unit_test(options_refuse_with_one_line),
		cmocka_unit_test(options_of_help_need_no_arguments),
		cmocka_unit_test(options_of_one_name_have_one_form_in_all_verbs),
		cmocka_unit_test(every_option_explains_itself),
		cmocka_unit_test(suggest_finds_near_names_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
