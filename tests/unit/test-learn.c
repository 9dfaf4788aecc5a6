/*
 * test-learn.c: what completed jobs say of their tasks' times, and that it survives in a document.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gpu/learn.h"

#define MS NSEC_PER_MSEC

static const struct learn_place at_4 = {1000, "cam", "gpu", 4};

/* Return: how often the task was to be planned with anew. */
static unsigned note(struct learn *l, const struct learn_place *place, unsigned n, nsec_t took) {
	unsigned changes = 0;

	while (n-- > 0) {
		changes += learn_note(l, place, took);
	}
	return changes;
}

/* On a GPU of 8 SMs. */
static bool apply(const struct learn *l, const struct profile_table *known,
		  struct profile_table *ret) {
	struct learn_place place = at_4;

	place.n_sms = 8;
	return learn_apply(l, &place, known, ret);
}

static void a_few_jobs_say_nothing(void **state) {
	struct learn *l = learn_new();
	struct profile_table t;

	assert_int_equal(note(l, &at_4, LEARN_JOBS_MIN - 1, 5 * MS), 0);
	assert_false(apply(l, NULL, &t));
	assert_int_equal(note(l, &at_4, 1, 4 * MS), 1);
	assert_true(apply(l, NULL, &t));
	assert_int_equal(t.n_sms, 8);
	assert_int_equal(t.exec[4], 5 * MS);
	assert_int_equal(t.exec_best[4], 4 * MS);
	assert_int_equal(t.exec[8], 5 * MS);  /* more SMs may not help */
	assert_int_equal(t.exec[1], 20 * MS); /* linear below what was seen */
	learn_free(l);
}

static void old_jobs_are_forgotten(void **state) {
	struct learn *l = learn_new();
	struct profile_table t;

	note(l, &at_4, 1, 100 * MS);
	note(l, &at_4, LEARN_WINDOW - 1, 10 * MS);
	assert_true(apply(l, NULL, &t));
	assert_int_equal(t.exec[4], 100 * MS);
	note(l, &at_4, LEARN_WINDOW, 10 * MS); /* it may still be one of the last two windows */
	apply(l, NULL, &t);
	assert_int_equal(t.exec[4], 100 * MS);
	assert_int_equal(note(l, &at_4, 1, 10 * MS), 1);
	apply(l, NULL, &t);
	assert_int_equal(t.exec[4], 10 * MS);
	learn_free(l);
}

/* Without a profile; with one it is not given fewer than a file says. */
static void half_of_what_was_learnt_of_may_be_given(void **state) {
	const struct learn_place at_3 = {1000, "cam", "gpu", 3};
	struct learn *l = learn_new();
	struct profile_table known, t = {0};

	assert_int_equal(profile_table_init(&known, 8, 0, 0), 0);
	assert_int_equal(profile_table_set(&known, 4, 10 * MS, 10 * MS, 100), 0);
	assert_int_equal(profile_table_finish(&known), 0);
	note(l, &at_4, LEARN_JOBS_MIN, 10 * MS);
	assert_true(apply(l, NULL, &t));
	assert_int_equal(t.least, 2);
	assert_int_equal(t.exec[2], 20 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.least, 4);
	note(l, &at_3, LEARN_JOBS_MIN, 10 * MS);
	assert_true(apply(l, NULL, &t));
	assert_int_equal(t.least, 2); /* 1.5 */
	learn_free(l);
}

/* Of a profile of 8 SMs, measured on 2 and 8. */
static void profiles_that_are_too_hopeful_are_corrected(void **state) {
	const struct learn_place at_2 = {1000, "cam", "gpu", 2}, at_8 = {1000, "cam", "gpu", 8};
	struct learn *l = learn_new_corrections();
	struct profile_table known, t = {0};

	assert_true(learn_corrects(l));
	assert_int_equal(profile_table_init(&known, 8, MS, 0), 0);
	assert_int_equal(profile_table_set(&known, 2, 10 * MS, 20 * MS, 100), 0);
	assert_int_equal(profile_table_set(&known, 8, 5 * MS, 10 * MS, 400), 0);
	assert_int_equal(profile_table_finish(&known), 0);

	/* one job was held up, the others are as long as they may be */
	note(l, &at_4, LEARN_WINDOW - 1, 21 * MS);
	note(l, &at_4, 1, 500 * MS);
	assert_false(apply(l, &known, &t));
	/* so are two */
	assert_int_equal(note(l, &at_4, 1, 31 * MS), 1);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[4], 30 * MS);
	assert_int_equal(t.exec[2], 30 * MS); /* fewer SMs are not faster */
	assert_int_equal(t.exec[3], 30 * MS);
	assert_int_equal(t.exec[5], 30 * MS); /* between two points the longer one */
	assert_int_equal(t.exec[8], 10 * MS);
	assert_int_equal(t.power_mw[4], known.power_mw[4]);
	assert_int_equal(t.least, 2);

	/* nothing is shortened, nor learnt where no file says anything */
	note(l, &at_8, LEARN_CORRECT_MIN, 2 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[8], 10 * MS);
	assert_int_equal(t.exec_best[8], 5 * MS);
	assert_false(apply(l, NULL, &t));

	/* a few are enough, and only of this number of SMs */
	assert_int_equal(note(l, &at_2, LEARN_CORRECT_MIN, 41 * MS), 1);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[2], 40 * MS);
	assert_int_equal(t.exec[4], 30 * MS);
	/* and it is forgotten when it is so no more */
	note(l, &at_2, 2 * LEARN_WINDOW + 1, 15 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[2], 30 * MS);
	learn_free(l);
}

static void small_changes_are_not_told(void **state) {
	struct learn *l = learn_new();

	assert_int_equal(note(l, &at_4, LEARN_JOBS_MIN, 16 * MS), 1);
	assert_int_equal(note(l, &at_4, 10, 17 * MS), 0);
	assert_int_equal(note(l, &at_4, 10, 17 * MS + 1), 1);
	assert_int_equal(note(l, &at_4, 1, 0), 0);
	assert_int_equal(note(l, &at_4, 1, PROFILE_TIME_MAX + 1), 0);
	assert_int_equal(learn_count(l), LEARN_JOBS_MIN + 20);
	learn_free(l);
}

/* The file: 6 ms on 4 SMs, copies of 1 ms each way, 2 W. */
static struct profile_table stated(void) {
	struct profile_table t;

	assert_int_equal(profile_table_init(&t, 8, MS, MS), 0);
	assert_int_equal(profile_table_set(&t, 4, 5 * MS, 6 * MS, 2000), 0);
	assert_int_equal(profile_table_finish(&t), 0);
	return t;
}

static void a_stated_time_is_lengthened_never_shortened(void **state) {
	struct profile_table known = stated(), t;
	struct learn *l = learn_new();

	note(l, &at_4, LEARN_JOBS_MIN, 4 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[4], 6 * MS);
	assert_int_equal(t.exec_best[4], 2 * MS); /* without both copies */
	note(l, &at_4, 1, 12 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[4], 10 * MS);
	assert_int_equal(profile_total(&t, 4), 12 * MS);
	assert_int_equal(t.exec[8], 10 * MS); /* filled by the same rule as ever */
	assert_int_equal(t.power_mw[4], 2000);
	learn_free(l);
}

static void a_guess_is_replaced(void **state) {
	struct learn_place at_8 = at_4;
	struct profile_table known = stated(), t;
	struct learn *l = learn_new();

	at_8.n_sms = 8;
	note(l, &at_8, LEARN_JOBS_MIN, 5 * MS);
	assert_true(apply(l, &known, &t));
	assert_int_equal(t.exec[8], 3 * MS);
	assert_int_equal(t.exec[4], 6 * MS);
	assert_int_equal(t.power_mw[8], 2000);
	learn_free(l);
}

static void users_profiles_and_gpus_are_apart(void **state) {
	struct learn_place other[3] = {at_4, at_4, at_4};
	struct learn *l = learn_new();
	struct profile_table t;

	other[0].uid = 1001;
	other[1].profile = "cam2";
	other[2].gpu = "gpu2";
	for (size_t i = 0; i < 3; i++) {
		note(l, &other[i], LEARN_JOBS_MIN, MS);
	}
	assert_false(apply(l, NULL, &t));
	learn_free(l);
}

static int read_text(struct learn *l, const char *text, char *why, size_t size) {
	struct reader r = {.file = "f", .error = why, .error_size = size};
	struct reader_node root = {0};
	int e = reader_parse(&r, text, strlen(text), &root.value);

	assert_int_equal(e, 0);
	e = learn_read(l, &r, &root);
	json_decref(root.value);
	return e;
}

static void what_is_written_is_read(void **state) {
	struct learn *l = learn_new(), *again = learn_new();
	struct profile_table a, b;
	json_t *document;
	char why[256] = "", *text;

	note(l, &at_4, LEARN_WINDOW + 3, 7 * MS);
	note(l, &at_4, 1, 9 * MS);
	document = learn_json(l);
	text = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	assert_int_equal(read_text(again, text, why, sizeof(why)), 0);
	assert_true(apply(l, NULL, &a));
	assert_true(apply(again, NULL, &b));
	assert_int_equal(b.exec[4], 9 * MS);
	assert_memory_equal(a.exec, b.exec, sizeof(a.exec));
	assert_memory_equal(a.exec_best, b.exec_best, sizeof(a.exec_best));
	assert_int_equal(note(again, &at_4, 1, 9 * MS), 0); /* nothing has changed */
	free(text);
	learn_free(l);
	learn_free(again);
}

static void nonsense_is_refused(void **state) {
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"learned\": [{}]}",
		"{\"learned\": [{\"uid\": 0, \"profile\": \"a\", \"gpu\": \"g\", \"sms\": 0, "
		"\"now\": "
		"{\"jobs\": 1, \"best_ns\": 1, \"worst_ns\": 1}, \"before\": {\"jobs\": 0, "
		"\"best_ns\": 0, \"worst_ns\": 0}}]}",
		"{\"learned\": [{\"uid\": 0, \"profile\": \"a\", \"gpu\": \"g\", \"sms\": 1, "
		"\"now\": "
		"{\"jobs\": 1, \"best_ns\": 2, \"worst_ns\": 1}, \"before\": {\"jobs\": 0, "
		"\"best_ns\": 0, \"worst_ns\": 0}}]}",
		"{\"learned\": [{\"uid\": 0, \"profile\": \"a\", \"gpu\": \"g\", \"sms\": 1, "
		"\"now\": "
		"{\"jobs\": 65, \"best_ns\": 1, \"worst_ns\": 1}, \"before\": {\"jobs\": 0, "
		"\"best_ns\": 0, \"worst_ns\": 0}}]}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct learn *l = learn_new();
		char why[256] = "";

		assert_true(read_text(l, texts[i], why, sizeof(why)) < 0);
		assert_true(strlen(why) > 0);
		learn_free(l);
	}
}

/* Place @i of user @uid; the name lasts until the next call. */
static struct learn_place place_of(uid_t uid, unsigned i) {
	static char name[32];

	snprintf(name, sizeof(name), "task%u", i);
	return (struct learn_place){uid, name, "gpu", 4};
}

static void fill(struct learn *l, uid_t uid, unsigned n_points, unsigned n_jobs) {
	for (unsigned i = 0; i < n_points; i++) {
		struct learn_place place = place_of(uid, i);

		note(l, &place, n_jobs, MS);
	}
}

static bool knows(const struct learn *l, struct learn_place place) {
	struct profile_table t;

	place.n_sms = 8;
	return learn_apply(l, &place, NULL, &t);
}

static unsigned count_known(const struct learn *l, uid_t uid, unsigned n_points) {
	unsigned n = 0;

	for (unsigned i = 0; i < n_points; i++) {
		n += knows(l, place_of(uid, i));
	}
	return n;
}

static void one_user_leaves_room_for_others(void **state) {
	struct learn *l = learn_new();

	fill(l, 2000, 2 * LEARN_POINTS_MAX, LEARN_JOBS_MIN);
	assert_int_equal(count_known(l, 2000, 2 * LEARN_POINTS_MAX), LEARN_POINTS_MAX);
	note(l, &at_4, LEARN_JOBS_MIN, 5 * MS);
	assert_true(knows(l, at_4));
	fill(l, 2000, 2 * LEARN_POINTS_MAX, LEARN_JOBS_MIN);
	assert_true(knows(l, at_4)); /* it has fewer, however old they are */
	fill(l, 3000, 2 * LEARN_POINTS_MAX, LEARN_JOBS_MIN);
	assert_true(knows(l, at_4));
	assert_in_range(count_known(l, 2000, 2 * LEARN_POINTS_MAX), LEARN_POINTS_MAX / 2 - 1,
			LEARN_POINTS_MAX / 2 + 1);
	assert_in_range(count_known(l, 3000, 2 * LEARN_POINTS_MAX), LEARN_POINTS_MAX / 2 - 1,
			LEARN_POINTS_MAX / 2 + 1);
	learn_free(l);
}

static void more_users_than_points_replace_each_other(void **state) {
	struct learn *l = learn_new();

	for (uid_t uid = 1; uid <= 2 * LEARN_POINTS_MAX; uid++) {
		fill(l, uid, 1, LEARN_JOBS_MIN);
		assert_true(knows(l, place_of(uid, 0)));
	}
	learn_free(l);
}

static void tasks_that_nobody_uses_make_room(void **state) {
	struct learn *l = learn_new();
	struct learn_place late = place_of(1000, 1000000);

	note(l, &at_4, LEARN_JOBS_MIN, 5 * MS);
	fill(l, 1000, LEARN_POINTS_MAX, 1); /* which say nothing yet */
	assert_true(knows(l, at_4));
	fill(l, 1000, LEARN_POINTS_MAX - 1, LEARN_JOBS_MIN);
	assert_true(knows(l, at_4));
	late = place_of(1000, 1000000);
	note(l, &late, LEARN_JOBS_MIN, MS);
	assert_false(knows(l, at_4)); /* of those that speak it was not used for longest */
	assert_true(knows(l, place_of(1000, 1000000)));
	assert_true(knows(l, place_of(1000, 0)));
	learn_free(l);
}

static void a_restart_keeps_the_order_of_use(void **state) {
	struct learn *l = learn_new(), *again = learn_new();
	json_t *document;
	char why[256], *text;

	fill(l, 1000, LEARN_POINTS_MAX, LEARN_JOBS_MIN);
	fill(l, 1000, 1, 1); /* the first is the last again */
	document = learn_json(l);
	text = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	assert_int_equal(read_text(again, text, why, sizeof(why)), 0);
	note(again, &at_4, LEARN_JOBS_MIN, MS);
	assert_true(knows(again, place_of(1000, 0)));
	assert_false(knows(again, place_of(1000, 1)));
	assert_true(knows(again, place_of(1000, 2)));
	free(text);
	learn_free(l);
	learn_free(again);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_few_jobs_say_nothing),
		cmocka_unit_test(old_jobs_are_forgotten),
		cmocka_unit_test(small_changes_are_not_told),
		cmocka_unit_test(half_of_what_was_learnt_of_may_be_given),
		cmocka_unit_test(profiles_that_are_too_hopeful_are_corrected),
		cmocka_unit_test(a_stated_time_is_lengthened_never_shortened),
		cmocka_unit_test(a_guess_is_replaced),
		cmocka_unit_test(users_profiles_and_gpus_are_apart),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(one_user_leaves_room_for_others),
		cmocka_unit_test(more_users_than_points_replace_each_other),
		cmocka_unit_test(tasks_that_nobody_uses_make_room),
		cmocka_unit_test(a_restart_keeps_the_order_of_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
