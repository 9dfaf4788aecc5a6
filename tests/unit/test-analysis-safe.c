/*
 * test-analysis-safe.c: the corrected bounds against simulated schedules of random sets of tasks.
 *
 * daemon/sim/schedule.h makes the schedules from what each approach does, with none of the
 * analysis: no response may be above the corrected bound. They do find responses above the printed
 * bounds, which shows that they are hard enough.
 *
 * Usage: test-analysis-safe [SETS [SEED [METHOD [RUNS]]]], RUNS adversarial ones for each task
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/analysis/method.h"
#include "daemon/sim/schedule.h"
#include "daemon/sim/sim.h"
#include "tests/unit/drawn-tasks.h"

#define DURATION 600

static unsigned n_sets = 3000, n_adversarial = 6;
static uint64_t seed = 1;

/* A corrected method, the printed ones that it stands beside, and whether some schedule takes
 * longer than those. */
struct pair {
	const char *safe;
	enum schedule_approach approach;
	const char *printed[2];
	bool exceeded;
};

struct tally {
	unsigned bounds, met, above[2];
};

static void check_set(const struct pair *p, const struct drawn *d,
		      const struct schedule_worst *worst, struct tally *tally) {
	static const struct rta_readings readings;
	struct rta_bound safe[RTA_TASKS_MAX], printed[RTA_TASKS_MAX];

	rta_method_run(rta_method_find(p->safe), &d->set, &readings, safe);
	for (size_t i = 0; i < d->set.n_real_time; i++) {
		const nsec_t longest = schedule_longest(worst, i);

		if (longest > safe[i].response) {
			drawn_print(d);
			fail_msg("%s: task %zu took %u, its bound is %u", p->safe, i,
				 (unsigned)longest, (unsigned)safe[i].response);
		}
		tally->bounds += safe[i].response != RTA_FOREVER;
		tally->met += longest > 0 && longest == safe[i].response;
	}
	for (size_t k = 0; k < 2 && p->printed[k]; k++) {
		rta_method_run(rta_method_find(p->printed[k]), &d->set, &readings, printed);
		for (size_t i = 0; i < d->set.n_real_time; i++) {
			tally->above[k] += schedule_longest(worst, i) > printed[i].response;
		}
	}
}

static void nothing_takes_longer_than_its_safe_bound(void **state) {
	const struct pair *p = *state;
	const struct rta_method *m = rta_method_find(p->safe);
	struct tally tally = {0};
	uint64_t random = seed;

	assert_non_null(m);
	for (unsigned s = 0; s < n_sets; s++) {
		struct schedule_worst worst;
		struct drawn d;
		struct schedule_search search = {
			.setup = {.set = &d.set,
				  .approach = p->approach,
				  .mode = m->mode,
				  .duration = DURATION,
				  .seed = s},
			.n_random = 2,
			.n_adversarial = n_adversarial,
		};

		drawn_tasks(&d, m->mode, &random);
		schedule_search(&search, &worst);
		check_set(p, &d, &worst, &tally);
	}
	print_message("%s: %u bounds, %u reached; printed ones exceeded %u and %u times\n", p->safe,
		      tally.bounds, tally.met, tally.above[0], tally.above[1]);
	assert_true(tally.bounds > n_sets / 2);
	assert_true(tally.met > 0);
	for (size_t k = 0; k < 2 && p->printed[k] && p->exceeded; k++) {
		assert_true(tally.above[k] > 0);
	}
}

static struct pair pairs[] = {
	{"safe", SCHEDULE_IOCTL, {0}, false},
	{"safe-busy", SCHEDULE_IOCTL, {"ioctl-busy", "ioctl-busy-tight"}, true},
	{"safe-suspend", SCHEDULE_IOCTL, {"ioctl-suspend", "ioctl-suspend-tight"}, true},
	{"safe-kthread", SCHEDULE_KTHREAD, {"kthread-busy"}, true},
	{"safe-mpcp-busy", SCHEDULE_MPCP, {"mpcp-busy"}, false},
	{"safe-mpcp-suspend", SCHEDULE_MPCP, {"mpcp-suspend"}, false},
	{"safe-fmlp-busy", SCHEDULE_FMLP, {"fmlp-busy"}, false},
	{"safe-fmlp-suspend", SCHEDULE_FMLP, {"fmlp-suspend"}, false},
};

#define N_PAIRS (sizeof(pairs) / sizeof(pairs[0]))

int main(int argc, char **argv) {
	struct CMUnitTest tests[N_PAIRS];

	for (size_t k = 0; k < N_PAIRS; k++) {
		tests[k] =
			(struct CMUnitTest){.name = pairs[k].safe,
					    .test_func = nothing_takes_longer_than_its_safe_bound,
					    .initial_state = &pairs[k]};
	}
	n_sets = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : n_sets;
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
	n_adversarial = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : n_adversarial;
	if (argc > 3) {
		cmocka_set_test_filter(argv[3]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
