/*
 * test-daemon.c: a real sbeetd with scripted clients: what it grants, to whom, and what becomes of
 * those who die, cancel or misbehave.
 */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

static const char *const mps[] = {"--gpus", "80,40", "--sharing", "mps", NULL};
static const char *const fcfs[] = {"--gpus", "80", "--policy", "fcfs", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* Every test ends with a daemon that still works and exits by itself. */
static void finish(void) {
	struct shim s = shim_open("last", MASK_ALL);

	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void assert_sms(const struct grant *g, const char *expected) {
	char text[SMSET_TEXT_MAX];

	smset_print(&g->sms, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void daemon_grants_whole_gpu_under_fcfs(void **state) {
	struct shim a, b;
	struct grant g;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	assert_sms(&g, "0-79");
	assert_int_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	assert_int_equal(g.gpu_sms, 80);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	assert_true(shim_granted(b.fd, 1).sequence > g.sequence);
	shim_done(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	finish();
}

static void daemon_runs_two_processes_side_by_side_under_mps(void **state) {
	struct shim a, b;
	struct grant ga, gb;

	harness_start(&harness, mps);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	assert_true(a.session != b.session);
	shim_request(a.fd, 1, 0, MASK_ALL);
	ga = shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	gb = shim_granted(b.fd, 1);
	assert_sms(&ga, "0-39");
	assert_sms(&gb, "40-79");
	assert_int_equal(ga.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	assert_int_equal(gb.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	/* A third one waits, on this GPU; the other one is free. */
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_request(b.fd, 3, 1, MASK_ALL);
	ga = shim_granted(b.fd, 3);
	assert_sms(&ga, "0-19");
	shim_done(a.fd, 1);
	ga = shim_granted(b.fd, 2);
	assert_sms(&ga, "0-39");
	shim_close(&a);
	shim_close(&b);
	finish();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(daemon_grants_whole_gpu_under_fcfs, clean),
		cmocka_unit_test_teardown(daemon_runs_two_processes_side_by_side_under_mps, clean),
	};

	return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
