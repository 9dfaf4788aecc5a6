/*
 * test-config.c: reading sbeetd.conf: what is taken, what is warned of, what is refused and how.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include <errno.h>

#include "daemon/base/inifile.h"
#include "daemon/config/config.h"
#include "daemon/config/task.h"

static char warnings[2048];
static char why[512];

static void warn(const char *text) {
	size_t n = strlen(warnings);

	snprintf(warnings + n, sizeof(warnings) - n, "%s\n", text);
}

static int read_n(struct config *c, const char *text, size_t n) {
	config_init(c);
	warnings[0] = why[0] = '\0';
	return config_read(c, "F", text, n, warn, why, sizeof(why));
}

static int read_text(struct config *c, const char *text) {
	return read_n(c, text, strlen(text));
}

static void config_has_defaults_for_everything(void **state) {
	struct config c;

	assert_int_equal(read_text(&c, ""), 0);
	assert_string_equal(c.settings.policy->name, "steer");
	assert_int_equal(c.settings.linger, 100 * NSEC_PER_USEC);
	assert_int_equal(c.settings.drain, 60 * NSEC_PER_SEC);
	assert_int_equal(c.settings.gpus.n, 0);
	assert_int_equal(c.settings.log_level, LOG_LEVEL_INFO);
	for (int i = 0; i < _SETTING_N; i++) {
		assert_int_equal(c.settings.origin[i].source, SETTING_DEFAULT);
		assert_string_equal(c.settings.origin[i].text, settings_table[i].fallback);
	}
}

static void config_takes_values_and_remembers_lines(void **state) {
	struct config c;

	assert_int_equal(read_text(&c,
				   "# comment\n"
				   "[sbeetd]\r\n"
				   "  policy = fcfs ; why not\n"
				   "\tlinger\t=\t3ms\n"
				   "gpus=80,40\n"
				   "turn = 20ms"),
			 0);
	assert_string_equal(warnings, "");
	assert_string_equal(c.settings.policy->name, "fcfs");
	assert_int_equal(c.settings.linger, 3 * NSEC_PER_MSEC);
	assert_int_equal(c.settings.gpus.n, 2);
	assert_int_equal(c.settings.gpus.sms[1], 40);
	assert_int_equal(c.settings.turn, 20 * NSEC_PER_MSEC);
	assert_int_equal(c.settings.origin[SETTING_POLICY].line, 3);
	assert_int_equal(c.settings.origin[SETTING_GPUS].line, 5);
	assert_int_equal(c.settings.origin[SETTING_GPUS].source, SETTING_FILE);
	assert_int_equal(read_text(&c, "[sbeetd]\nturn = off\n"), 0);
	assert_int_equal(c.settings.turn, 0);
}

static void config_warns_of_what_it_does_not_know(void **state) {
	struct config c;

	assert_int_equal(read_text(&c, "[sbeetd]\nliger = 3ms\n[sbetd]\ndrain = 1s\n"), 0);
	assert_string_equal(warnings,
			    "F:2: unknown key 'liger' (did you mean 'linger'?)\n"
			    "F:4: unknown section 'sbetd' (did you mean 'sbeetd'?)\n");
	assert_int_equal(c.settings.drain, 60 * NSEC_PER_SEC);
}

static void config_refuses_bad_values_with_their_line(void **state) {
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"[sbeetd]\n\nlinger = 5\n",
		 "F:3: linger '5': expected a time with a unit, such as 100us"},
		{"[sbeetd]\npolicy = evn\n",
		 "F:2: policy 'evn': expected one of those that "
		 "--help lists. Did you mean 'even'?"},
		{"[sbeetd]\ndrain = 0s\n", "F:2: drain '0s': expected a time above 0"},
		{"[sbeetd]\nsharing = some\n", "F:2: sharing 'some': expected auto, mps"},
		{"[sbeetd]\ngpus =\n", "F:2: gpus '': expected 'nvml'"},
		{"[sbeetd]\nruntime-dir = here\n",
		 "F:2: runtime-dir 'here': expected an absolute path"},
		{"[sbeetd]\nlinger\n", "F:2: expected '[section]' or 'key = value'"},
		{"[sbeetd]\nturn = 5ms\n", "F:2: turn '5ms': expected off, or a time from 10ms"},
		{"[sbeetd]\nturn = 2s\n", "F:2: turn '2s': expected off"},
		{"[sbeetd\n", "F:1: expected '[section]' or 'key = value'"},
		{"[sbeetd]\npolicy = \001\n", "F:2: the line has a byte"},
		{"[sbeetd]\npolicy = \xff\n", "F:2: the line has a byte"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct config c;

		assert_int_equal(read_text(&c, bad[i].text), -EINVAL);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0) {
			fail_msg("'%s', expected '%s'", why, bad[i].why);
		}
	}
}

static struct policy_values *values_of(struct config *c, const char *name) {
	struct policy_values *v = policies_find(&c->policies, name);

	assert_non_null(v);
	return v;
}

static void config_takes_parameters_of_policies(void **state) {
	struct config c;

	assert_int_equal(read_text(&c,
				   "[policy sbeet-mg]\nreading = literal\nline_16 = on\n"
				   "window = own\nqueue = priority\njobs_per_gpu = 2\nlate = drop\n"
				   "skip_hopeless = on\nmigration_cost = 1500us\nmax_wait = 0\n"
				   "[policy lookahead]\nlookahead_depth = 3\n"),
			 0);
	assert_string_equal(warnings, "");
	assert_int_equal(values_of(&c, "sbeet-mg")->params.reading, SCHED_READING_LITERAL);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.window, SCHED_WINDOW_OWN);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.queue, SCHED_QUEUE_PRIORITY);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.late, SCHED_LATE_DROP);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.line_16, SCHED_LINE_16_ON);
	assert_true(values_of(&c, "sbeet-mg")->params.skip_hopeless);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.jobs_per_gpu, 2);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.migration_cost, 1500 * NSEC_PER_USEC);
	assert_int_equal(values_of(&c, "sbeet-mg")->params.max_wait, 0);
	assert_int_equal(values_of(&c, "sbeet-mg")->origin[SCHED_PARAM_LINE_16].line, 3);
	/* each policy has its own */
	assert_int_equal(values_of(&c, "sbeet")->params.reading, SCHED_READING_FIT);
	assert_int_equal(values_of(&c, "sbeet")->origin[SCHED_PARAM_READING].source,
			 SETTING_DEFAULT);
	assert_int_equal(values_of(&c, "lookahead")->params.lookahead_depth, 3);
}

static void config_names_wrong_parameters(void **state) {
	struct config c;

	assert_int_equal(read_text(&c,
				   "[policy fcfs]\nreading = fit\n[policy sbet]\nreading = fit\n"
				   "[policy sbeet]\nqeue = edf\nepsilon = 1ms\n"),
			 0);
	assert_string_equal(
		warnings,
		"F:2: policy 'fcfs' has no parameter 'reading'; it has none\n"
		"F:4: unknown policy 'sbet' (did you mean 'sbeet'?)\n"
		"F:6: policy 'sbeet' has no parameter 'qeue'. Did you mean 'queue'?\n"
		"F:7: policy 'sbeet' has no parameter 'epsilon'; it has reading, queue, window, "
		"line_16, skip_hopeless, power, late, jobs_per_gpu, migration_cost, max_wait\n");
	assert_int_equal(read_text(&c, "[policy sbeet]\nreading = best\n"), -EINVAL);
	assert_string_equal(why, "F:2: reading 'best': expected literal, authors or fit");
	assert_int_equal(read_text(&c, "[policy sbeet]\njobs_per_gpu = 5000000000\n"), -EINVAL);
}

static void parameters_set_by_request_outlive_a_reload(void **state) {
	static const char *const file = "[policy sbeet]\nreading = authors\n";
	struct config old, same, other;
	char text[256];

	assert_int_equal(read_text(&old, file), 0);
	assert_int_equal(policies_set(values_of(&old, "sbeet"), "reading", "literal",
				      SETTING_REQUEST, 0, text, sizeof(text)),
			 0);
	assert_int_equal(policies_set(values_of(&old, "sbeet"), "max_wait", "3", SETTING_REQUEST, 0,
				      text, sizeof(text)),
			 0);
	assert_int_equal(read_text(&same, file), 0);
	policies_keep(&same.policies, &old.policies);
	assert_int_equal(values_of(&same, "sbeet")->params.reading, SCHED_READING_LITERAL);
	assert_int_equal(values_of(&same, "sbeet")->origin[SCHED_PARAM_READING].source,
			 SETTING_REQUEST);
	assert_int_equal(read_text(&other, "[policy sbeet]\nreading = fit\n"), 0);
	policies_keep(&other.policies, &same.policies);
	assert_int_equal(values_of(&other, "sbeet")->params.reading, SCHED_READING_FIT);
	assert_int_equal(values_of(&other, "sbeet")->origin[SCHED_PARAM_READING].source,
			 SETTING_FILE);
	assert_int_equal(values_of(&other, "sbeet")->params.max_wait, 3);
}

static void config_bounds_lines_and_files(void **state) {
	static char text[INIFILE_SIZE_MAX + 1];
	struct config c;

	memset(text, '#', sizeof(text));
	assert_int_equal(read_n(&c, text, 4000), -EINVAL);
	assert_non_null(strstr(why, "F:1: the line has 4000 bytes"));
	for (size_t i = 99; i < sizeof(text); i += 100) {
		text[i] = '\n';
	}
	assert_int_equal(read_n(&c, text, INIFILE_SIZE_MAX), 0);
	assert_int_equal(read_n(&c, text, INIFILE_SIZE_MAX + 1), -EINVAL);
	assert_int_equal(read_n(&c, "[sbeetd]\npolicy = fcfs\0\n", 24), -EINVAL);
	assert_non_null(strstr(why, "F:2: the line has a NUL byte"));
}

static void config_takes_rights_of_users_and_groups(void **state) {
	struct config c;
	struct access_rights rights;
	struct peer peer = {.cred = {.uid = 70001, .gid = 70002}, .groups = {70003}, .n_groups = 1};

	assert_int_equal(read_text(&c,
				   "[user 70001]\njobs = 5\n"
				   "[users]\njobs = 9\nrealtime = no\nrate = 100\n"
				   "[group 70003]\njobs = 7\nrealtime = yes\nbytes = 2M\n"
				   "[group 70004]\npriority-max = 3\n"
				   "[user no-such-user]\njobs = 1\n"),
			 0);
	assert_string_equal(warnings,
			    "F:14: unknown user or group in section 'user "
			    "no-such-user'\n");
	access_rights(&c.access, &peer, &rights);
	assert_int_equal(rights.limits.most[QUOTA_JOBS], 5);
	assert_int_equal(rights.limits.most[QUOTA_SESSIONS], 4096);
	assert_int_equal(rights.limits.most[QUOTA_BYTES], 2 * 1024 * 1024);
	assert_int_equal(rights.limits.rate, 100);
	assert_true(rights.realtime);
	assert_int_equal(rights.priority_max, 1000);

	peer.cred.uid = 70009;
	peer.n_groups = 0;
	peer.cred.gid = 70004;
	access_rights(&c.access, &peer, &rights);
	assert_int_equal(rights.limits.most[QUOTA_JOBS], 9);
	assert_false(rights.realtime);
	assert_int_equal(rights.priority_max, 3);
}

static void config_knows_admins(void **state) {
	struct config c;
	struct peer peer = {.cred = {.uid = 70001, .gid = 70002}, .groups = {70003}, .n_groups = 1};
	static const char *const forms[] = {
		"[sbeetd]\nadmins = 70005 no-such-user @70003\n",
		"[sbeetd]\nadmins = 70005, no-such-user,@70003,\n",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		peer.cred.uid = 70001;
		peer.n_groups = 1;
		assert_int_equal(read_text(&c, forms[i]), 0);
		assert_string_equal(warnings, "F:2: unknown user or group 'no-such-user'\n");
		assert_true(access_is_admin(&c.access, &peer, true));
		peer.n_groups = 0;
		assert_false(access_is_admin(&c.access, &peer, true));
		peer.cred.uid = 70005;
		assert_true(access_is_admin(&c.access, &peer, true));
		peer.cred.uid = 0;
		assert_true(access_is_admin(&c.access, &peer, true));
		assert_false(access_is_admin(&c.access, &peer, false));
	}
}

static int read_task(struct config *c, const char *text) {
	config_init(c);
	warnings[0] = why[0] = '\0';
	return config_read_task(c, "camera", "T", text, strlen(text), warn, why, sizeof(why));
}

static bool matches(const char *match, const char *executable, const char *name,
		    const char *cgroup) {
	struct taskfile_program program = {executable, name, cgroup};
	struct config c;
	bool yes;

	assert_int_equal(read_task(&c, match), 0);
	yes = taskfile_matches(&c.tasks[0], &program);
	config_deinit(&c);
	return yes;
}

static void task_files_match_programs(void **state) {
	static const char unit[] = "[match]\nunit = cam@*.service\n";
	static const char both[] = "[match]\nexecutable = /opt/*/cam\nname = c*\n";

	assert_true(matches("", "/x", "camera", ""));
	assert_false(matches("", "/x", "cam", ""));
	assert_true(matches(unit, "", "x", "/system.slice/cam@1.service/payload"));
	assert_false(matches(unit, "", "x", "/system.slice/cam.service"));
	assert_true(matches(both, "/opt/a/cam", "c1", ""));
	assert_false(matches(both, "/opt/a/b/cam", "c1", ""));
	assert_false(matches(both, "/opt/a/cam", "d", ""));
	assert_true(matches("[match]\ncgroup = /a.slice\n", "", "x", "/a.slice/b.scope"));
	assert_false(matches("[match]\ncgroup = /a.slice\n", "", "x", "/a.slicer"));
}

static void task_files_beat_what_programs_say(void **state) {
	struct config c;
	struct task_spec task;

	assert_int_equal(
		read_task(&c,
			  "[task]\nclass = realtime\nperiod = 33ms\n"
			  "priority = 7\nprofile = p\ngpu = 1\nmin-sms = 5\nmax-sms = 12\n"),
		0);
	task_init(&task, NULL, "prog");
	task.deadline = 50 * NSEC_PER_MSEC;
	taskfile_apply(&c.tasks[0], &task);
	assert_string_equal(task.name, "camera");
	assert_int_equal(task.task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	assert_int_equal(task.period, 33 * NSEC_PER_MSEC);
	assert_int_equal(task.deadline, 33 * NSEC_PER_MSEC); /* its own was beyond the period */
	assert_int_equal(task.job.priority, 7);
	assert_string_equal(task.profile, "p");
	assert_int_equal(task.gpu, 1);
	assert_int_equal(task.job.min_sms, 5);
	assert_int_equal(task.job.max_sms, 12);
	config_deinit(&c);
}

static void task_files_are_refused_with_their_line(void **state) {
	struct config c;

	assert_int_equal(read_task(&c, "[task]\nmax-sms = 0\n"), -EINVAL);
	assert_string_equal(why,
			    "T:2: max-sms '0': expected a whole number from 1 to 256, or none");
	config_deinit(&c);
	assert_int_equal(read_task(&c, "[task]\nmax-sms = 4\nmin-sms = 5\n"), -EINVAL);
	assert_string_equal(why, "T:3: min-sms '5': expected at most max-sms, 4");
	config_deinit(&c);
	assert_int_equal(read_task(&c, "[task]\nperiod = 1ms\ndeadline = 2ms\n"), -EINVAL);
	assert_string_equal(why, "T:3: deadline '2ms': expected at most the period, 1ms");
	config_deinit(&c);
	assert_int_equal(read_task(&c, "[task]\nperoid = 1ms\n"), 0);
	assert_string_equal(warnings, "T:2: unknown key 'peroid' (did you mean 'period'?)\n");
	config_deinit(&c);
}

static void quota_slows_down_who_sends_too_much(void **state) {
	struct quota_limits limits = {.most = {1, 1, 1}, .rate = 10};
	struct quota_user *user;
	struct quota *quota;
	nsec_t now = 100 * NSEC_PER_SEC;

	assert_int_equal(quota_new(&quota, &limits), 0);
	assert_int_equal(quota_user_ref(quota, 1, 0, &user), 0);
	for (int i = 0; i < 10; i++) { /* a second's worth at once */
		assert_int_equal(quota_packet(user, now), 0);
	}
	assert_int_equal(quota_packet(user, now), NSEC_PER_SEC / 10);
	assert_int_equal(quota_packet(user, now + NSEC_PER_SEC / 5), 0);
	limits.rate = 0;
	quota_user_set_limits(user, &limits);
	assert_int_equal(quota_packet(user, now), 0);
	quota_user_unref(user);
	quota_free(quota);
}

static void expect_item(const char *page, const char *key, const char *after) {
	char item[64];

	snprintf(item, sizeof(item), "\n.It Cm %s\n%s", key, after);
	if (!strstr(page, item)) {
		fail_msg("sbeetd.conf(5) has no item '%s'", item);
	}
}

static char *read_page(void) {
	char *page = NULL;
	size_t size = 0;
	FILE *f = fopen(MAN_PAGE, "re");

	assert_non_null(f);
	assert_true(getdelim(&page, &size, '\0', f) > 0);
	fclose(f);
	return page;
}

/* "even" as ".Ql even", behind the item of its key and before the next one. */
static void expect_default(const char *page, const char *key, const char *fallback) {
	char item[64], text[64];
	const char *at, *end, *found;

	snprintf(item, sizeof(item), "\n.It Cm %s\n", key);
	snprintf(text, sizeof(text), "\n.Ql %s ", fallback);
	at = strstr(page, item);
	assert_non_null(at);
	end = strstr(at + 1, "\n.It ");
	found = strstr(at, "Default:");
	found = found ? strstr(found, text) : NULL;
	if (*fallback && (!found || (end && found > end))) {
		fail_msg("sbeetd.conf(5) does not say that the default of '%s' is '%s'", key,
			 fallback);
	}
}

static bool is_key(const char *key) {
	for (int i = 0; i < _SETTING_N; i++) {
		if (strcmp(settings_table[i].key, key) == 0) {
			return true;
		}
	}
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		if (strcmp(access_table[i].key, key) == 0) {
			return true;
		}
	}
	for (int i = 0; i < _TASKFILE_KEY_N; i++) {
		if (strcmp(taskfile_table[i].key, key) == 0) {
			return true;
		}
	}
	return sched_param_find(key) >= 0;
}

/* And of no other. */
static void man_page_tells_of_keys_alone(void **state) {
	char *page = read_page(), key[64];
	int n = 0;

	for (const char *at = page; (at = strstr(at, "\n.It Cm ")); n++) {
		at += strlen("\n.It Cm ");
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(at, "\n"), at);
		if (!is_key(key)) {
			fail_msg("sbeetd.conf(5) has an item '%s', which is no key", key);
		}
	}
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		n -= !sched_param_rows[i].simulated;
	}
	assert_int_equal(n, _SETTING_N + _ACCESS_KEY_N + _TASKFILE_KEY_N);
	free(page);
}

/* A page that misses a key would fail here: it lists each as ".It Cm KEY". */
static void man_page_tells_of_every_key(void **state) {
	char *page = read_page();

	for (int i = 0; i < _SETTING_N; i++) {
		expect_item(page, settings_table[i].key,
			    settings_table[i].live ? "" : ".Pq restart\n");
		expect_default(page, settings_table[i].key, settings_table[i].fallback);
	}
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		expect_item(page, access_table[i].key, "");
		expect_default(page, access_table[i].key, access_table[i].fallback);
	}
	for (int i = 0; i < _TASKFILE_KEY_N; i++) {
		expect_item(page, taskfile_table[i].key, "");
	}
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		if (!sched_param_rows[i].simulated) {
			expect_item(page, sched_param_rows[i].name, "");
		}
	}
	free(page);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_has_defaults_for_everything),
		cmocka_unit_test(config_takes_values_and_remembers_lines),
		cmocka_unit_test(config_warns_of_what_it_does_not_know),
		cmocka_unit_test(config_refuses_bad_values_with_their_line),
		cmocka_unit_test(config_takes_parameters_of_policies),
		cmocka_unit_test(config_names_wrong_parameters),
		cmocka_unit_test(parameters_set_by_request_outlive_a_reload),
		cmocka_unit_test(config_bounds_lines_and_files),
		cmocka_unit_test(config_takes_rights_of_users_and_groups),
		cmocka_unit_test(config_knows_admins),
		cmocka_unit_test(task_files_match_programs),
		cmocka_unit_test(task_files_beat_what_programs_say),
		cmocka_unit_test(task_files_are_refused_with_their_line),
		cmocka_unit_test(quota_slows_down_who_sends_too_much),
		cmocka_unit_test(man_page_tells_of_every_key),
		cmocka_unit_test(man_page_tells_of_keys_alone),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
