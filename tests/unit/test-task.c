/* test-task.c: the queue of coming releases against a plain search. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/core/task.h"

static const struct sched_params params;

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t n) {
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static sched_task_id add(struct task_table *t, nsec_t period, nsec_t deadline, nsec_t first) {
	struct sched_task task = {
		.period = period, .deadline = deadline, .first_release = first, .fixed_gpu = -1};
	sched_task_id id;

	assert_int_equal(task_table_add(t, &task, &params, NULL, 0, &id), 0);
	return id;
}

static void task_lists_releases_of_all_tasks_in_order(void **state) {
	struct task_table t = {0};
	struct task_coming c[8];

	add(&t, 10, 5, 3);
	add(&t, 4, 4, 0);
	add(&t, 0, 0, 0); /* aperiodic: never expected */
	assert_int_equal(task_table_coming(&t, 0, 14, c, 8), 6);
	assert_int_equal(c[0].release, 0);
	assert_int_equal(c[1].release, 3);
	assert_int_equal(c[1].task, 0);
	assert_int_equal(c[1].deadline, 8);
	assert_int_equal(c[2].release, 4);
	assert_int_equal(c[3].release, 8);
	assert_int_equal(c[4].release, 12);
	assert_int_equal(c[5].release, 13);
	assert_int_equal(task_table_coming(&t, 0, 14, c, 2), 2);
	assert_int_equal(task_table_coming(&t, 0, 0, c, 8), 0);
	task_table_deinit(&t);
}

static void task_expects_an_overdue_release_now(void **state) {
	struct task_table t = {0};
	struct task_coming c[3];

	add(&t, 10, 0, 3);
	assert_int_equal(task_table_coming(&t, 7, 30, c, 3), 3);
	assert_int_equal(c[0].release, 7);
	assert_int_equal(c[0].deadline, 0);
	assert_int_equal(c[1].release, 17);
	task_table_deinit(&t);
}

/* Against the definition: the k-th smallest of all first_release + i * period. */
static void task_queue_equals_a_plain_search(void **state) {
	for (int round = 0; round < 200; round++) {
		struct task_table t = {0};
		struct task_coming c[TASK_COMING_MAX];
		size_t n = 1 + random_below(60), n_found;
		nsec_t until = 1 + random_below(500);
		nsec_t last = 0;
		size_t expected = 0;

		for (size_t i = 0; i < n; i++) {
			add(&t, 1 + random_below(100), 0, random_below(300));
		}
		for (int i = 0; i < 40; i++) {
			sched_task_id id = (sched_task_id)random_below(n);

			if (!task_table_get(&t, id)) {
				continue;
			}
			if (random_below(4) == 0) {
				task_table_remove(&t, id);
			} else {
				task_table_released(&t, id, random_below(300));
			}
		}
		for (sched_task_id id = 0; id < t.n; id++) {
			const struct sched_task *task = task_table_get(&t, id);

			for (nsec_t r = task ? task->next_release : until; r < until;
			     r += task->period) {
				expected++;
			}
		}
		n_found = task_table_coming(&t, 0, until, c, TASK_COMING_MAX);
		assert_int_equal(n_found, expected < TASK_COMING_MAX ? expected : TASK_COMING_MAX);
		for (size_t i = 0; i < n_found; i++) {
			size_t before = 0;

			assert_true(c[i].release >= last && c[i].release < until);
			last = c[i].release;
			for (sched_task_id id = 0; id < t.n; id++) {
				const struct sched_task *task = task_table_get(&t, id);

				for (nsec_t r = task ? task->next_release : last; r < last;
				     r += task->period) {
					before++;
				}
			}
			assert_true(before <= i);
		}
		task_table_deinit(&t);
	}
}

static void task_derives_the_cheapest_gpu(void **state) {
	struct sched_gpu gpus[2] = {
		{.n_sms = 46, .model = {.power = {46, 46000, 445}, .limit = 24, .step = 2}},
		{.n_sms = 6, .model = {.power = {6, 8000, 652}, .limit = 6, .step = 1}},
	};
	struct profile_table big, small;
	struct sched_task task = {.period = 100, .fixed_gpu = -1, .profiles = {&big, &small}};
	struct task_table t = {0};
	const struct sched_task *added;
	sched_task_id id;

	assert_int_equal(profile_table_linear(&big, 46, 0, 0, 46000, 1000), 0);
	assert_int_equal(profile_table_linear(&small, 6, 0, 0, 600000, 1000), 0);
	assert_int_equal(task_table_add(&t, &task, &params, gpus, 2, &id), 0);
	added = task_table_get(&t, id);
	assert_int_equal(added->m_opt[0], 24);
	assert_int_equal(added->m_opt[1], 6);
	assert_int_equal(added->n_gpus, 2);
	assert_int_equal(added->order[0], 0);
	assert_int_equal(added->order[1], 1);
	assert_true(added->energy_pj[0] < added->energy_pj[1]);

	task.deadline = 101;
	assert_int_equal(task_table_add(&t, &task, &params, gpus, 2, &id), -EINVAL);
	task.deadline = 100;
	task.fixed_gpu = 2;
	assert_int_equal(task_table_add(&t, &task, &params, gpus, 2, &id), -EINVAL);
	task.fixed_gpu = 1;
	task.fixed_sms = smset_range(0, 7);
	assert_int_equal(task_table_add(&t, &task, &params, gpus, 2, &id), -EINVAL);
	task.fixed_sms = smset_range(0, 6);
	task.profiles[0] = &small; /* shorter than the limit */
	assert_int_equal(task_table_add(&t, &task, &params, gpus, 2, &id), -EINVAL);
	task_table_deinit(&t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_lists_releases_of_all_tasks_in_order),
		cmocka_unit_test(task_expects_an_overdue_release_now),
		cmocka_unit_test(task_queue_equals_a_plain_search),
		cmocka_unit_test(task_derives_the_cheapest_gpu),
	};

	return cmocka_run_group_tests_name("task", tests, NULL, NULL);
}
