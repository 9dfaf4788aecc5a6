/*
 * test-feed.c: the ring of events: order, loss, and several readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/watch/feed.h"

static unsigned n_woken;

static void wake(void *userdata) {
	assert_ptr_equal(userdata, &n_woken);
	n_woken++;
}

static void write_jobs(struct feed *feed, uint64_t from, uint64_t n) {
	for (uint64_t i = 0; i < n; i++) {
		struct feed_event e = {.job.number = from + i};

		feed_write(feed, &e);
	}
}

/* Reads to the end; the jobs are those from @from on. Return: how many. */
static uint64_t read_jobs(const struct feed *feed, struct feed_reader *reader, uint64_t from) {
	const struct feed_event *e;
	uint64_t n = 0;

	while ((e = feed_read(feed, reader))) {
		assert_int_equal(e->job.number, from + n);
		n++;
	}
	return n;
}

static void readers_get_what_is_written_after_they_come(void **state) {
	struct feed feed;
	struct feed_reader a, b;

	assert_int_equal(feed_init(&feed, wake, &n_woken), 0);
	assert_false(feed_wanted(&feed));
	feed_attach(&feed, &a);
	assert_true(feed_wanted(&feed));
	assert_null(feed_read(&feed, &a));
	write_jobs(&feed, 1, 3);
	feed_attach(&feed, &b);
	write_jobs(&feed, 4, 2);
	assert_int_equal(read_jobs(&feed, &a, 1), 5);
	assert_int_equal(read_jobs(&feed, &b, 4), 2);
	assert_int_equal(feed_take_lost(&a), 0);
	feed_detach(&feed, &a);
	assert_true(feed_wanted(&feed));
	feed_detach(&feed, &b);
	assert_false(feed_wanted(&feed));
	feed_deinit(&feed);
}

/* Exactly those that were overwritten count as lost, and each once. */
static void a_slow_reader_learns_what_it_lost(void **state) {
	struct feed feed;
	struct feed_reader slow, quick;

	assert_int_equal(feed_init(&feed, wake, &n_woken), 0);
	feed_attach(&feed, &slow);
	feed_attach(&feed, &quick);
	write_jobs(&feed, 0, FEED_EVENTS);
	assert_int_equal(read_jobs(&feed, &quick, 0), FEED_EVENTS);
	write_jobs(&feed, FEED_EVENTS, 7);
	assert_int_equal(read_jobs(&feed, &slow, 7), FEED_EVENTS);
	assert_int_equal(feed_take_lost(&slow), 7);
	assert_int_equal(feed_take_lost(&slow), 0);
	assert_int_equal(read_jobs(&feed, &quick, FEED_EVENTS), 7);
	assert_int_equal(feed_take_lost(&quick), 0);

	/* many times around */
	write_jobs(&feed, FEED_EVENTS + 7, 10 * FEED_EVENTS);
	assert_int_equal(read_jobs(&feed, &slow, 10 * FEED_EVENTS + 7), FEED_EVENTS);
	assert_int_equal(feed_take_lost(&slow), 9 * FEED_EVENTS);
	feed_detach(&feed, &slow);
	feed_detach(&feed, &quick);
	feed_deinit(&feed);
}

static void readers_are_woken_once_until_they_rest(void **state) {
	struct feed feed;
	struct feed_reader reader;

	n_woken = 0;
	assert_int_equal(feed_init(&feed, wake, &n_woken), 0);
	feed_attach(&feed, &reader);
	write_jobs(&feed, 0, 100);
	assert_int_equal(n_woken, 1);
	feed_rest(&feed);
	assert_int_equal(n_woken, 1);
	write_jobs(&feed, 100, 2);
	assert_int_equal(n_woken, 2);
	feed_detach(&feed, &reader);
	feed_deinit(&feed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_get_what_is_written_after_they_come),
		cmocka_unit_test(a_slow_reader_learns_what_it_lost),
		cmocka_unit_test(readers_are_woken_once_until_they_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
