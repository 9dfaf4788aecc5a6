/*
 * bench-plan.c [FIRST [ACCEPTED]]: whether what `sbeetctl plan` says holds.
 *
 * Random scenarios of a demand (the sum of G(M) / T, for each GPU) of 0.1 to 1, under twelve
 * policies and several parameters in turn, until ACCEPTED of them are said to be in time for ever:
 * these are simulated as planned, and then with shorter times, other first releases, and programs
 * on other GPUs, 12 times; late_later counts those in which a job is late then. Of those that
 * have a table the table is checked; how often is the answer not known?
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/sim/plan-table.h"
#include "tests/unit/client/plan-cases.h"

#define VARIATIONS 12

struct tally {
	unsigned long long plans, verdicts[_PLANNING_VERDICT_N], late_later, tables, wrong_tables;
};

static void must_plan(struct plan_case *c, uint64_t seed) {
	if (planning_run(&c->planning, &c->scenario) < 0) {
		fprintf(stderr, "case %llu can't be planned\n", (unsigned long long)seed);
		exit(1);
	}
}

static unsigned demand_of(uint64_t seed) {
	return 100 + (unsigned)(seed * 37 % 901);
}

static void plan(uint64_t seed, struct tally *tally) {
	struct plan_case c;
	uint64_t late;

	plan_case_make(&c, seed, demand_of(seed));
	must_plan(&c, seed);
	tally->plans++;
	tally->verdicts[c.planning.all]++;
	if (c.planning.all == PLANNING_IN_TIME) {
		late = plan_case_simulate(&c, 20);
		for (uint64_t i = 1; late == 0 && i <= VARIATIONS; i++) {
			late = plan_case_vary(&c, seed * 100 + i, 4);
		}
		if (late > 0) {
			tally->late_later++;
			fprintf(stderr, "case %llu is late later\n", (unsigned long long)seed);
		}
	}
	plan_case_deinit(&c);
}

static void plan_table(uint64_t seed, struct tally *tally) {
	static const char path[] = "bench-plan-table.json";
	struct plan_case c;

	plan_case_make(&c, seed, demand_of(seed));
	c.planning.sim.params.sched.free_at_kernel_end = false;
	c.planning.table = true;
	must_plan(&c, seed);
	if (c.planning.all == PLANNING_IN_TIME &&
	    plan_table_write(&c.scenario, &c.planning, path) == CTL_EXIT_OK) {
		const char *fault = plan_case_check_table(&c, path);

		tally->tables++;
		tally->wrong_tables += fault != NULL;
		if (fault) {
			fprintf(stderr, "table %llu: %s\n", (unsigned long long)seed, fault);
		}
		unlink(path);
	}
	plan_case_deinit(&c);
}

int main(int argc, char **argv) {
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t accepted = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
	struct tally t = {0};

	for (; t.verdicts[PLANNING_IN_TIME] < accepted; seed++) {
		plan(seed, &t);
		plan_table(seed, &t);
	}
	printf("{\"bench\": \"plan\", \"plans\": %llu, \"in_time\": %llu, \"late\": %llu, "
	       "\"not_known\": %llu, \"late_later\": %llu, \"tables\": %llu, "
	       "\"wrong_tables\": %llu}\n",
	       t.plans, t.verdicts[PLANNING_IN_TIME], t.verdicts[PLANNING_LATE],
	       t.verdicts[PLANNING_NOT_KNOWN], t.late_later, t.tables, t.wrong_tables);
	return t.late_later + t.wrong_tables > 0;
}
