/*
 * test-daemon-config.c: a real sbeetd and its files: start, reload, mistakes.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/packet.h"

static struct harness harness;
static const char *const plain[] = {"--gpus", "8", NULL};

static int setup(void **state) {
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

static void write_config(const char *text) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The daemon's answer, freed with packet_free(). */
static Sbeet__Control__Reply *ask_config(bool reload) {
	Sbeet__Control__ConfigRequest config = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	config.reload = reload;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_CONFIG;
	request.config = &config;
	return control_ask(&request);
}

static const Sbeet__Control__ConfigValue *value(const Sbeet__Control__Reply *reply,
						const char *key) {
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_CONFIG);
	for (size_t i = 0; i < reply->config->n_values; i++) {
		if (strcmp(reply->config->values[i]->key, key) == 0) {
			return reply->config->values[i];
		}
	}
	fail_msg("no value of the key '%s'", key);
	return NULL;
}

static void expect(const char *key, const char *text, const char *source, uint32_t line) {
	Sbeet__Control__Reply *reply = ask_config(false);
	const Sbeet__Control__ConfigValue *v = value(reply, key);

	assert_string_equal(v->value, text);
	assert_string_equal(v->source, source);
	assert_int_equal(v->line, line);
	packet_free(&reply->base);
}

static void command_line_beats_file_beats_default(void **state) {
	write_config("[sbeetd]\npolicy = fcfs\nlinger = 3ms\ndrain = 7s\n");
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--linger", "5ms", NULL});
	expect("policy", "fcfs", "file", 2);
	expect("linger", "5ms", "command line", 0);
	expect("drain", "7s", "file", 4);
	expect("sharing", "auto", "default", 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The lines "#key = value" of the sample, which is installed as documentation, without their '#'.
 */
static char *read_sample(void) {
	FILE *f = fopen(SAMPLE, "re");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	for (char *at = text; (at = strstr(at, "\n#"));) {
		at += 1;
		if (at[1] >= 'a' && at[1] <= 'z') {
			*at = ' ';
		}
	}
	return text;
}

static void sample_has_every_key_and_its_default(void **state) {
	Sbeet__Control__Reply *without, *sample;
	char *text = read_sample(), line[128];

	harness_prepare(&harness);
	write_config("");
	harness_start(&harness, plain);
	without = ask_config(false);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	write_config(text);
	harness_start(&harness, plain);
	sample = ask_config(false);
	for (size_t i = 0; i < without->config->n_values; i++) {
		const Sbeet__Control__ConfigValue *was = without->config->values[i];
		const Sbeet__Control__ConfigValue *is = value(sample, was->key);

		snprintf(line, sizeof(line), " %s = ", was->key);
		if (!strstr(text, line)) {
			fail_msg("the sample has no line '%s'", line);
		}
		assert_string_equal(is->value, was->value);
		if (strcmp(was->source, "default") == 0 && *was->value) {
			assert_string_equal(is->source, "file");
		}
	}
	packet_free(&without->base);
	packet_free(&sample->base);
	free(text);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_refuses_to_start_with_a_mistake(void **state) {
	char errors[1024], expected[256];

	write_config("[sbeetd]\n\ndrain = soon\n");
	assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 2);
	snprintf(expected, sizeof(expected), "%s/sbeetd.conf:3: drain 'soon': expected a time",
		 harness.directory);
	assert_non_null(strstr(errors, expected));
}

/* The default one need not be there; one that somebody names must. */
static void daemon_refuses_a_folder_that_is_not_there(void **state) {
	static const char *const arguments[] = {"--config-dir", "/no/such/folder", "--gpus", "4",
						NULL};
	char errors[1024];

	harness_prepare(&harness);
	unsetenv("SBEET_CONFIG_DIR");
	assert_int_equal(harness_run(&harness, arguments, errors, sizeof(errors)), 2);
	setenv("SBEET_CONFIG_DIR", harness.directory, 1);
	assert_non_null(strstr(errors,
			       "can't read the configuration's folder '/no/such/folder': "
			       "No such file or directory"));
}

/* Not what the file says, but what is so. */
static void policy_that_was_set_by_request_is_shown(void **state) {
	harness_prepare(&harness);
	write_config("[sbeetd]\npolicy = even\n");
	harness_start(&harness, plain);
	expect("policy", "even", "file", 2);
	policy_set("fcfs", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	expect("policy", "fcfs", "request", 0);
	policy_set("even", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	expect("policy", "even", "file", 2);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Sets a policy with one parameter. */
static Sbeet__Control__Reply *set_param(const char *policy, const char *name, const char *text) {
	Sbeet__Control__PolicyRequest wanted = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__PolicyParam param = SBEET__CONTROL__POLICY_PARAM__INIT;
	Sbeet__Control__PolicyParam *params[] = {&param};
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	param.name = (char *)name;
	param.value = (char *)text;
	wanted.name = (char *)policy;
	wanted.params = params;
	wanted.n_params = 1;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &wanted;
	return control_ask(&request);
}

static void parameters_of_policies_are_set_and_shown(void **state) {
	Sbeet__Control__Reply *reply;

	harness_prepare(&harness);
	write_config("[sbeetd]\npolicy = sbeet\n[policy sbeet]\nreading = literal\n");
	harness_start(&harness, plain);
	expect("reading", "literal", "file", 4);
	expect("line_16", "off", "default", 0);
	expect("skip_hopeless", "off", "default", 0);
	reply = set_param("sbeet", "line_16", "on");
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_POLICY);
	packet_free(&reply->base);
	expect("line_16", "on", "request", 0);
	expect("reading", "literal", "file", 4);

	/* a mistake changes nothing, not even the policy */
	reply = set_param("sbeet-mg", "line_16", "maybe");
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	assert_string_equal(reply->error->text, "line_16 'maybe': expected off, on or copies");
	packet_free(&reply->base);
	reply = set_param("fcfs", "line_16", "on");
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	packet_free(&reply->base);
	expect("policy", "sbeet", "file", 2);

	/* of a policy that is not in force: what somebody has set */
	policy_set("fcfs", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	expect("line_16", "on", "request", 0);
	write_config("[sbeetd]\npolicy = sbeet\n[policy sbeet]\nreading = fit\n");
	packet_free(&ask_config(true)->base);
	expect("reading", "fit", "file", 4);
	expect("line_16", "on", "request", 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool policy_is(const Sbeet__Control__Status *status, void *data) {
	return strcmp(status->service->policy, data) == 0;
}

static void reload_changes_what_is_live_and_tells_the_rest(void **state) {
	Sbeet__Control__Reply *reply;

	harness_prepare(&harness);
	write_config("");
	harness_start(&harness, plain);
	expect("policy", "steer", "default", 0);
	write_config("[sbeetd]\npolicy = fcfs\nsharing = mps\n");
	reply = ask_config(true);
	assert_string_equal(value(reply, "policy")->value, "fcfs");
	assert_false(value(reply, "policy")->pending);
	assert_string_equal(value(reply, "sharing")->value, "auto");
	assert_true(value(reply, "sharing")->pending);
	packet_free(&reply->base);
	status_until(policy_is, (char[]){"fcfs"});

	/* By a signal too. What somebody set by hand stays unless the file changes. */
	policy_set("rm", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	write_config("[sbeetd]\npolicy = fcfs\nsharing = auto\n");
	assert_int_equal(kill(harness.pid, SIGHUP), 0);
	do {
		reply = ask_config(false);
		if (!value(reply, "sharing")->pending) {
			break;
		}
		packet_free(&reply->base);
	} while (true);
	packet_free(&reply->base);
	status_until(policy_is, (char[]){"rm"});
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void reload_keeps_the_old_configuration_on_a_mistake(void **state) {
	Sbeet__Control__Reply *reply;

	write_config("[sbeetd]\nlinger = 3ms\n");
	harness_start(&harness, plain);
	write_config("[sbeetd]\nlinger = 4ms\npolicy = best\n");
	reply = ask_config(true);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	assert_int_equal(reply->error->code, SBEET__ERROR_CODE__ERROR_CODE_CONFIG);
	assert_non_null(strstr(reply->error->text, "sbeetd.conf:3: policy 'best': expected"));
	packet_free(&reply->base);
	expect("linger", "3ms", "file", 2);
	expect("policy", "steer", "default", 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(command_line_beats_file_beats_default),
		CASE(sample_has_every_key_and_its_default),
		CASE(daemon_refuses_to_start_with_a_mistake),
		CASE(daemon_refuses_a_folder_that_is_not_there),
		CASE(policy_that_was_set_by_request_is_shown),
		CASE(parameters_of_policies_are_set_and_shown),
		CASE(reload_changes_what_is_live_and_tells_the_rest),
		CASE(reload_keeps_the_old_configuration_on_a_mistake),
	};

	return cmocka_run_group_tests_name("daemon-config", tests, NULL, NULL);
}
