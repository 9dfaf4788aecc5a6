/*
 * test-analysis.c: response-time analysis: each bound against what the text's formulas give by hand.
 * Times are in ms unless a comment says otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/analysis/method.h"
#include "daemon/core/analysis/overlap.h"

#define MS(t) ((nsec_t)((t) * 1000 * 1000 + 0.5))
#define NONE  RTA_FOREVER

#define CPU(c)	   {.cpu = MS(c), .best = MS(c)}
#define GPU(m, e)  {.gpu = true, .misc = MS(m), .exec = MS(e), .total = MS((m) + (e)), .best_exec = MS(e)}
#define SEGMENTS(...) \
	.segments = (struct rta_segment[]){__VA_ARGS__}, \
	.n_segments = sizeof((struct rta_segment[]){__VA_ARGS__}) / sizeof(struct rta_segment)
#define TASK(cpu_, priority_, period_, ...) \
	{.cpu = cpu_, .priority = priority_, .period = MS(period_), .deadline = MS(period_), \
	 SEGMENTS(__VA_ARGS__)}
#define SET(tasks_, epsilon_) \
	{.tasks = tasks_, .n_tasks = sizeof(tasks_) / sizeof(tasks_[0]), .epsilon = MS(epsilon_)}

static const struct rta_readings as_default;

static void run(const char *method, struct rta_set *set, const struct rta_readings *readings,
		struct rta_bound *ret) {
	const struct rta_method *m = rta_method_find(method);

	assert_non_null(m);
	rta_sum(set);
	rta_method_run(m, set, readings, ret);
}

/* All bounds by @method; their terms must add up to them. */
static void check_read(const char *method, struct rta_set *set, const struct rta_readings *readings,
		       const nsec_t *expected) {
	struct rta_bound bounds[RTA_TASKS_MAX];

	run(method, set, readings, bounds);
	for (size_t i = 0; i < set->n_real_time; i++) {
		nsec_t sum = 0;

		if (bounds[i].response != expected[i]) {
			fail_msg("%s, task %zu: %.4f ms, expected %.4f", method, i,
				 (double)bounds[i].response / 1e6, (double)expected[i] / 1e6);
		}
		for (size_t k = 0; k < _RTA_TERM_N; k++) {
			sum += bounds[i].terms[k];
		}
		assert_int_equal(sum, expected[i] == NONE ? 0 : expected[i]);
	}
}

#define CHECK(method, set, ...) check_read(method, set, &as_default, (nsec_t[]){__VA_ARGS__})
#define CHECK_READ(method, set, readings, ...) \
	check_read(method, set, readings, (nsec_t[]){__VA_ARGS__})

/*
 * Figure 4.3: tau_1 responds after 8.75 with locks, 5.5 + epsilon under the kernel thread, 5.5 + 2
 * epsilon by ioctl. The segments are in the drawing alone; the text gives C_1 + G_1 = 5.5 and that
 * tau_1 waits for the segments of both others with locks, so these have 8.75 - 5.5 = 3.25 together.
 * FMLP+ lets tau_1 wait for each once: 8.75. Lemma 16 has 2 epsilon for tau_1's segment and nothing
 * of higher priority: 5.5 + 2 epsilon. Lemma 13 has 2 epsilon as well: its proof adds one for an update
 * under way, which the drawn schedule doesn't have.
 */
static void bounds_hold_for_figure_4_3(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 100, CPU(1.5), GPU(1, 3)),
		TASK(1, 2, 100, CPU(1), GPU(0.25, 1)),
		TASK(1, 1, 100, CPU(1), GPU(0.5, 1.5)),
	};
	struct rta_set set = SET(tasks, 0.1);
	struct rta_bound bounds[3];

	run("fmlp-suspend", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, MS(8.75));
	run("fmlp-busy", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, MS(8.75));
	run("ioctl-busy", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, MS(5.5 + 2 * 0.1));
	run("ioctl-suspend", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, MS(5.5 + 2 * 0.1));
	run("kthread-busy", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, MS(5.5 + 2 * 0.1));
}

/* G^m is not in the table: a fifth of G here. */
#define TABLE_4_4 \
	{ \
		TASK(1, 99, 100, CPU(5), GPU(2.8, 11.2)), \
		TASK(1, 98, 200, CPU(116)), \
		TASK(0, 97, 250, CPU(17), GPU(7.4, 29.6)), \
		TASK(1, 96, 400, CPU(14), GPU(18, 72)), \
		TASK(0, 95, 500, CPU(66)), \
	}

/*
 * Table 4.4, epsilon 1, the kernel thread on CPU 0.
 * Task 1: 5 + 14 + 2 = 21, whatever the approach.
 * Task 2, busy: 116 + ceil(R / 100) * 19 = 116 + 38 = 154.
 *   suspend: J^c = 21 - 7.8 = 13.2; 116 + ceil((R + 13.2) / 100) * 7.8 = 131.6.
 * Task 3, ioctl: J^g = 21 - 11.2, J = 21 - 19: 54 + 2 + 1 * 2 + 1 * 11.2 = 69.2.
 *   kthread: 54 + 2 + 1 * 2 (task 1) + 1 * 2 (task 2) + 1 * 19 = 79.
 * Task 4: busy, CPU 1 is overloaded: 19/100 + 116/200 + 104/400 = 1.03. Suspending: 7.8/100 + 116/200 +
 *   104/400 + 11.2/100 + 29.6/250 = 1.1484 on CPU and GPU together, which the lemma adds.
 * Task 5, ioctl-busy: 66 + 54 = 120. kthread: K_5 needs R_4, which has no bound; by the formula of
 *   x_i it is 0, as task 5 does not use the GPU: 120. suspend: J^c = 69.2 - 24.4; 66 + 24.4 = 90.4.
 */
static void bounds_of_table_4_4(void **state) {
	struct rta_task tasks[] = TABLE_4_4;
	struct rta_set set = SET(tasks, 1);
	const struct rta_readings by_formula = {.x_by_formula = true};

	CHECK("ioctl-busy", &set, MS(21), MS(154), MS(69.2), NONE, MS(120));
	CHECK("ioctl-suspend", &set, MS(21), MS(131.6), MS(69.2), NONE, MS(90.4));
	CHECK("kthread-busy", &set, MS(21), MS(154), MS(79), NONE, NONE);
	/* Task 1 is on CPU 1, so x is 0 there: 19; task 3: J_1 = 0, else as above. */
	CHECK_READ("kthread-busy", &set, &by_formula, MS(19), MS(154), MS(79), NONE, MS(120));
}

/*
 * x_i of Eq. 4.1: tau_1 uses the GPU on CPU 1, tau_2 does not and is on CPU 0 with the kernel thread,
 * tau_3 does not and is on CPU 1. epsilon 1, C = 2, G = 3 (tau_1), T = 100.
 * By the proof: tau_1 5 + 2 = 7; tau_2: J_1 = 7 - 5, 2 + 2 + 2 = 6; tau_3: 2 + 5 = 7.
 * By the formula, no x_i is 1: 5, 2, 7.
 */
static void kernel_thread_delays_by_proof_or_formula(void **state) {
	struct rta_task tasks[] = {
		TASK(1, 3, 100, CPU(2), GPU(1, 2)),
		TASK(0, 2, 100, CPU(2)),
		TASK(1, 1, 100, CPU(2)),
	};
	struct rta_set set = SET(tasks, 1);
	const struct rta_readings by_formula = {.x_by_formula = true};

	CHECK("kthread-busy", &set, MS(7), MS(6), MS(7));
	CHECK_READ("kthread-busy", &set, &by_formula, MS(5), MS(2), MS(7));
}

/*
 * Eq. 4.3: tau_1 has two segments. tau_1: 1 + 4 + 2 * 2 = 9. tau_2 on another CPU, J^g = 9 - 2, J = 9 - 5:
 * 3 + 2 + G^e 2 + a job's 2 epsilon = 9; with 2 epsilon a segment 11.
 */
static void updates_count_by_job_or_segment(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 100, CPU(1), GPU(1, 1), GPU(1, 1)),
		TASK(1, 1, 100, CPU(1), GPU(1, 1)),
	};
	struct rta_set set = SET(tasks, 1);
	const struct rta_readings by_segment = {.updates_by_segment = true};

	CHECK("ioctl-suspend", &set, MS(9), MS(9));
	CHECK("ioctl-busy", &set, MS(9), MS(9));
	CHECK_READ("ioctl-suspend", &set, &by_segment, MS(9), MS(11));
	CHECK_READ("ioctl-busy", &set, &by_segment, MS(9), MS(11));
}

/*
 * As GCAPS: the same tasks, and tau_3 without GPU segments below tau_1 on its CPU. tau_1: 5 + 1 + 3 * 2 = 12;
 * tau_2: 3 + 1 + 3 + G^e 2 + 4 = 13. tau_3: 1 + 1 + 4 for tau_1's updates, and its C + G^m of 3 when
 * suspending, its C + G of 5 when busy: 9 and 11.
 */
static void updates_may_cost_what_gcaps_says(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 100, CPU(1), GPU(1, 1), GPU(1, 1)),
		TASK(1, 2, 100, CPU(1), GPU(1, 1)),
		TASK(0, 1, 100, CPU(1)),
	};
	struct rta_set set = SET(tasks, 1);
	const struct rta_readings as_gcaps = {.updates_as_gcaps = true};

	CHECK_READ("ioctl-suspend", &set, &as_gcaps, MS(12), MS(13), MS(9));
	CHECK_READ("ioctl-busy", &set, &as_gcaps, MS(12), MS(13), MS(11));
}

/* tau_h: C 2, G^e 1, T 10; tau_i on the same CPU: C 29, G^e 35. All best cases equal the worst ones. */
#define OVERLAPPING \
	{ \
		TASK(0, 2, 10, CPU(2), GPU(0, 1)), TASK(0, 1, 500, CPU(29), GPU(0, 35)), \
	}

/*
 * Eq. 4.7: BX^g = 35 + (ceil(BX^g / 10) - 1) * 1 = 38. Eq. 4.6: (floor(3.8) - 1) * 2 = 4.
 * BX^c = 29 + (ceil(BX^c / 10) - 1) * 2 = 35. Eq. 4.10: (ceil(3.5) - 1) * 1 = 3; rounded down 2;
 * alone, BX^c = 29: 2, rounded down 1.
 */
static void overlaps_follow_the_equations(void **state) {
	struct rta_task tasks[] = OVERLAPPING;
	struct rta_set set = SET(tasks, 0);
	struct rta_readings readings = {0};

	rta_sum(&set);
	assert_int_equal(rta_overlap_cg(&set, NULL, 1, 0), MS(4));
	assert_int_equal(rta_overlap_gc(&set, &readings, 1, 0), MS(3));
	readings.bxc_floor = true;
	assert_int_equal(rta_overlap_gc(&set, &readings, 1, 0), MS(2));
	readings.bxc_alone = true;
	assert_int_equal(rta_overlap_gc(&set, &readings, 1, 0), MS(1));
	readings.bxc_floor = false;
	assert_int_equal(rta_overlap_gc(&set, &readings, 1, 0), MS(2));

	/* BX^g = 27 + (ceil(BX^g / 10) - 1) * 1 = 29: (floor(2.9) - 1) * 2 = 2. */
	tasks[1].segments[1].best_exec = MS(27);
	assert_int_equal(rta_overlap_cg(&set, NULL, 1, 0), MS(2));

	/* Nothing is known of the least times: nothing must overlap. */
	tasks[0].best_c = tasks[0].best_ge = 0;
	assert_int_equal(rta_overlap_cg(&set, NULL, 1, 0), 0);
	assert_int_equal(rta_overlap_gc(&set, &readings, 1, 0), 0);
}

/*
 * Lemma 15: J^c = 1, J^g = 2: 64 + ceil((R + 1) / 10) * 2 + ceil((R + 2) / 10) = 64 + 20 + 10 = 94.
 * Lemma 16: 64 + ceil(R / 10) * 3 = 94. Lemmas 20 and 21, with 4 + 3 less: 57 + 9 * 3 = 84.
 */
static void tighter_lemmas_deduct_the_overlaps(void **state) {
	struct rta_task tasks[] = OVERLAPPING;
	struct rta_set set = SET(tasks, 0);

	CHECK("ioctl-suspend", &set, MS(3), MS(94));
	CHECK("ioctl-busy", &set, MS(3), MS(94));
	CHECK("ioctl-suspend-tight", &set, MS(3), MS(84));
	CHECK("ioctl-busy-tight", &set, MS(3), MS(84));
}

/*
 * Without the GPU: C 2, 3, 13, T 10, 20, 100 on one CPU. Jobs that don't suspend have no jitter on their CPU:
 * 2, 2 + 3 = 5, 13 + 2 * 2 + 3 = 20. Lemma 15 and locks have J^c_2 = 5 - 3 = 2 all the same:
 * 13 + ceil(R / 10) * 2 + ceil((R + 2) / 20) * 3 = 13 + 6 + 6 = 25.
 */
static void tasks_without_gpu_are_bounded_as_ever(void **state) {
	struct rta_task tasks[] = {
		TASK(1, 3, 10, CPU(2)), TASK(1, 2, 20, CPU(3)), TASK(1, 1, 100, CPU(13)),
	};
	struct rta_set set = SET(tasks, 1);

	CHECK("kthread-busy", &set, MS(2), MS(5), MS(20));
	CHECK("ioctl-busy", &set, MS(2), MS(5), MS(20));
	CHECK("safe", &set, MS(2), MS(5), MS(20));
	CHECK("ioctl-suspend", &set, MS(2), MS(5), MS(25));
	CHECK("mpcp-busy", &set, MS(2), MS(5), MS(25));
	CHECK("fmlp-suspend", &set, MS(2), MS(5), MS(25));
}

/*
 * Locks. tau_1: CPU 0, C 2, G 1 + 2, T 20; tau_2: CPU 1, C 4, G 1 + 4, T 50; tau_3: CPU 0, C 3, G 2 + 4,
 * T 100.
 * MPCP, suspending. tau_1: 5 + 6 (tau_3's section) + 2 * 2 (its G^m at the release and after the request)
 *   = 15. tau_2: B = 6 + (ceil(B / 20) + 1) * 3 = 12; 9 + 6 + min(2, ceil((R + 15) / 20)) * 3 = 21.
 *   tau_3: B = (ceil(B / 20) + 1) * 3 + (ceil(B / 50) + 1) * 5 = 16; 9 + ceil((R + 12) / 20) * 3 +
 *   min(2, ceil((R + 15) / 20)) * 3 + min(2, ceil((R + 21) / 50)) * 5 = 9 + 6 + 6 + 5 = 26.
 * With boosted sections tau_3's is 6 + 1 (tau_1's G^m): tau_1: 5 + 7 + 4 = 16; tau_2: B = 7 + 6 = 13,
 *   9 + 7 + 6 = 22; tau_3: J = 16 - 3, 9 + 6 + 6 + 5 = 26.
 * FMLP+, suspending. tau_1: 5 + 5 + 6 + 4 = 20; tau_2: 9 + 3 + 6 = 18; tau_3: J = 20 - 3,
 *   9 + ceil((R + 17) / 20) * 3 + 3 + 5 = 23.
 * Busy, tau_3 keeps CPU 0 from tau_1 for 2 * 6 instead: at least 23, beyond its period.
 */
static void locks_are_bounded_as_published(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 20, CPU(2), GPU(1, 2)),
		TASK(1, 2, 50, CPU(4), GPU(1, 4)),
		TASK(0, 1, 100, CPU(3), GPU(2, 4)),
	};
	struct rta_set set = SET(tasks, 1); /* epsilon is of no concern here */
	const struct rta_readings boosted = {.mpcp_boosted_section = true};
	struct rta_bound bounds[3];

	CHECK("mpcp-suspend", &set, MS(15), MS(21), MS(26));
	CHECK_READ("mpcp-suspend", &set, &boosted, MS(16), MS(22), MS(26));
	CHECK("fmlp-suspend", &set, MS(20), MS(18), MS(23));
	run("mpcp-busy", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, NONE);
	run("fmlp-busy", &set, &as_default, bounds);
	assert_int_equal(bounds[0].response, NONE);
}

/* A best-effort task that never gives the lock back: no bound for who needs it, or its CPU. */
static void endless_section_leaves_no_bound(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 100, CPU(2), GPU(1, 2)),
		TASK(1, 1, 100, CPU(2)),
		TASK(2, 0, 100, CPU(1)),
	};
	struct rta_set set = SET(tasks, 0);

	CHECK("mpcp-suspend", &set, MS(5), MS(2));
	CHECK("fmlp-suspend", &set, MS(5), MS(2));
	tasks[2].segments[0] = (struct rta_segment){.gpu = true, .exec = NONE, .total = NONE};
	CHECK("mpcp-suspend", &set, NONE, MS(2));
	CHECK("fmlp-suspend", &set, NONE, MS(2));
	CHECK("ioctl-suspend", &set, MS(5), MS(2));
	CHECK("safe", &set, MS(5), MS(2));
}

/*
 * 4.5.3, suspending, epsilon 0. tau_1: C 10, G^e 40, D 100; tau_2 on another CPU: C 10, G^e 20, D 50,
 * which is late below tau_1: 30 + 40 = 70. At the lowest level tau_2 would be late too; tau_1 there has
 * J_2 = D_2 - 20 = 30: 50 + ceil((R + 30) / 100) * 20 = 70; tau_2 above it: 30.
 * On one CPU that turns their order around. With that allowed, tau_2 also has J^c_1 = D_1 - 10 = 90:
 * 30 + ceil((R + 90) / 100) * 10 = 50.
 */
static void gpu_priorities_make_up_for_late_tasks(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 100, CPU(10), GPU(0, 40)),
		TASK(1, 1, 100, CPU(10), GPU(0, 20)),
	};
	struct rta_set set = SET(tasks, 0);
	const struct rta_method *m = rta_method_find("ioctl-suspend");
	struct rta_bound bounds[2];
	unsigned levels[2] = {7, 7};

	tasks[1].deadline = MS(50);
	run("ioctl-suspend", &set, &as_default, bounds);
	assert_int_equal(bounds[1].response, MS(70));
	assert_false(rta_in_time(&set, bounds));
	assert_true(rta_method_assign(m, &set, &as_default, false, bounds, levels));
	assert_int_equal(bounds[0].response, MS(70));
	assert_int_equal(bounds[1].response, MS(30));
	assert_int_equal(levels[0], 2);
	assert_int_equal(levels[1], 1);

	tasks[1].cpu = 0;
	levels[0] = 7;
	assert_false(rta_method_assign(m, &set, &as_default, false, bounds, levels));
	assert_int_equal(levels[0], 7);
	assert_true(rta_method_assign(m, &set, &as_default, true, bounds, levels));
	assert_int_equal(bounds[1].response, MS(50));
	assert_int_equal(levels[0], 2);
}

/*
 * A schedule that the printed bound forgets: tau_3 has no GPU segments and is below tau_2, which is busy.
 * At 1 tau_1 and tau_2 have done their C and begin; tau_1 has the GPU from 1 to 11, tau_2 from 11 to 16,
 * keeping CPU 1 all the time; tau_3 runs from 16 to 18. Lemma 16: 2 + 6 = 8.
 * The corrected bound: tau_1 11; tau_2 6 + 10 = 16; tau_3 2 + 6 + 10 = 18.
 */
static void busy_task_passes_its_wait_on(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 100, CPU(1), GPU(0, 10)),
		TASK(1, 2, 100, CPU(1), GPU(0, 5)),
		TASK(1, 1, 100, CPU(2)),
	};
	struct rta_set set = SET(tasks, 0);

	CHECK("ioctl-busy", &set, MS(11), MS(16), MS(8));
	CHECK("safe-busy", &set, MS(11), MS(16), MS(18));
	/* Suspended, tau_2 leaves the CPU to tau_3: 2 + 1. */
	CHECK("safe-suspend", &set, MS(11), MS(16), MS(3));
	tasks[1].busy = true;
	CHECK("safe", &set, MS(11), MS(16), MS(18));
}

/*
 * Another one: tau_1 has the GPU from 0 to 5, of which 4 are G^m; tau_2 from 5 to 7. Lemma 15 counts
 * G^e_1 alone: 2 + 1 = 3.
 */
static void segment_holds_the_gpu_while_it_needs_the_cpu(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 100, GPU(4, 1)),
		TASK(1, 1, 100, GPU(0, 2)),
	};
	struct rta_set set = SET(tasks, 0);

	CHECK("ioctl-suspend", &set, MS(5), MS(3));
	CHECK("safe-suspend", &set, MS(5), MS(7));
}

/*
 * And another: tau_2 begins at 0; before its G^m of 1 is done tau_1 takes CPU 0 for 3, so its segment ends
 * at 5, and tau_3's, begun after it, at 6. Lemma 15: 1 + G^e_2 = 2.
 */
static void segment_holds_the_gpu_while_it_waits_for_the_cpu(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 100, CPU(3)),
		TASK(0, 2, 100, GPU(1, 1)),
		TASK(1, 1, 100, GPU(0, 1)),
	};
	struct rta_set set = SET(tasks, 0);

	CHECK("ioctl-suspend", &set, MS(3), MS(5), MS(2));
	CHECK("safe-suspend", &set, MS(3), MS(5), MS(6));
}

/*
 * Both calls of tau_1 may first wait for one of tau_2, on another CPU: 2 + 3 + 4 epsilon, where Lemma 14
 * has 2. On one CPU a call of tau_2 may also keep it from its CPU, at its release and, suspended, after G^e.
 */
static void each_call_may_wait_for_another(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 100, CPU(2), GPU(1, 2)),
		TASK(1, 0, 100, GPU(0, 1)),
	};
	struct rta_set set = SET(tasks, 0.1);

	CHECK("ioctl-busy", &set, MS(5.2));
	CHECK("safe-busy", &set, MS(5.4));
	CHECK("safe-suspend", &set, MS(5.4));
	tasks[1].cpu = 0;
	CHECK("safe-busy", &set, MS(5.5));
	CHECK("safe-suspend", &set, MS(5.6));
	/* Nobody else uses the GPU. */
	tasks[1].segments[0] = (struct rta_segment)CPU(1);
	CHECK("safe-suspend", &set, MS(5.2));
}

/*
 * tau_2 asks for the lock that tau_3, on another CPU, has; whenever tau_1 takes its CPU meanwhile, another
 * call of tau_3 may have come by when it gets the CPU back: 5 + 4 epsilon as above, and 1 + epsilon. tau_1
 * itself may have to wait for a call of tau_2 to end.
 */
static void lock_may_be_gone_after_a_preemption(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 3, 100, CPU(1)),
		TASK(0, 2, 100, CPU(2), GPU(1, 2)),
		TASK(1, 0, 100, GPU(0, 1)),
	};
	struct rta_set set = SET(tasks, 0.1);

	CHECK("safe-busy", &set, MS(1.1), MS(6.5));
}

/*
 * tau_3 does not use the GPU; tau_2 above it on CPU 0 does, suspending, and may wait on its CPU for calls
 * of tau_1 on CPU 1, which has two segments. tau_1: 2 + 6 epsilon = 2.6 (four calls of its own, and both of
 * tau_2). tau_2: 3 + 2 epsilon, and G_1 with its updates, 1.4: 4.6. tau_3: 2, C + G^m of tau_2 with its
 * updates, 2.2, and four calls of tau_1: 4.6.
 */
static void call_of_a_task_above_delays_others_of_the_cpu(void **state) {
	struct rta_task tasks[] = {
		TASK(1, 3, 100, CPU(1), GPU(0, 0.5), GPU(0, 0.5)),
		TASK(0, 2, 100, CPU(1), GPU(1, 1)),
		TASK(0, 1, 100, CPU(2)),
	};
	struct rta_set set = SET(tasks, 0.1);

	CHECK("safe", &set, MS(2.6), MS(4.6), MS(4.6));
}

struct assumed {
	nsec_t below[4];
	unsigned n;
};

/* tau_2 takes 7, and tau_1 2 less than tau_2 is taken to take. */
static void assuming(const void *userdata, const struct rta_bound *below, struct rta_bound *ret) {
	struct assumed *a = *(struct assumed *const *)userdata;

	assert_true(a->n < 4);
	a->below[a->n++] = below[1].response;
	ret[0].response = below[1].response == NONE ? NONE : below[1].response - 2;
	ret[1].response = 7;
}

/* tau_2 does not meet its deadline of 6, so this does not stand for it, and tau_1 has no bound at first. */
static void deadlines_are_assumed_as_long_as_they_are_met(void **state) {
	struct rta_task tasks[] = {TASK(0, 2, 100, CPU(1)), TASK(0, 1, 100, CPU(1))};
	struct rta_set set = SET(tasks, 0);
	struct assumed a = {0}, *pointer = &a;
	struct rta_bound bounds[2];

	rta_sum(&set);
	tasks[1].deadline = 6;
	rta_assume_deadlines(assuming, &pointer, &set, bounds);
	assert_int_equal(a.n, 4);
	assert_int_equal(a.below[0], 6);
	assert_int_equal(a.below[1], NONE);
	assert_int_equal(a.below[2], NONE); /* tau_1 is no longer taken to meet its deadline either */
	assert_int_equal(a.below[3], 7);
	assert_int_equal(bounds[0].response, 5);
}

/* tau_1: 5, D 20; tau_2 on another CPU waits for it: 3 + 3, D 10. G_1 may get 4 longer, not 15; G_2 4. */
static void slack_ends_where_a_deadline_is_missed(void **state) {
	struct rta_task tasks[] = {
		TASK(0, 2, 20, CPU(2), GPU(0, 3)),
		TASK(1, 1, 50, CPU(1), GPU(0, 2)),
		TASK(2, 0, 50, CPU(1)),
	};
	struct rta_set set = SET(tasks, 0);
	const struct rta_method *m = rta_method_find("safe");
	nsec_t slack;

	tasks[1].deadline = MS(10);
	CHECK("safe", &set, MS(5), MS(6));
	slack = rta_method_slack(m, &set, &as_default, 0);
	assert_in_range(slack, MS(4) - NSEC_PER_USEC, MS(4));
	slack = rta_method_slack(m, &set, &as_default, 1);
	assert_in_range(slack, MS(4) - NSEC_PER_USEC, MS(4));
	CHECK("safe", &set, MS(5), MS(6)); /* put back */

	/* A task that is late already has none, and does not count for the others: D_1 20. */
	tasks[1].deadline = MS(5);
	assert_int_equal(rta_method_slack(m, &set, &as_default, 1), 0);
	slack = rta_method_slack(m, &set, &as_default, 0);
	assert_in_range(slack, MS(15) - NSEC_PER_USEC, MS(15));
}

/* Products beyond 64 bits are no bound, not a small one. */
static void huge_times_leave_no_bound(void **state) {
	const nsec_t day = 86400 * NSEC_PER_SEC;
	struct rta_segment tiny = {.cpu = 1}, huge = {.cpu = day};
	struct rta_task tasks[] = {
		{.cpu = 0, .priority = 2, .period = 1, .deadline = 1, .segments = &tiny, .n_segments = 1},
		{.cpu = 0, .priority = 1, .period = day, .deadline = day, .segments = &huge, .n_segments = 1},
	};
	struct rta_set set = SET(tasks, 0);

	for (size_t k = 0; k < rta_n_methods; k++) {
		CHECK(rta_methods[k].name, &set, 1, NONE);
	}
	assert_int_equal(rta_add(NONE, 1), NONE);
	assert_int_equal(rta_mul(day, day), NONE);
	assert_int_equal(rta_jobs(NONE, 0, 7), NONE);
	assert_int_equal(rta_jobs(14, 0, 7), 2);
	assert_int_equal(rta_jobs(14, 1, 7), 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold_for_figure_4_3),
		cmocka_unit_test(bounds_of_table_4_4),
		cmocka_unit_test(kernel_thread_delays_by_proof_or_formula),
		cmocka_unit_test(updates_count_by_job_or_segment),
		cmocka_unit_test(updates_may_cost_what_gcaps_says),
		cmocka_unit_test(overlaps_follow_the_equations),
		cmocka_unit_test(tighter_lemmas_deduct_the_overlaps),
		cmocka_unit_test(tasks_without_gpu_are_bounded_as_ever),
		cmocka_unit_test(locks_are_bounded_as_published),
		cmocka_unit_test(endless_section_leaves_no_bound),
		cmocka_unit_test(gpu_priorities_make_up_for_late_tasks),
		cmocka_unit_test(busy_task_passes_its_wait_on),
		cmocka_unit_test(segment_holds_the_gpu_while_it_needs_the_cpu),
		cmocka_unit_test(segment_holds_the_gpu_while_it_waits_for_the_cpu),
		cmocka_unit_test(each_call_may_wait_for_another),
		cmocka_unit_test(lock_may_be_gone_after_a_preemption),
		cmocka_unit_test(call_of_a_task_above_delays_others_of_the_cpu),
		cmocka_unit_test(deadlines_are_assumed_as_long_as_they_are_met),
		cmocka_unit_test(slack_ends_where_a_deadline_is_missed),
		cmocka_unit_test(huge_times_leave_no_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
