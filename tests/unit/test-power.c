/* test-power.c: the energy model and profiles against the dissertation's own numbers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/core/power.h"
#include "daemon/core/profile.h"
#include "energy.h"

/* Table 3.2 (b). */
static const struct power_gpu gpus[2] = {
	{.n_sms = 46, .static_mw = 46000, .idle_mw_per_sm = 445}, /* RTX 3070 */
	{.n_sms = 6, .static_mw = 8000, .idle_mw_per_sm = 652},	  /* T400 */
};

enum {
	MATMUL_3070 = 3770, /* Table 3.2 (a), mW per SM */
	HOTSPOT_3070 = 1140,
	HOTSPOT_T400 = 810,
};

#define US NSEC_PER_USEC

static struct power_segment segment(unsigned gpu, unsigned n_sms, unsigned mw_per_sm, nsec_t end) {
	return (struct power_segment){
		.gpu = gpu, .n_sms = n_sms, .dynamic_mw = (uint64_t)n_sms * mw_per_sm, .end = end};
}

/* Energy of both GPUs over [0, 100 ms), in hundredths of a joule, rounded. */
static uint64_t energy_cj(const struct power_segment *segments, size_t n) {
	nsec_t edges[8];
	uint64_t pj = 0;

	for (unsigned k = 0; k < 2; k++) {
		pj += power_energy_pj(&gpus[k], k, segments, n, 0, 100 * NSEC_PER_MSEC, edges);
	}
	return (pj + POWER_PJ_PER_J / 200) / (POWER_PJ_PER_J / 100);
}

static void power_gives_example_8(void **state) {
	struct power_segment distribution[] = {segment(0, 16, MATMUL_3070, 21550 * US),
					       segment(1, 6, HOTSPOT_T400, 73188 * US)};
	struct power_segment concentration[] = {segment(0, 16, MATMUL_3070, 21550 * US),
						segment(0, 30, HOTSPOT_3070, 12000 * US)};

	assert_int_equal(energy_cj(distribution, 2), 734); /* printed as 7.35 */
	assert_int_equal(energy_cj(concentration, 2), 724);
}

static void power_gives_example_9(void **state) {
	struct power_segment distribution[] = {segment(0, 30, MATMUL_3070, 11980 * US),
					       segment(1, 6, HOTSPOT_T400, 73188 * US)};
	struct power_segment concentration[] = {segment(0, 30, MATMUL_3070, 11980 * US),
						segment(0, 16, HOTSPOT_3070, 22310 * US)};

	assert_int_equal(energy_cj(distribution, 2), 720); /* printed as 7.19 */
	assert_int_equal(energy_cj(concentration, 2), 730);
}

static void power_is_static_when_nothing_runs(void **state) {
	nsec_t edges[2];

	assert_int_equal(power_now_mw(&gpus[0], 0, 0), 46000);
	assert_int_equal(power_now_mw(&gpus[0], 1, 3770), 46000 + 3770 + 45 * 445);
	assert_int_equal(power_energy_pj(&gpus[1], 1, NULL, 0, 5, 1005, edges), 8000 * 1000);
}

static void power_counts_only_what_lies_in_the_window(void **state) {
	struct power_segment s = {.n_sms = 46, .dynamic_mw = 1000, .start = 10, .end = 90};
	nsec_t edges[2];

	assert_int_equal(power_energy_pj(&gpus[0], 0, &s, 1, 20, 30, edges), 47000 * 10);
	assert_int_equal(power_energy_pj(&gpus[0], 0, &s, 1, 0, 20, edges), 46000 * 20 + 1000 * 10);
	assert_int_equal(power_energy_pj(&gpus[0], 0, &s, 1, 90, 95, edges), 46000 * 5);
	assert_int_equal(power_energy_pj(&gpus[0], 1, &s, 1, 20, 30, edges), 46000 * 10);
}

static void power_adds_overlapping_jobs(void **state) {
	struct power_segment s[] = {
		{.n_sms = 20, .dynamic_mw = 500, .start = 0, .end = 10},
		{.n_sms = 26, .dynamic_mw = 700, .start = 5, .end = 20},
	};
	nsec_t edges[4];
	uint64_t expected =
		5 * (46000 + 500 + 26 * 445) + 5 * (46000 + 1200) + 10 * (46000 + 700 + 20 * 445);

	assert_int_equal(power_energy_pj(&gpus[0], 0, s, 2, 0, 20, edges), expected);
}

/* Theorem 1: for linear-speedup jobs running side by side never costs less than one after the
 * other on all SMs. Rounding G_e(m) up adds at most one nanosecond a job. */
static void power_keeps_theorem_1(void **state) {
	uint64_t random = 88172645463325252ull;

	for (int round = 0; round < 2000; round++) {
		struct profile_table job[2];
		struct power_segment apart[2];
		struct power_segment together[2];
		const struct power_gpu *gpu = &gpus[0];
		nsec_t edges[4];
		nsec_t window = 0;
		unsigned m[2];

		for (int j = 0; j < 2; j++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			assert_int_equal(profile_table_linear(&job[j], 46, 0, 0,
							      1000000 + random % 900000000,
							      random / 7 % 4000),
					 0);
		}
		m[0] = 1 + random % 45;
		m[1] = 46 - m[0];
		for (int j = 0; j < 2; j++) {
			nsec_t start = j == 0 ? 0 : job[0].exec[46];

			apart[j] = (struct power_segment){.n_sms = 46,
							  .dynamic_mw = job[j].power_mw[46],
							  .start = start,
							  .end = start + job[j].exec[46]};
			together[j] = (struct power_segment){.n_sms = m[j],
							     .dynamic_mw = job[j].power_mw[m[j]],
							     .end = job[j].exec[m[j]]};
			window += job[j].exec[1];
		}
		assert_true(power_energy_pj(gpu, 0, apart, 2, 0, window, edges) <=
			    power_energy_pj(gpu, 0, together, 2, 0, window, edges) +
				    2 * power_now_mw(gpu, 46, 400000));
	}
}

static void profile_fills_gaps_against_the_task(void **state) {
	struct profile_table t;

	assert_int_equal(profile_table_init(&t, 8, 5, 7), 0);
	assert_int_equal(profile_table_set(&t, 2, 90, 100, 2000), 0);
	assert_int_equal(profile_table_set(&t, 4, 50, 120, 4000), 0); /* slower with more SMs */
	assert_int_equal(profile_table_set(&t, 6, 30, 40, 5000), 0);
	assert_int_equal(profile_table_finish(&t), 0);

	assert_int_equal(t.exec[1], 200);
	assert_int_equal(t.power_mw[1], 1000);
	assert_int_equal(t.exec[3], 120);
	assert_int_equal(t.exec_best[3], 90);
	assert_int_equal(t.power_mw[3], 3000);
	assert_int_equal(t.exec[5], 120);
	assert_int_equal(t.exec[8], 40);
	assert_int_equal(t.power_mw[8], 5000);
	assert_int_equal(profile_total(&t, 6), 52);
	assert_int_equal(t.least, 2);
}

static void profile_refuses_what_cannot_be(void **state) {
	struct profile_table t;

	assert_int_equal(profile_table_init(&t, 0, 0, 0), -EINVAL);
	assert_int_equal(profile_table_init(&t, 257, 0, 0), -EINVAL);
	assert_int_equal(profile_table_init(&t, 4, PROFILE_TIME_MAX + 1, 0), -EINVAL);
	assert_int_equal(profile_table_init(&t, 4, 0, 0), 0);
	assert_int_equal(profile_table_finish(&t), -ENODATA);
	assert_int_equal(profile_table_set(&t, 0, 1, 1, 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 5, 1, 1, 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 1, 0, 1, 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 1, 2, 1, 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 1, 1, PROFILE_TIME_MAX + 1, 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 1, 1, 1, PROFILE_POWER_MAX_MW + 1), -ERANGE);
	assert_int_equal(profile_table_set(&t, 1, 1, 1, 1), 0);
	assert_int_equal(profile_table_set(&t, 1, 1, 1, 1), -EEXIST);
}

/* A linear-speedup job is cheapest on all SMs (idle SMs only cost); one that stops scaling at 8 SMs
 * is cheapest there when its power keeps growing. */
static void profile_finds_m_opt(void **state) {
	struct profile_table t;

	assert_int_equal(profile_table_linear(&t, 46, 0, 0, 46000000, 1000), 0);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 46, 1), 46);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 24, 1), 24);
	for (unsigned m = 9; m <= 46; m++) {
		t.exec[m] = t.exec[8];
	}
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 46, 1), 8);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 46, 2), 8);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 46, 5), 10);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 0, 3, 5), 3);
}

/* Copies draw for each SM that is held: of (1000 ms / m + 40 ms) * (m * 1000 + (46 - m) * 445) mW,
 * 30 SMs make the least. */
static void profile_finds_m_opt_with_copies(void **state) {
	struct profile_table t;

	assert_int_equal(profile_table_linear(&t, 46, 0, 0, 1000 * NSEC_PER_MSEC, 1000), 0);
	assert_int_equal(profile_m_opt(&t, &gpus[0], 40 * NSEC_PER_MSEC, 46, 1), 30);
	assert_int_equal(profile_energy_alone_pj(&t, &gpus[0], 40 * NSEC_PER_MSEC, 46),
			 profile_energy_alone_pj(&t, &gpus[0], 0, 46) +
				 40ull * NSEC_PER_MSEC * 46 * 1000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_gives_example_8),
		cmocka_unit_test(power_gives_example_9),
		cmocka_unit_test(power_is_static_when_nothing_runs),
		cmocka_unit_test(power_counts_only_what_lies_in_the_window),
		cmocka_unit_test(power_adds_overlapping_jobs),
		cmocka_unit_test(power_keeps_theorem_1),
		cmocka_unit_test(profile_fills_gaps_against_the_task),
		cmocka_unit_test(profile_refuses_what_cannot_be),
		cmocka_unit_test(profile_finds_m_opt),
		cmocka_unit_test(profile_finds_m_opt_with_copies),
	};

	return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
