/*
 * test-daemon-hold.c: programs that hold SMs for longer than --max-hold, in a real sbeetd. See
 * daemon/session/hold.h for what may become of them, and what may not.
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/packet.h"

static struct harness harness;

static int setup(void **state) {
	harness_start(&harness, (const char *[]){"--gpus", "8,8", "--policy", "fcfs", "--max-hold",
						 "20ms", NULL});
	return 0;
}

static int teardown(void **state) {
	assert_int_equal(harness_stop(&harness, 15), 0);
	harness_clean(&harness);
	memset(&harness, 0, sizeof(harness));
	return 0;
}

/* A program whose library answers pings, or not. */
static int open_program(bool pings) {
	static const char *const features[] = {PROTO_FEATURE_PING};

	return shim_open_with("app", NULL, features, pings, MASK_ALL).fd;
}

static void close_program(int fd) {
	struct shim s = {.fd = fd};

	shim_close(&s);
}

static void expect_revoke(int fd, uint64_t job) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	assert_int_equal(m->revoke->job, job);
	packet_free(&m->base);
}

static void answer_ping(int fd) {
	Sbeet__ToShim *m = shim_receive(fd);
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon answer = SBEET__TO_DAEMON__INIT;

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_PING);
	pong.number = m->ping->number;
	answer.body_case = SBEET__TO_DAEMON__BODY_PONG;
	answer.pong = &pong;
	shim_send(fd, &answer);
	packet_free(&m->base);
}

static bool is_preempted(const Sbeet__Control__Status *status, void *data) {
	for (size_t i = 0; i < status->n_jobs; i++) {
		if (strcmp(status->jobs[i]->state, "preempted") == 0) {
			return status->jobs[i]->sms.len > 0; /* it keeps its SMs till it ends */
		}
	}
	return false;
}

/* It answers, again and again, so it may finish, however long it takes. */
static void a_long_job_is_revoked_and_may_finish(void **state) {
	int a = open_program(true), b = open_program(true);

	shim_request(a, 1, 0, MASK_ALL);
	shim_granted(a, 1);
	shim_request(b, 1, 0, MASK_ALL);
	expect_revoke(a, 1);
	for (int i = 0; i < 20; i++) {
		answer_ping(a);
	}
	status_until(is_preempted, NULL);
	shim_done(a, 1);
	shim_granted(b, 1);
	close_program(a);
	close_program(b);
}

/* Many times the limit, by the pings that the other GPU's program gets meanwhile. */
static void nobody_is_bothered_while_nobody_waits(void **state) {
	int a = open_program(true), b = open_program(true), c = open_program(true);

	shim_request(a, 1, 1, MASK_ALL);
	shim_granted(a, 1);
	shim_request(b, 1, 0, MASK_ALL);
	shim_granted(b, 1);
	shim_request(c, 1, 0, MASK_ALL); /* waits for GPU 0 only */
	expect_revoke(b, 1);
	for (int i = 0; i < 20; i++) {
		answer_ping(b);
	}
	shim_expect_silence(a);
	close_program(a);
	close_program(b);
	close_program(c);
}

static void who_does_not_answer_loses_its_session(void **state) {
	int a = open_program(true), b = open_program(true);
	Sbeet__ToShim *m;

	shim_request(a, 1, 0, MASK_ALL);
	shim_granted(a, 1);
	shim_request(b, 1, 0, MASK_ALL);
	expect_revoke(a, 1);
	m = shim_receive(a);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_PING);
	packet_free(&m->base);
	m = shim_receive(a);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GOODBYE);
	packet_free(&m->base);
	shim_closed(a);
	shim_granted(b, 1);
	close_program(b);
}

/* An older library can't answer: its silence says nothing. */
static void who_cannot_answer_is_never_judged(void **state) {
	int a = open_program(false), b = open_program(true), c = open_program(true);

	shim_request(a, 1, 0, MASK_ALL);
	shim_granted(a, 1);
	shim_request(b, 1, 1, MASK_ALL);
	shim_granted(b, 1);
	shim_request(c, 1, 0, MASK_ALL);
	shim_request(c, 2, 1, MASK_ALL);
	expect_revoke(a, 1);
	expect_revoke(b, 1);
	for (int i = 0; i < 20; i++) {
		answer_ping(b);
	}
	shim_expect_silence(a);
	shim_done(a, 1);
	shim_granted(c, 1);
	close_program(a);
	close_program(b);
	close_program(c);
}

static void restart_with(const char *config) {
	char path[128];
	FILE *out;

	assert_int_equal(harness_stop(&harness, 15), 0);
	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(config, out) >= 0);
	assert_int_equal(fclose(out), 0);
	setup(NULL);
}

/* The next message of this kind, freed by the caller; Pongs are passed over. */
static Sbeet__ToShim *next_of(int fd, Sbeet__ToShim__BodyCase kind) {
	Sbeet__ToShim *m = shim_receive(fd);

	while (m && m->body_case == SBEET__TO_SHIM__BODY_PONG) {
		packet_free(&m->base);
		m = shim_receive(fd);
	}
	assert_non_null(m);
	assert_int_equal(m->body_case, kind);
	return m;
}

/* It answers at once, but sbeetd does not get to that before it has read what came before. */
static void who_is_read_from_slowly_is_not_judged_for_that(void **state) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon question = SBEET__TO_DAEMON__INIT, answer = SBEET__TO_DAEMON__INIT;
	Sbeet__Control__Status *status;
	Sbeet__ToShim *m;
	int a, b;

	restart_with("[users]\nrate = 2\n");
	a = open_program(true);
	b = open_program(true);
	shim_request(a, 1, 0, MASK_ALL);
	packet_free(&next_of(a, SBEET__TO_SHIM__BODY_GRANT)->base);
	shim_request(b, 1, 0, MASK_ALL);
	packet_free(&next_of(a, SBEET__TO_SHIM__BODY_REVOKE)->base);
	m = next_of(a, SBEET__TO_SHIM__BODY_PING);
	question.body_case = SBEET__TO_DAEMON__BODY_PING;
	question.ping = &ping;
	for (int i = 0; i < 16; i++) { /* more than HOLD_ANSWER_MAX of them */
		shim_send(a, &question);
	}
	pong.number = m->ping->number;
	answer.body_case = SBEET__TO_DAEMON__BODY_PONG;
	answer.pong = &pong;
	shim_send(a, &answer);
	packet_free(&m->base);
	shim_done(a, 1);
	packet_free(&next_of(b, SBEET__TO_SHIM__BODY_GRANT)->base);
	status = status_get();
	assert_int_equal(status->n_sessions, 2);
	status_free(status);
	close_program(a);
	close_program(b);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(a_long_job_is_revoked_and_may_finish),
		CASE(nobody_is_bothered_while_nobody_waits),
		CASE(who_does_not_answer_loses_its_session),
		CASE(who_cannot_answer_is_never_judged),
		CASE(who_is_read_from_slowly_is_not_judged_for_that),
	};

	return cmocka_run_group_tests_name("daemon-hold", tests, NULL, NULL);
}
