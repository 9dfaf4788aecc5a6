/*
 * test-timer.c: timers that libevent can't add, for its own array of them is full and can't grow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <event2/event.h>

#include "daemon/base/awake.h"
#include "daemon/base/timer.h"

#define OTHERS_MAX 64
#define HOUR	   (3600 * NSEC_PER_SEC)

static bool no_memory;

static void *reallocate(void *p, size_t size) {
	return no_memory ? NULL : realloc(p, size);
}

struct world {
	struct event_base *base;
	struct timer timer;
	struct event others[OTHERS_MAX];
	nsec_t began;
	unsigned n; /* times that the timer has come */
};

static void never(evutil_socket_t fd, short what, void *userdata) {
	fail();
}

/* It is set again, as often as it is waited for. */
static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct world *w = userdata;

	assert_false(timer_is_set(&w->timer));
	if (++w->n == 3) {
		event_base_loopbreak(w->base);
	} else {
		timer_set(&w->timer, 2 * NSEC_PER_MSEC);
	}
}

/* There is no memory, and as many timers are pending as fit. */
static void init(struct world *w) {
	static const struct timeval hour = {.tv_sec = 3600};
	unsigned n = 0;

	no_memory = false;
	*w = (struct world){.base = event_base_new(), .began = nsec_now()};
	assert_non_null(w->base);
	timer_init(&w->timer, w->base, on_timer, w);
	for (bool added = true; added; n++) {
		assert_true(n < OTHERS_MAX);
		event_assign(&w->others[n], w->base, -1, EV_TIMEOUT, never, NULL);
		added = event_add(&w->others[n], &hour) == 0;
		no_memory = true;
	}
	assert_true(n > 1);
}

static void deinit(struct world *w) {
	timer_stop(&w->timer);
	assert_false(timer_is_set(&w->timer));
	assert_false(timer_retry());
	event_base_free(w->base);
}

static void on_turn(void *userdata) {
}

static void a_timer_comes_again_and_again_without_memory(void **state) {
	struct awake awake = {.time = 0};
	struct world w;

	init(&w);
	timer_set(&w.timer, 2 * NSEC_PER_MSEC);
	assert_true(w.timer.waits);
	assert_int_equal(awake_dispatch(&awake, w.base, on_turn, NULL), 0);
	assert_int_equal(w.n, 3);
	assert_true(nsec_now() - w.began >= 6 * NSEC_PER_MSEC);
	deinit(&w);
}

static void a_timer_that_waits_is_added_when_there_is_memory(void **state) {
	struct world w;

	init(&w);
	timer_set(&w.timer, HOUR);
	assert_true(timer_is_set(&w.timer));
	assert_true(timer_retry());
	no_memory = false;
	assert_false(timer_retry());
	assert_true(timer_is_set(&w.timer));
	assert_false(w.timer.waits);
	deinit(&w);
}

static void a_timer_that_waits_can_be_set_again_and_stopped(void **state) {
	struct world w;

	init(&w);
	timer_set(&w.timer, 0);
	timer_set(&w.timer, HOUR);
	assert_true(timer_retry());
	assert_int_equal(event_base_loop(w.base, EVLOOP_NONBLOCK), 0);
	assert_int_equal(w.n, 0);
	timer_stop(&w.timer);
	assert_false(timer_is_set(&w.timer));
	assert_false(timer_retry());
	deinit(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timer_comes_again_and_again_without_memory),
		cmocka_unit_test(a_timer_that_waits_is_added_when_there_is_memory),
		cmocka_unit_test(a_timer_that_waits_can_be_set_again_and_stopped),
	};

	event_set_mem_functions(malloc, reallocate, free);
	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
