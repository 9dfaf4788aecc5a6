/*
 * test-awake.c: when the daemon's loop sleeps, and that it ends either way. No clock but the one
 * that is passed, as to what is asserted.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

static void dispatch(nsec_t time) {
	struct turns t = {.base = event_base_new(), .awake = {.time = time}};

	t.event = event_new(t.base, -1, 0, on_turn, &t);
	event_add(t.event, &(struct timeval){.tv_usec = 1000});
	assert_int_equal(awake_dispatch(&t.awake, t.base), 0);
	assert_int_equal(t.n, 3);
	event_free(t.event);
	event_base_free(t.base);
}

static void awake_dispatch_serves_and_ends_asleep_and_awake(void **state) {
	dispatch(0);
	dispatch(100 * NSEC_PER_USEC); /* asleep before the next turn */
	dispatch(NSEC_PER_SEC);	       /* not asleep before the end */
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(awake_lasts_for_its_time_after_each_touch),
		cmocka_unit_test(awake_never_is_with_0),
		cmocka_unit_test(awake_never_is_on_one_cpu),
		cmocka_unit_test(awake_dispatch_serves_and_ends_asleep_and_awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
