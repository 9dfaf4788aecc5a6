/*
 * test-client-planning.c: what `sbeetctl plan` says holds for ever, and nothing is said that is not
 * known. bench-plan does the same with thousands of scenarios.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/sim/cycle.h"
#include "plan-cases.h"

static void planning_is_right_for_twenty_hyperperiods(void **state) {
	unsigned n[_PLANNING_VERDICT_N] = {0};

	for (uint64_t seed = 1; seed <= 120; seed++) {
		struct plan_case c;

		plan_case_make(&c, seed, 200 + (unsigned)(seed * 37 % 1101));
		assert_int_equal(planning_run(&c.planning, &c.scenario), 0);
		n[c.planning.all]++;
		if (c.planning.all == PLANNING_IN_TIME) {
			assert_int_equal(plan_case_simulate(&c, 20), 0);
		}
		plan_case_deinit(&c);
	}
	assert_true(n[PLANNING_IN_TIME] > 20 && n[PLANNING_LATE] > 20);
	assert_int_equal(n[PLANNING_NOT_KNOWN], 0);
}

/* Nobody is late for two hyperperiods, and then somebody is. */
static void planning_waits_for_a_backlog_to_show(void **state) {
	static const uint64_t seeds[] = {2280, 2551, 2761, 2943};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		struct plan_case c;

		plan_case_make(&c, seeds[i], 200 + (unsigned)(seeds[i] * 37 % 1101));
		assert_int_equal(planning_run(&c.planning, &c.scenario), 0);
		assert_int_equal(c.planning.all, PLANNING_LATE);
		plan_case_deinit(&c);
	}
}

/* @tasks: of profile p, which takes 8 ms on all 8 SMs, or of long: 30 ms on another GPU. */
static enum planning_verdict plan(const char *tasks, nsec_t duration, enum sim_exec exec,
				  struct planning *ret) {
	struct scenario s;
	char text[1024], error[256];

	snprintf(text, sizeof(text),
		 "{\"gpus\": [{\"name\": \"a\", \"sms\": 8, \"static_w\": 1, \"idle_w_per_sm\": "
		 "0.1}, {\"name\": \"b\", \"sms\": 8, \"static_w\": 1, \"idle_w_per_sm\": 0.1}], "
		 "\"profiles\": [{\"name\": \"p\", \"on\": {\"a\": {\"linear\": \"64ms\", "
		 "\"watts_per_sm\": 1}}}, {\"name\": \"long\", \"on\": {\"b\": {\"linear\": "
		 "\"240ms\", \"watts_per_sm\": 1}}}], \"tasks\": [%s]}",
		 tasks);
	assert_int_equal(
		scenario_init(&s, "s", text, strlen(text), NULL, NULL, error, sizeof(error)), 0);
	*ret = (struct planning){
		.sim = {.policy = sched_policy_find("fcfs"), .duration = duration}};
	params_default(&ret->sim.params);
	ret->sim.params.exec = exec;
	ret->sim.params.exec_share_permille = 500;
	assert_int_equal(planning_run(ret, &s), 0);
	scenario_deinit(&s);
	return ret->all;
}

static void planning_says_what_is_not_known(void **state) {
	static const char two[] =
		"{\"name\": \"x\", \"profile\": \"p\", \"period\": \"20ms\"}, "
		"{\"name\": \"y\", \"profile\": \"p\", \"period\": \"30ms\"}";
	static const char once[] = "{\"name\": \"x\", \"profile\": \"p\", \"deadline\": \"20ms\"}";
	/* x ends at its deadlines, which are the boundaries; y keeps the state from repeating until
	 * it ends after three of them. */
	static const char exact[] =
		"{\"name\": \"x\", \"profile\": \"p\", \"period\": \"8ms\"},"
		"{\"name\": \"y\", \"profile\": \"long\"}";
	static const char wild[] =
		"{\"name\": \"x\", \"profile\": \"p\", \"period\": \"20000003ns\"},"
		"{\"name\": \"y\", \"profile\": \"p\", \"period\": \"31000019ns\"}";
	static const struct {
		const char *tasks;
		nsec_t duration;
		enum sim_exec exec;
		enum planning_verdict verdict;
	} cases[] = {
		{two, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{two, 120 * NSEC_PER_MSEC, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{two, 119 * NSEC_PER_MSEC, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{two, 0, SIM_EXEC_SHARE, PLANNING_NOT_KNOWN},
		{exact, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{once, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{once, 10 * NSEC_PER_MSEC, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{wild, NSEC_PER_SEC, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct planning p;

		assert_int_equal(plan(cases[i].tasks, cases[i].duration, cases[i].exec, &p),
				 cases[i].verdict);
		assert_int_equal(p.each[0], cases[i].verdict);
		assert_string_not_equal(planning_verdict_text(p.each[0]), "");
		planning_deinit(&p);
	}
}

/* Numbers that run into a cycle of @length after @before others. */
static uint64_t state_of(uint64_t n, uint64_t before, uint64_t length) {
	return n < before ? n : before + (n - before) % length;
}

static void cycle_is_found_wherever_it_begins(void **state) {
	for (uint64_t before = 0; before < 20; before++) {
		for (uint64_t length = 1; length < 20; length++) {
			uint64_t longer = before > length ? before : length, n = 0;
			struct cycle c = {0};
			int same = 0;

			for (; !same; n++) {
				cycle_add(&c, state_of(n, before, length));
				cycle_add(&c, length);
				same = cycle_end(&c);
			}
			assert_true(n > before + length);
			assert_true(n <= 3 * longer + 2);
			cycle_deinit(&c);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planning_is_right_for_twenty_hyperperiods),
		cmocka_unit_test(planning_waits_for_a_backlog_to_show),
		cmocka_unit_test(planning_says_what_is_not_known),
		cmocka_unit_test(cycle_is_found_wherever_it_begins),
	};

	return cmocka_run_group_tests_name("client-planning", tests, NULL, NULL);
}
