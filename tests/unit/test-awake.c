/*
 * test-awake.c: when the daemon's loop sleeps, and that it ends either way. No clock but the one
 * that is passed, as to what is asserted.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "daemon/base/awake.h"
#include "proto/spin.h"

static void awake_lasts_for_its_time_after_each_touch(void **state) {
	struct awake a = {.time = 100};

	assert_false(awake_is(&a, 0));
	awake_touch(&a, 1000);
	assert_true(awake_is(&a, 1000));
	assert_true(awake_is(&a, 1099));
	awake_touch(&a, 1050);
	assert_true(awake_is(&a, 1149));
	assert_false(awake_is(&a, 1150));
	assert_int_equal(a.until, 0); /* the clock is not asked any more */
}

static void awake_never_is_with_0(void **state) {
	struct awake a;

	awake_set(&a, 0);
	awake_touch(&a, 1000);
	assert_false(awake_is(&a, 1000));
}

static void awake_never_is_on_one_cpu(void **state) {
	cpu_set_t before, one;
	struct awake a;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before)) {
		cpu++;
	}
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	awake_set(&a, 100);
	assert_int_equal(a.time, 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(spin_allowed(100), CPU_COUNT(&before) < 2 ? 0 : 100);
}

/* Three turns of the loop by timers, then its end. */
struct turns {
	struct event_base *base;
	struct event *event;
	struct awake awake;
	unsigned n;
};

static void on_turn(evutil_socket_t fd, short what, void *userdata) {
	struct turns *t = userdata;

	awake_touch(&t->awake, nsec_now());
	if (++t->n == 3) {
		event_base_loopbreak(t->base);
	} else {
		event_add(t->event, &(struct timeval){.tv_usec = 1000});
	}
}

static void count_turn(void *userdata) {
	unsigned *n = userdata;

	(*n)++;
}

static void dispatch(nsec_t time) {
	struct turns t = {.base = event_base_new(), .awake = {.time = time}};
	unsigned n_turns = 0;

	t.event = event_new(t.base, -1, 0, on_turn, &t);
	event_add(t.event, &(struct timeval){.tv_usec = 1000});
	assert_int_equal(awake_dispatch(&t.awake, t.base, count_turn, &n_turns), 0);
	assert_int_equal(t.n, 3);
	assert_true(n_turns >= 3); /* more if it stays awake: turns in which nothing is ready */
	event_free(t.event);
	event_base_free(t.base);
}

static void awake_dispatch_serves_and_ends_asleep_and_awake(void **state) {
	dispatch(0);
	dispatch(100 * NSEC_PER_USEC); /* asleep before the next turn */
	dispatch(NSEC_PER_SEC);	       /* not asleep before the end */
}

/* Two sockets that nobody empties, hence always ready, and a loop that ends after three turns. */
struct ready {
	struct event_base *base;
	struct event *events[2];
	unsigned n_events, n_turns;
};

static void on_ready(evutil_socket_t fd, short what, void *userdata) {
	struct ready *r = userdata;

	r->n_events++;
}

static void on_ready_turn(void *userdata) {
	struct ready *r = userdata;

	if (++r->n_turns == 3) {
		event_base_loopbreak(r->base);
	}
}

static void dispatch_ready(struct awake awake) {
	struct ready r = {.base = event_base_new()};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(fds[i], "x", 1), 1);
		r.events[i] = event_new(r.base, fds[i], EV_READ | EV_PERSIST, on_ready, &r);
		event_add(r.events[i], NULL);
	}
	assert_int_equal(awake_dispatch(&awake, r.base, on_ready_turn, &r), 0);
	assert_int_equal(r.n_turns, 3);
	assert_int_equal(r.n_events, 6);
	for (int i = 0; i < 2; i++) {
		event_free(r.events[i]);
		close(fds[i]);
	}
	event_base_free(r.base);
}

static void awake_dispatch_ends_a_turn_after_all_that_was_ready(void **state) {
	dispatch_ready((struct awake){0});
	dispatch_ready((struct awake){.time = 1, .until = UINT64_MAX});
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(awake_lasts_for_its_time_after_each_touch),
		cmocka_unit_test(awake_never_is_with_0),
		cmocka_unit_test(awake_never_is_on_one_cpu),
		cmocka_unit_test(awake_dispatch_serves_and_ends_asleep_and_awake),
		cmocka_unit_test(awake_dispatch_ends_a_turn_after_all_that_was_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
