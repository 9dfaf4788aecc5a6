/*
 * test-groups.c: what the shim makes of the driver's ioctls about channel groups. The driver is the
 * test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/rm.h"
#include "shim/groups.h"

#define CLIENT	   0xc1d00001u
#define DEVICE	   0x5c000001u
#define SUBDEVICE  0x5c000002u
#define CONNECTION 7u

#define ALLOC	    _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc)
#define ALLOC_SHORT _IOWR(RM_TYPE, RM_ALLOC_NR, struct rm_alloc_short)
#define FREE	    _IOWR(RM_TYPE, RM_FREE_NR, struct rm_free)

static int control = -1; /* the driver's descriptor */

static void see_alloc(unsigned long request, uint32_t parent, uint32_t object, uint32_t class,
		      const void *params, uint32_t status) {
	struct rm_alloc a = {.client = CLIENT,
			     .parent = parent,
			     .object = object,
			     .class = class,
			     .params = (uintptr_t)params};

	if (request == ALLOC_SHORT) {
		memcpy((char *)&a + offsetof(struct rm_alloc_short, status), &status,
		       sizeof(status));
	} else {
		a.status = status;
	}
	assert_true(groups_concern(request));
	groups_before(request, &a);
	errno = 123;
	groups_after(control, request, &a);
	assert_int_equal(errno, 123);
}

static void see_device(uint32_t object, uint32_t number) {
	struct rm_device_params p = {.device = number};

	see_alloc(ALLOC, CLIENT, object, RM_CLASS_DEVICE, &p, 0);
}

static void see_group_of(unsigned long request, uint32_t parent, uint32_t object, uint32_t engine,
			 uint32_t status) {
	struct rm_group_params p = {.engine = engine};

	see_alloc(request, parent, object, RM_CLASS_CHANNEL_GROUP, &p, status);
}

static void see_group(uint32_t object, uint32_t engine) {
	see_group_of(ALLOC, DEVICE, object, engine, 0);
}

static void see_free(uint32_t object) {
	struct rm_free f = {.client = CLIENT, .object = object};

	assert_true(groups_concern(FREE));
	errno = 123;
	groups_before(FREE, &f);
	assert_int_equal(errno, 123);
	groups_after(control, FREE, &f);
}

/* ---- the driver's control ---- */

static struct rm_disable_channels asked; /* the last time */
static unsigned times_asked;
static uint32_t answer; /* its status */

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
	struct rm_control *q;
	va_list list;

	va_start(list, request);
	q = va_arg(list, struct rm_control *);
	va_end(list);
	assert_true(request == _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control));
	assert_int_not_equal(fd, control); /* a duplicate */
	assert_int_equal(q->client, CLIENT);
	assert_int_equal(q->object, SUBDEVICE);
	assert_int_equal(q->command, 0x2080110b);
	assert_int_equal(q->params_size, 536);
	asked = *(const struct rm_disable_channels *)(uintptr_t)q->params;
	times_asked++;
	q->status = answer;
	return 0;
}

/* That it is asked once, for the @n channels from @first on. */
static void expect_asked(enum groups_place place, uint32_t first, unsigned n) {
	times_asked = 0;
	assert_int_equal(groups_put(place), 0);
	assert_int_equal(times_asked, 1);
	assert_int_equal(asked.disable, place != GROUPS_ON);
	assert_int_equal(asked.n, n);
	assert_int_equal(asked.only_scheduling, place == GROUPS_OFF_LATER);
	assert_true(!asked.rewind && !asked.event);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(asked.clients[i], CLIENT);
		assert_int_equal(asked.channels[i], first + i);
	}
}

static void expect_not_asked(enum groups_place place, int r) {
	times_asked = 0;
	assert_int_equal(groups_put(place), r);
	assert_int_equal(times_asked, 0);
}

static void see_channel(uint32_t group, uint32_t object) {
	see_alloc(ALLOC, group, object, 0xc86f, NULL, 0);
}

/* The next news, which is told; @at as of groups_next(). */
static void expect(unsigned *at, uint32_t object, bool gone) {
	struct groups_news news;
	struct stat a, b;

	assert_true(groups_next(at, &news));
	assert_int_equal(news.connection, CONNECTION);
	assert_int_equal(news.client, CLIENT);
	assert_int_equal(news.object, object);
	assert_int_equal(news.gone, gone);
	if (gone) {
		assert_int_equal(news.fd, -1);
	} else {
		assert_int_equal(fstat(news.fd, &a), 0);
		assert_int_equal(fstat(control, &b), 0);
		assert_true(a.st_ino == b.st_ino && a.st_rdev == b.st_rdev);
		assert_int_equal(fcntl(news.fd, F_GETFD), FD_CLOEXEC);
		close(news.fd);
	}
	groups_told(&news);
}

static void expect_no_news(void) {
	struct groups_news news;
	unsigned at = 0;

	assert_false(groups_next(&at, &news));
}

/* In a child: some of what is learnt is for good. */
static void in_child(void (*test)(void)) {
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		groups_after_fork();
		control = open("/dev/null", O_RDWR | O_CLOEXEC);
		see_device(DEVICE, 0);
		test();
		_exit(0); /* a failed assertion exits otherwise */
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void computing(void) {
	unsigned at = 0;

	assert_false(groups_known());
	see_group(0x10, 11);
	see_group(0x11, 12);
	see_group(0x12, 0);
	see_group(0x13, 9);
	assert_false(groups_known());
	see_group_of(ALLOC, DEVICE, 0x14, 1, 0x1a); /* refused */
	see_group_of(ALLOC_SHORT, DEVICE, 0x15, 1, 0x1a);
	assert_false(groups_known());
	see_group(0x20, 1);
	see_group_of(ALLOC_SHORT, DEVICE, 0x21, 1, 0);
	assert_true(groups_known());
	expect_no_news(); /* nobody wants them */
	groups_wanted(CONNECTION);
	assert_true(groups_have_news());
	assert_false(groups_have_news());
	expect(&at, 0x20, false);
	expect(&at, 0x21, false);
	expect_no_news();
	groups_wanted(CONNECTION); /* again: it was another process */
	at = 0;
	expect(&at, 0x20, false);
}

static void groups_that_compute_are_news_when_wanted(void **state) {
	in_child(computing);
}

static void freeing(void) {
	unsigned at = 0;

	groups_wanted(CONNECTION);
	see_group(0x20, 1);
	see_group(0x21, 1);
	expect(&at, 0x20, false);
	expect(&at, 0x21, false);
	see_free(0x999);
	groups_have_news();
	see_free(0x20);
	assert_true(groups_have_news());
	assert_true(groups_known());
	see_group(0x20, 1); /* another one of this name */
	at = 0;
	expect(&at, 0x20, true);
	expect(&at, 0x20, false);
	see_free(0x20);
	at = 0;
	expect(&at, 0x20, true);
	see_free(0x21);
	see_group(0x21, 1); /* where the other one was */
	at = 0;
	expect(&at, 0x21, true);
	expect(&at, 0x21, false);
	see_free(DEVICE); /* with all below it */
	assert_false(groups_known());
	at = 0;
	expect(&at, 0x21, true);
	expect_no_news();
}

static void freed_groups_are_told_before_new_ones(void **state) {
	in_child(freeing);
}

static void freeing_client(void) {
	unsigned at = 0;

	groups_wanted(CONNECTION);
	see_group(0x20, 1);
	expect(&at, 0x20, false);
	see_group(0x21, 1); /* and freed before it is told */
	see_free(CLIENT);
	assert_false(groups_known());
	at = 0;
	expect(&at, 0x20, true);
	expect_no_news();
}

static void a_client_takes_all_along(void **state) {
	in_child(freeing_client);
}

static void several(void) {
	see_group(0x20, 1);
	assert_true(groups_known());
	see_device(0x5c000009u, 1);
	see_group_of(ALLOC, 0x5c000009u, 0x21, 1, 0);
	assert_false(groups_known());
	see_free(0x21);
	assert_true(groups_known());
}

static void groups_of_several_gpus_are_not_known(void **state) {
	in_child(several);
}

static void closing(void) {
	int other = open("/dev/zero", O_RDWR | O_CLOEXEC);

	groups_wanted(CONNECTION);
	see_group(0x20, 1);
	assert_int_equal(dup2(other, control), control); /* now it is the program's */
	expect_no_news();
}

static void a_descriptor_of_the_programs_is_never_told(void **state) {
	in_child(closing);
}

static void unknown(void) {
	struct rm_alloc a = {.client = CLIENT, .object = 0x30, .class = RM_CLASS_CHANNEL_GROUP};
	unsigned long longer = _IOC(_IOC_READ | _IOC_WRITE, RM_TYPE, RM_ALLOC_NR, 64);
	unsigned at = 0;

	groups_wanted(CONNECTION);
	see_group(0x20, 1);
	expect(&at, 0x20, false);
	groups_before(longer, &a);
	groups_after(control, longer, &a);
	assert_false(groups_known());
	assert_false(groups_concern(ALLOC)); /* for good */
	at = 0;
	expect(&at, 0x20, true);
	expect_no_news();
}

static void unknown_free(void) {
	struct rm_free f = {.client = CLIENT, .object = 0x20};

	see_group(0x20, 1);
	groups_before(_IOC(_IOC_READ | _IOC_WRITE, RM_TYPE, RM_FREE_NR, 24), &f);
	assert_false(groups_known());
	assert_false(groups_concern(FREE));
}

static void without_params(void) {
	see_alloc(ALLOC, DEVICE, 0x20, RM_CLASS_CHANNEL_GROUP, NULL, 0);
	assert_false(groups_known());
	assert_false(groups_concern(ALLOC));
}

static void an_unknown_layout_switches_it_off(void **state) {
	in_child(unknown);
	in_child(unknown_free);
	in_child(without_params);
}

static void too_many(void) {
	for (uint32_t i = 0; i < 200 && groups_concern(ALLOC); i++) {
		see_group(0x100 + i, 1);
	}
	assert_false(groups_known());
	assert_false(groups_concern(ALLOC));
}

static void too_many_groups_switch_it_off(void **state) {
	in_child(too_many);
}

static void disabling(void) {
	expect_not_asked(GROUPS_OFF, GROUPS_E_REFUSED); /* there is nothing */
	see_group(0x20, 1);
	see_group(0x30, 11);
	expect_not_asked(GROUPS_OFF, GROUPS_E_REFUSED);
	see_channel(0x20, 0x21);
	see_channel(0x20, 0x22);
	see_channel(0x30, 0x31); /* copies go on */
	see_alloc(ALLOC_SHORT, 0x20, 0x28, 0xc86f, NULL, 0x1a);
	see_alloc(ALLOC, 0x20, 0x29, 0xc8c0, NULL, 0);	/* no channel */
	expect_not_asked(GROUPS_OFF, GROUPS_E_REFUSED); /* of no subdevice */
	see_alloc(ALLOC, DEVICE, SUBDEVICE, RM_CLASS_SUBDEVICE, NULL, 0);
	expect_not_asked(GROUPS_ON, 0);
	expect_asked(GROUPS_OFF, 0x21, 2);
	expect_not_asked(GROUPS_OFF, 0);
	see_channel(0x20, 0x23);
	expect_asked(GROUPS_OFF, 0x23, 1);
	see_channel(0x20, 0x24); /* was never disabled */
	see_free(0x21);
	expect_asked(GROUPS_ON, 0x22, 2);
	expect_not_asked(GROUPS_ON, 0);
	answer = 0x56;
	assert_int_equal(groups_put(GROUPS_OFF), GROUPS_E_REFUSED);
	answer = 0;
	expect_not_asked(GROUPS_ON, 0);
	expect_asked(GROUPS_OFF, 0x22, 3);
	answer = 0x56; /* tried again */
	assert_int_equal(groups_put(GROUPS_ON), GROUPS_E_REFUSED);
	answer = 0;
	expect_asked(GROUPS_ON, 0x22, 3);
	expect_asked(GROUPS_OFF_LATER, 0x22, 3);
	expect_not_asked(GROUPS_OFF_LATER, 0);
	expect_asked(GROUPS_ON, 0x22, 3);
	expect_asked(GROUPS_OFF, 0x22, 3);
	see_free(0x20); /* with all below it */
	expect_not_asked(GROUPS_ON, 0);
	see_group(0x20, 1);
	expect_not_asked(GROUPS_OFF, GROUPS_E_REFUSED);
}

/* What is disabled does not stay so where the driver's ways are not known any more. */
static void disabling_before_unknown(void) {
	struct rm_free f = {.client = CLIENT, .object = 0x99};

	see_alloc(ALLOC, DEVICE, SUBDEVICE, RM_CLASS_SUBDEVICE, NULL, 0);
	see_group(0x20, 1);
	see_channel(0x20, 0x21);
	expect_asked(GROUPS_OFF, 0x21, 1);
	times_asked = 0;
	groups_before(_IOC(_IOC_READ | _IOC_WRITE, RM_TYPE, RM_FREE_NR, 24), &f);
	assert_int_equal(times_asked, 1);
	assert_false(asked.disable);
	assert_int_equal(asked.channels[0], 0x21);
}

/* Those of a call are 64 at most. With too many nothing is disabled, but what is can be enabled. */
static void disabling_many(void) {
	see_alloc(ALLOC, DEVICE, SUBDEVICE, RM_CLASS_SUBDEVICE, NULL, 0);
	see_group(0x20, 1);
	for (uint32_t i = 0; i < 100; i++) {
		see_channel(0x20, 0x100 + i);
	}
	times_asked = 0;
	assert_int_equal(groups_put(GROUPS_OFF), 0);
	assert_int_equal(times_asked, 2);
	assert_int_equal(asked.n, 36);
	for (uint32_t i = 0; i < 1000; i++) {
		see_channel(0x20, 0x1000 + i);
	}
	expect_not_asked(GROUPS_OFF, GROUPS_E_REFUSED);
	assert_int_equal(groups_put(GROUPS_ON), 0);
	assert_int_equal(times_asked, 2);
	expect_not_asked(GROUPS_ON, 0);
}

static void channels_are_disabled_and_enabled(void **state) {
	in_child(disabling);
	in_child(disabling_before_unknown);
	in_child(disabling_many);
}

static void gone_connection(void) {
	unsigned at = 0;

	groups_wanted(CONNECTION);
	see_group(0x20, 1);
	groups_unwanted(CONNECTION + 1);
	expect(&at, 0x20, false);
	groups_unwanted(CONNECTION);
	see_free(0x20);
	see_group(0x21, 1);
	expect_no_news(); /* nobody knew of it */
	groups_wanted(CONNECTION);
	at = 0;
	expect(&at, 0x21, false);
	expect_no_news();
}

static void nobody_is_told_without_a_connection(void **state) {
	in_child(gone_connection);
}

static void other_ioctls_are_of_no_concern(void **state) {
	assert_false(groups_concern(_IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control)));
	assert_false(groups_concern(_IOWR('T', RM_ALLOC_NR, struct rm_alloc)));
	assert_false(groups_concern(TIOCGWINSZ));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_that_compute_are_news_when_wanted),
		cmocka_unit_test(freed_groups_are_told_before_new_ones),
		cmocka_unit_test(a_client_takes_all_along),
		cmocka_unit_test(groups_of_several_gpus_are_not_known),
		cmocka_unit_test(a_descriptor_of_the_programs_is_never_told),
		cmocka_unit_test(an_unknown_layout_switches_it_off),
		cmocka_unit_test(too_many_groups_switch_it_off),
		cmocka_unit_test(channels_are_disabled_and_enabled),
		cmocka_unit_test(nobody_is_told_without_a_connection),
		cmocka_unit_test(other_ioctls_are_of_no_concern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
