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

#include <unistd.h>

#include "client/base/ctl.h"
#include "client/sim/plan-table.h"
#include "daemon/sim/cycle.h"
#include "plan-cases.h"

/* Only where a GPU runs one job at a time is there an argument. */
static bool may_be_bounded(const struct plan_case *c) {
	return c->planning.sim.policy->serial != SCHED_SERIAL_NONE;
}

/* Nor is it broken by shorter times, other first releases, or programs on other GPUs. */
static void nothing_breaks_what_is_in_time(void **state) {
	unsigned n[_PLANNING_VERDICT_N] = {0};

	for (uint64_t seed = 1; n[PLANNING_IN_TIME] < 60; seed++) {
		struct plan_case c;

		plan_case_make(&c, seed, 100 + (unsigned)(seed * 37 % 901));
		assert_int_equal(planning_run(&c.planning, &c.scenario), 0);
		n[c.planning.all]++;
		assert_true(c.planning.all != PLANNING_IN_TIME || may_be_bounded(&c));
		
		for (uint64_t i = 0; c.planning.all == PLANNING_IN_TIME && i < 12; i++) {
			uint64_t late = i == 0 ? plan_case_simulate(&c, 20)
					       : plan_case_vary(&c, seed * 100 + i, 4);

			if (late > 0) {
				print_error("case %llu, variation %llu\n", (unsigned long long)seed,
					    (unsigned long long)i);
			}
			assert_int_equal(late, 0);
		}
		plan_case_deinit(&c);
	}
	assert_true(n[PLANNING_LATE] > 20 && n[PLANNING_NOT_KNOWN] > 20);
}

/* What is in time by a table is so as the table says it. */
static void tables_keep_what_is_promised(void **state) {
	static const char path[] = "test-client-planning.json";
	unsigned n_tables = 0;

	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct plan_case c;

		plan_case_make(&c, seed, 100 + (unsigned)(seed * 37 % 901));
		c.planning.sim.params.sched.free_at_kernel_end = false;
		c.planning.table = true;
		assert_int_equal(planning_run(&c.planning, &c.scenario), 0);
		if (c.planning.all == PLANNING_IN_TIME &&
		    plan_table_write(&c.scenario, &c.planning, path) == CTL_EXIT_OK) {
			const char *fault = plan_case_check_table(&c, path);

			if (fault) {
				print_error("case %llu: %s\n", (unsigned long long)seed, fault);
			}
			assert_null(fault);
			n_tables++;
			unlink(path);
		}
		plan_case_deinit(&c);
	}
	assert_true(n_tables > 40);
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

struct question {
	const char *policy, *tasks;
	bool table;
	nsec_t duration;
	enum sim_exec exec;
	enum planning_verdict verdict;
};

/* Tasks are of profile p, which takes 8 ms on all 8 SMs, or of long: 30 ms on another GPU. */
static void plan(const struct question *q, struct planning *ret) {
	struct scenario s;
	char text[1024], error[256];

	snprintf(text, sizeof(text),
		 "{\"gpus\": [{\"name\": \"a\", \"sms\": 8, \"static_w\": 1, \"idle_w_per_sm\": "
		 "0.1}, {\"name\": \"b\", \"sms\": 8, \"static_w\": 1, \"idle_w_per_sm\": 0.1}], "
		 "\"profiles\": [{\"name\": \"p\", \"on\": {\"a\": {\"linear\": \"64ms\", "
		 "\"watts_per_sm\": 1}}}, {\"name\": \"long\", \"on\": {\"b\": {\"linear\": "
		 "\"240ms\", \"watts_per_sm\": 1}}}], \"tasks\": [%s]}",
		 q->tasks);
	assert_int_equal(
		scenario_init(&s, "s", text, strlen(text), NULL, NULL, error, sizeof(error)), 0);
	*ret = (struct planning){
		.table = q->table,
		.sim = {.policy = sched_policy_find(q->policy), .duration = q->duration}};
	params_default(&ret->sim.params);
	ret->sim.params.exec = q->exec;
	ret->sim.params.exec_share_permille = 500;
	assert_int_equal(planning_run(ret, &s), 0);
	scenario_deinit(&s);
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
	/* In time only because y comes when x is over. */
	static const char apart[] =
		"{\"name\": \"x\", \"profile\": \"p\", \"period\": \"40ms\", \"deadline\": "
		"\"15ms\"},"
		"{\"name\": \"y\", \"profile\": \"p\", \"period\": \"40ms\", \"offset\": \"20ms\"}";
	static const struct question questions[] = {
		/* a table: what repeats itself */
		{"fcfs", two, true, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", two, true, 120 * NSEC_PER_MSEC, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", two, true, 119 * NSEC_PER_MSEC, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{"fcfs", two, true, 0, SIM_EXEC_SHARE, PLANNING_NOT_KNOWN},
		{"sbeet", two, true, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", exact, true, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", once, true, 0, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{"fcfs", wild, true, NSEC_PER_SEC, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{"fcfs", apart, true, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		/* else what has a bound, however short the simulation */
		{"fcfs", two, false, 1, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"rm", two, false, 0, SIM_EXEC_SHARE, PLANNING_IN_TIME},
		{"fcfs", exact, false, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", once, false, 0, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", wild, false, NSEC_PER_SEC, SIM_EXEC_WORST, PLANNING_IN_TIME},
		{"fcfs", apart, false, 0, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{"sbeet", two, false, 0, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
		{"steer", two, false, 0, SIM_EXEC_WORST, PLANNING_NOT_KNOWN},
	};

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		struct planning p;

		plan(&questions[i], &p);
		assert_int_equal(p.all, questions[i].verdict);
		assert_int_equal(p.each[0], questions[i].verdict);
		assert_string_not_equal(planning_verdict_text(p.each[0]), "");
		planning_deinit(&p);
	}
}

/* Two equal GPUs: by its plan one program more than the first one can serve runs on the second, but
 * live all may be on one of them, unless they can run nowhere else. */
static void planning_counts_tasks_wherever_they_may_be(void **state) {
#define ON_P "{\"linear\": \"64ms\", \"watts_per_sm\": 1}"
	static const char *const profiles[] = {"\"a\": " ON_P, "\"a\": " ON_P ", \"b\": " ON_P};
	static const char *const policies[] = {"fcfs", "bcf", "load-dist", "sbeet-mg"};

	for (size_t i = 0; i < 8; i++) {
		struct planning p = {.sim.policy = sched_policy_find(policies[i % 4])};
		bool both = i / 4;
		char text[1024], error[256];
		struct scenario s;

		snprintf(text, sizeof(text),
			 "{\"gpus\": [{\"name\": \"a\", \"sms\": 8, \"static_w\": 1, "
			 "\"idle_w_per_sm\": "
			 "0.1}, {\"name\": \"b\", \"sms\": 8, \"static_w\": 1, \"idle_w_per_sm\": "
			 "0.1}], \"profiles\": [{\"name\": \"p\", \"on\": {%s}}, {\"name\": \"q\", "
			 "\"on\": {\"b\": {\"linear\": \"64ms\", \"watts_per_sm\": 1}}}], "
			 "\"tasks\": "
			 "[{\"name\": \"x\", \"profile\": \"p\", \"period\": \"20ms\"}, {\"name\": "
			 "\"y\", \"profile\": \"p\", \"period\": \"20ms\"}, {\"name\": \"z\", "
			 "\"profile\": \"q\", \"period\": \"20ms\", \"moves\": true}]}",
			 profiles[both]);
		assert_int_equal(scenario_init(&s, "s", text, strlen(text), NULL, NULL, error,
					       sizeof(error)),
				 0);
		params_default(&p.sim.params);
		assert_int_equal(planning_run(&p, &s), 0);
		assert_int_equal(p.all, both || i % 4 == 3 ? PLANNING_NOT_KNOWN : PLANNING_IN_TIME);
		planning_deinit(&p);
		scenario_deinit(&s);
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
		cmocka_unit_test(nothing_breaks_what_is_in_time),
		cmocka_unit_test(tables_keep_what_is_promised),
		cmocka_unit_test(planning_waits_for_a_backlog_to_show),
		cmocka_unit_test(planning_says_what_is_not_known),
		cmocka_unit_test(planning_counts_tasks_wherever_they_may_be),
		cmocka_unit_test(cycle_is_found_wherever_it_begins),
	};

	return cmocka_run_group_tests_name("client-planning", tests, NULL, NULL);
}
