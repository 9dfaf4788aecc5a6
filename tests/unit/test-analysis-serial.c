/*
 * test-analysis-serial.c: bounds for a GPU that runs one job at a time, against schedules with any
 * offsets, times and orders, made here by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/analysis/serial.h"

#define TASKS_MAX 5
#define MOST	  4000

enum order {
	ORDER_ARRIVAL,
	ORDER_DEADLINE,
	ORDER_RANDOM,
	ORDER_PERIOD,
	_ORDER_N,
};

struct job {
	size_t task;
	nsec_t release;
};

static uint64_t draw(uint64_t *state, uint64_t low, uint64_t high) {
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return low + (*state >> 33) % (high - low + 1);
}

static size_t make_tasks(struct serial_task *ret, uint64_t *random) {
	size_t n = draw(random, 2, TASKS_MAX);
	uint64_t left = 960; /* of the GPU, in thousandths */

	for (size_t i = 0; i < n; i++) {
		nsec_t period = draw(random, 10, 120);
		uint64_t share =
			draw(random, 1, 2 * left / (n - i) < left ? 2 * left / (n - i) : left);

		left -= share < left ? share : left - 1;
		ret[i].time = share * period / 1000 + 1;
		ret[i].period = i > 0 && draw(random, 0, 9) == 0 ? 0 : period;
	}
	return n;
}

/* What decides between jobs that wait: less goes first. Jobs of one task keep their order. */
static uint64_t rank(const struct serial_task *tasks, const struct job *job, enum order order,
		     uint64_t salt) {
	const struct serial_task *task = &tasks[job->task];

	switch (order) {
	case ORDER_ARRIVAL:
		return job->release;
	case ORDER_DEADLINE:
		return job->release + (task->period ? task->period : MOST);
	case ORDER_PERIOD:
		return task->period ? task->period : UINT64_MAX;
	default:
		return salt * (job->task + 1) % 7;
	}
}

/* One schedule up to MOST; the longest response of each task. @shortest: of the times, in percent.
 */
static void simulate(const struct serial_task *tasks, size_t n, enum order order, unsigned shortest,
		     uint64_t *random, nsec_t *ret) {
	nsec_t next[TASKS_MAX], now = 0;
	uint64_t salt = draw(random, 1, 1000);

	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 0; i < n; i++) {
		next[i] = draw(random, 0, tasks[i].period ? tasks[i].period : MOST / 2);
	}
	while (now < MOST) {
		struct job best = {.task = SIZE_MAX};
		nsec_t soonest = UINT64_MAX;

		for (size_t i = 0; i < n; i++) {
			struct job job = {i, next[i]};

			soonest = next[i] < soonest ? next[i] : soonest;
			if (next[i] <= now &&
			    (best.task == SIZE_MAX ||
			     rank(tasks, &job, order, salt) < rank(tasks, &best, order, salt))) {
				best = job;
			}
		}
		if (best.task == SIZE_MAX) {
			now = soonest;
			continue;
		}
		now += tasks[best.task].time * draw(random, shortest, 100) / 100;
		if (now - best.release > ret[best.task]) {
			ret[best.task] = now - best.release;
		}
		/* at least a period apart */
		next[best.task] = tasks[best.task].period
					  ? best.release + tasks[best.task].period +
						    draw(random, 0, 1) * draw(random, 0, 3)
					  : UINT64_MAX;
	}
}

static void no_schedule_exceeds_a_bound(void **state) {
	unsigned n_bounded = 0, n_reached = 0;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct serial_task tasks[TASKS_MAX];
		nsec_t longest[TASKS_MAX], worst[2][TASKS_MAX] = {{0}};
		uint64_t random = seed;
		size_t n = make_tasks(tasks, &random);

		for (unsigned round = 0; round < 60; round++) {
			enum order order = (enum order)(round % _ORDER_N);
			bool by_period = order == ORDER_PERIOD;

			simulate(tasks, n, order, round % 3 ? 40 : 100, &random, longest);
			for (size_t i = 0; i < n; i++) {
				nsec_t *w = &worst[by_period][i];

				*w = longest[i] > *w ? longest[i] : *w;
			}
		}
		for (size_t i = 0; i < 2 * n; i++) {
			bool by_period = i >= n;
			nsec_t bound = serial_bound(tasks, n, i % n, by_period, MOST);

			if (bound == UINT64_MAX) {
				continue;
			}
			if (worst[by_period][i % n] > bound) {
				print_error("seed %llu, task %zu\n", (unsigned long long)seed,
					    i % n);
			}
			assert_true(worst[by_period][i % n] <= bound);
			n_bounded++;
			n_reached += worst[by_period][i % n] * 10 >= bound * 8;
		}
	}
	assert_true(n_bounded > 1000 && n_reached > n_bounded / 4);
}

static void bounds_are_those_that_one_finds_by_hand(void **state) {
	static const struct serial_task two[] = {{8, 20}, {8, 30}};
	static const struct serial_task full[] = {{8, 8}};
	static const struct serial_task over[] = {{8, 20}, {20, 30}};
	/* Davis et al.: the second job of the lowest priority in a busy period is the latest one.
	 */
	static const struct serial_task pushed[] = {{10, 25}, {10, 35}, {10, 35}};
	static const struct serial_task once[] = {{5, 20}, {7, 0}, {9, 0}};

	assert_int_equal(serial_bound(two, 2, 0, false, 100), 16);
	assert_int_equal(serial_bound(two, 2, 1, false, 100), 16);
	assert_int_equal(serial_bound(two, 2, 0, false, 15), UINT64_MAX);
	assert_int_equal(serial_bound(full, 1, 0, false, 8), 8);
	assert_int_equal(serial_bound(over, 2, 0, false, 1000000), UINT64_MAX);
	assert_int_equal(serial_bound(over, 2, 0, true, 100), 28); /* 20 behind the other one */
	assert_int_equal(serial_bound(pushed, 3, 0, true, 100), 20);
	assert_int_equal(serial_bound(pushed, 3, 2, true, 100), 35);
	assert_int_equal(serial_bound(once, 3, 0, false, 100), 21);
	assert_int_equal(serial_bound(once, 3, 1, false, 100), 21);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_schedule_exceeds_a_bound),
		cmocka_unit_test(bounds_are_those_that_one_finds_by_hand),
	};

	return cmocka_run_group_tests_name("analysis-serial", tests, NULL, NULL);
}
