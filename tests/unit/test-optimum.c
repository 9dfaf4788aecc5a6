/* test-optimum.c: no policy is better than the best of all schedules, and how near some come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "optimum.h"

#define CASES 150
#define MS    NSEC_PER_MSEC

static struct optimum_case c; /* its tasks point into it */

static void add(nsec_t release, nsec_t deadline, nsec_t work) {
	size_t i = c.n_jobs++;

	assert_int_equal(profile_table_linear(&c.profiles[i][0], 4, 0, 0, work, 1000), 0);
	c.tasks[i] = (struct sched_task){.period = c.duration,
					 .deadline = deadline,
					 .first_release = release,
					 .fixed_gpu = -1,
					 .profiles = {&c.profiles[i][0]}};
}

static void make_by_hand(void) {
	memset(&c, 0, sizeof(c));
	c.n_gpus = 1;
	c.duration = 1000 * MS;
	c.gpus[0] = (struct sched_gpu_model){
		.power = {.n_sms = 4, .static_mw = 5000, .idle_mw_per_sm = 100},
		.limit = 4,
		.step = 1};
}

/* A long job and a short one that comes after it: on all SMs the first is in the second's way; on
 * three, both are in time. One after the other they would take 12 + 4 mJ; idle SMs cost nothing. */
static void optimum_is_right_by_hand(void **state) {
	struct optimum_value v;

	make_by_hand();
	add(0, 4 * MS, 12 * MS); /* 3 ms on 4 SMs, 4 ms on 3 */
	add(1 * MS, 2 * MS, 2 * MS);
	v = optimum_search(&c);
	assert_int_equal(v.misses, 0);
	/* 4 ms with 3 SMs and, within it, 2 ms with the fourth; it idles for the other 2 ms */
	assert_int_equal(v.energy_pj, 4 * MS * 3000 + 2 * MS * 1000 + 2 * MS * 100);

	make_by_hand();
	add(0, 3 * MS, 12 * MS); /* needs all SMs */
	add(1 * MS, 1 * MS, 4 * MS);
	v = optimum_search(&c);
	assert_int_equal(v.misses, 1);
	assert_int_equal(v.energy_pj, 1 * MS * 4000); /* the cheaper one of the two runs */

	make_by_hand();
	add(0, 9 * MS, 4 * MS); /* three jobs on one GPU: never all at once */
	add(0, 4 * MS, 4 * MS);
	add(0, 4 * MS, 4 * MS);
	v = optimum_search(&c);
	assert_int_equal(v.misses, 0);
	assert_int_equal(v.energy_pj, 3 * MS * 4000);
}

static void no_policy_is_better_than_the_optimum(void **state) {
	unsigned reached = 0;

	for (uint64_t seed = 1; seed <= CASES; seed++) {
		unsigned fewest = UINT32_MAX;
		struct optimum_value best;

		optimum_case_make(&c, seed);
		best = optimum_search(&c);
		for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
			struct optimum_value v;

			if (strcmp((*p)->name, "fixed") == 0 || (*p)->stops) {
				continue; /* jobs have no fixed place; the search stops none */
			}
			assert_int_equal(optimum_policy(&c, *p, &v), 0);
			assert_true(v.misses >= best.misses);
			assert_true(v.misses > best.misses || v.energy_pj >= best.energy_pj);
			fewest = v.misses < fewest ? v.misses : fewest;
		}
		reached += fewest == best.misses;
	}
	/* what the search finds can be done: mostly somebody does it */
	assert_true(reached >= CASES * 17 / 20);
}

/* Jobs in a hundred that the policy misses and need not. */
static double excess_of(const char *name) {
	const struct sched_policy *policy = sched_policy_find(name);
	unsigned jobs = 0, excess = 0;

	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct optimum_value v;

		optimum_case_make(&c, seed);
		assert_int_equal(optimum_policy(&c, policy, &v), 0);
		excess += v.misses - optimum_search(&c).misses;
		jobs += (unsigned)c.n_jobs;
	}
	return 100.0 * excess / jobs;
}

/* Same seeds, same cases: a change for the worse shows. FIGURES.md has the numbers of more cases.
 */
static void lookahead_stays_near_the_optimum(void **state) {
	double excess = excess_of("lookahead");

	assert_true(excess < 4);
	assert_true(excess < excess_of("sbeet-mg") / 2 + 0.5);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimum_is_right_by_hand),
		cmocka_unit_test(no_policy_is_better_than_the_optimum),
		cmocka_unit_test(lookahead_stays_near_the_optimum),
	};

	return cmocka_run_group_tests_name("optimum", tests, NULL, NULL);
}
