/*
 * bench-plan.c [FIRST [ACCEPTED]]: whether what `sbeetctl plan` says holds.
 *
 * Random scenarios of a demand (the sum of G(M) / T, for each GPU) of 0.2 to 1.3, under twelve
 * policies and several parameters in turn, until ACCEPTED of them are said to be in time for ever:
 * these are simulated for 20 hyperperiods, and late_later counts those in which a job is late then.
 * Then as many of a demand of 0.2 to 0.9: how often is the answer not known?
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/client/plan-cases.h"

struct tally {
	unsigned long long plans, verdicts[_PLANNING_VERDICT_N], late_later;
};

static void plan(uint64_t seed, unsigned demand, struct tally *tally) {
	struct plan_case c;

	plan_case_make(&c, seed, demand);
	if (planning_run(&c.planning, &c.scenario) < 0) {
		fprintf(stderr, "case %llu can't be planned\n", (unsigned long long)seed);
		exit(1);
	}
	tally->plans++;
	tally->verdicts[c.planning.all]++;
	if (c.planning.all == PLANNING_IN_TIME && plan_case_simulate(&c, 20) > 0) {
		tally->late_later++;
		fprintf(stderr, "case %llu is late later\n", (unsigned long long)seed);
	}
	plan_case_deinit(&c);
}

static void print(const char *demand, const struct tally *t) {
	printf("{\"bench\": \"plan\", \"demand\": \"%s\", \"plans\": %llu, \"in_time\": %llu, "
	       "\"late\": %llu, \"not_known\": %llu, \"not_known_percent\": %.2f, "
	       "\"late_later\": %llu}\n",
	       demand, t->plans, t->verdicts[PLANNING_IN_TIME], t->verdicts[PLANNING_LATE],
	       t->verdicts[PLANNING_NOT_KNOWN],
	       100.0 * (double)t->verdicts[PLANNING_NOT_KNOWN] / (double)t->plans, t->late_later);
}

int main(int argc, char **argv) {
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, seed = first;
	uint64_t accepted = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
	struct tally any = {0}, usual = {0};

	for (; any.verdicts[PLANNING_IN_TIME] < accepted; seed++) {
		plan(seed, 200 + (unsigned)(seed * 37 % 1101), &any);
	}
	print("0.2-1.3", &any);
	for (uint64_t n = 0; n < accepted; n++, seed++) {
		plan(seed, 200 + (unsigned)(seed * 37 % 701), &usual);
	}
	print("0.2-0.9", &usual);
	return any.late_later + usual.late_later > 0;
}
