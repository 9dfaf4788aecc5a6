/*
 * test-client-history.c: what `top` remembers, and the small pictures that it draws of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/live/blocks.h"
#include "client/live/history.h"

#define START (100 * NSEC_PER_SEC)

/* One GPU and one task, as sbeetd told them at one moment. */
struct scene {
	Sbeet__Control__Service service;
	Sbeet__Control__Gpu gpu, *gpus[1];
	struct snapshot_task task;
	struct snapshot s;
};

static struct snapshot *look(struct scene *scene, uint64_t at, uint64_t misses) {
	*scene = (struct scene){.task = {.name = "camera", .misses = misses}};
	scene->service = (Sbeet__Control__Service)SBEET__CONTROL__SERVICE__INIT;
	scene->gpu = (Sbeet__Control__Gpu)SBEET__CONTROL__GPU__INIT;
	scene->service.now_ns = START + at;
	scene->gpus[0] = &scene->gpu;
	scene->s.service = &scene->service;
	scene->s.gpus = scene->gpus;
	scene->s.tasks = &scene->task;
	scene->s.n_gpus = scene->s.n_tasks = 1;
	return &scene->s;
}

static uint64_t fresh_after(struct history *h, uint64_t at, uint64_t misses) {
	struct scene scene;

	assert_int_equal(history_add(h, look(&scene, at, misses)), 0);
	return history_fresh(history_task(h, "camera"));
}

static void misses_are_fresh_for_five_seconds(void **state) {
	struct history h = {0};

	assert_int_equal(fresh_after(&h, 0, 7), 0); /* from before */
	assert_int_equal(fresh_after(&h, NSEC_PER_SEC, 9), 2);
	assert_int_equal(fresh_after(&h, 3 * NSEC_PER_SEC, 10), 3);
	assert_int_equal(fresh_after(&h, 5 * NSEC_PER_SEC, 10), 3);
	assert_int_equal(fresh_after(&h, 6 * NSEC_PER_SEC, 10), 1);
	assert_int_equal(fresh_after(&h, 8 * NSEC_PER_SEC, 10), 0);
	assert_int_equal(fresh_after(&h, 9 * NSEC_PER_SEC, 14), 4);
	/* Its sessions have ended, others have come. */
	assert_int_equal(fresh_after(&h, 10 * NSEC_PER_SEC, 1), 0);
	assert_int_equal(fresh_after(&h, 11 * NSEC_PER_SEC, 2), 1);
	history_deinit(&h);
}

static void rare_looks_tell_what_came_since_the_last(void **state) {
	struct history h = {0};

	assert_int_equal(fresh_after(&h, 0, 1), 0);
	assert_int_equal(fresh_after(&h, 60 * NSEC_PER_SEC, 4), 3);
	assert_int_equal(fresh_after(&h, 120 * NSEC_PER_SEC, 4), 0);
	history_deinit(&h);
}

static void frequent_looks_are_bounded(void **state) {
	struct history h = {0};

	for (unsigned i = 0; i < 10 * HISTORY_LOOKS; i++) {
		assert_int_equal(fresh_after(&h, i * NSEC_PER_MSEC, i),
				 i < HISTORY_LOOKS ? i : HISTORY_LOOKS - 1);
	}
	history_deinit(&h);
}

static void all_misses_of_a_new_task_are_fresh(void **state) {
	struct history h = {0};
	struct scene scene;

	look(&scene, 0, 0);
	scene.s.n_tasks = 0;
	assert_int_equal(history_add(&h, &scene.s), 0);
	assert_null(history_task(&h, "camera"));
	assert_int_equal(history_fresh(NULL), 0);
	assert_int_equal(fresh_after(&h, NSEC_PER_SEC, 3), 3);
	history_deinit(&h);
}

static void each_reading_of_power_is_kept_once(void **state) {
	struct history h = {0};
	struct scene scene;
	const struct history_gpu *gpu;

	for (uint64_t i = 0; i < 2 * HISTORY_POWERS; i++) {
		/* Two looks at each reading. */
		for (uint64_t age = 0; age < 2; age++) {
			look(&scene, i * NSEC_PER_SEC + age * NSEC_PER_SEC / 2, 0);
			scene.gpu.power_mw = 1000 + i;
			scene.gpu.power_age_ns = age * NSEC_PER_SEC / 2;
			assert_int_equal(history_add(&h, &scene.s), 0);
		}
	}
	gpu = history_gpu(&h, 0);
	assert_non_null(gpu);
	assert_int_equal(gpu->n, HISTORY_POWERS);
	assert_int_equal(gpu->power_mw[HISTORY_POWERS - 1], 1000 + 2 * HISTORY_POWERS - 1);
	assert_int_equal(gpu->power_mw[0], 1000 + HISTORY_POWERS);
	assert_null(history_gpu(&h, 1));
	history_deinit(&h);
}

static void bars_fill_with_their_part(void **state) {
	char text[BLOCKS_TEXT];

	blocks_bar(text, 0, 100, 4, false);
	assert_string_equal(text, "....");
	blocks_bar(text, 50, 100, 4, false);
	assert_string_equal(text, "##..");
	blocks_bar(text, 500, 100, 4, false);
	assert_string_equal(text, "####");
	blocks_bar(text, 5, 0, 4, false);
	assert_string_equal(text, "....");
	blocks_bar(text, 3, 8, 4, true);
	assert_string_equal(text, "█▌··");
	blocks_bar(text, UINT64_MAX, 1, 1000, true);
	assert_int_equal(strlen(text), 3 * BLOCKS_MAX);
}

static void heights_go_from_the_lowest_to_the_highest(void **state) {
	static const uint64_t values[] = {0, 50, 100, 1000};
	char text[BLOCKS_TEXT];

	blocks_heights(text, values, 4, 100, false);
	assert_string_equal(text, "_=##");
	blocks_heights(text, values, 4, 100, true);
	assert_string_equal(text, "▁▅██");
	blocks_heights(text, values, 4, 0, true);
	assert_string_equal(text, "▁▁▁▁");
	blocks_heights(text, values, 0, 0, true);
	assert_string_equal(text, "");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_are_fresh_for_five_seconds),
		cmocka_unit_test(rare_looks_tell_what_came_since_the_last),
		cmocka_unit_test(frequent_looks_are_bounded),
		cmocka_unit_test(all_misses_of_a_new_task_are_fresh),
		cmocka_unit_test(each_reading_of_power_is_kept_once),
		cmocka_unit_test(bars_fill_with_their_part),
		cmocka_unit_test(heights_go_from_the_lowest_to_the_highest),
	};

	return cmocka_run_group_tests_name("client-history", tests, NULL, NULL);
}
