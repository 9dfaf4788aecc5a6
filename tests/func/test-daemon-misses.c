/*
 * test-daemon-misses.c: a missed deadline is in the log, and a program that is always late does not
 * fill it.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "proto/packet.h"

static struct harness harness;

static int start(void **state) {
	harness_prepare(&harness);
	harness_listen(&harness);
	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static int open_task(const char *name, nsec_t deadline) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	int fd = shim_connect();

	spec.name = (char *)(uintptr_t)name;
	spec.deadline_ns = deadline;
	shim_hello(fd, "p", &spec, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	return fd;
}

static void run_job(int fd, uint64_t job) {
	struct grant g;

	shim_request(fd, job, 0, MASK_WHOLE);
	g = shim_granted(fd, job);
	while (nsec_now() <= g.deadline_ns && g.deadline_ns - nsec_now() < NSEC_PER_SEC) {
		usleep(100);
	}
	shim_done(fd, job);
	harness_settle();
}

/* Each program's first one; of further ones only their number would be told, ten seconds later. */
static void misses_are_logged_once_in_a_while(void **state) {
	nsec_t began = nsec_now();
	int late = open_task("late", NSEC_PER_MSEC), other = open_task("other", NSEC_PER_MSEC),
	    timely = open_task("timely", 3600 * NSEC_PER_SEC);

	for (uint64_t job = 1; job <= 5; job++) {
		run_job(late, job);
		run_job(timely, job);
	}
	run_job(other, 9);
	if (nsec_now() - began < 10 * NSEC_PER_SEC) {
		assert_int_equal(harness_said(&harness, "missed its deadline by"), 2);
	}
	assert_int_equal(harness_said(&harness, "'late'): job 1 missed its deadline by"), 1);
	assert_int_equal(harness_said(&harness, "'other'): job 9 missed its deadline by"), 1);
	close(late);
	close(other);
	close(timely);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(misses_are_logged_once_in_a_while, start, clean),
	};

	return cmocka_run_group_tests_name("daemon-misses", tests, NULL, NULL);
}
