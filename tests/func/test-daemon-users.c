/*
 * test-daemon-users.c: what a user takes of sbeetd leaves the others theirs, however many
 * connections and user ids that user has.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness-internal.h"
#include "proto/packet.h"

static struct harness harness;

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

/* ---- questions ---- */

#define ASKING 400

static void ask_for_status(int fd) {
	Sbeet__Control__StatusRequest ask = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
}

/* When the only job was granted. */
static nsec_t granted_at(void) {
	Sbeet__Control__Status *status = status_get();
	nsec_t at;

	assert_int_equal(status->n_jobs, 1);
	at = status->jobs[0]->granted_ns;
	status_free(status);
	return at;
}

/* All connections have asked before the program does, and sbeetd finds all of it at once. */
static void programs_are_served_between_answers(void **state) {
	int asking[ASKING];
	struct shim program;
	unsigned before = 0;
	nsec_t granted;

	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	program = shim_open("program", MASK_WHOLE);
	for (unsigned i = 0; i < ASKING; i++) {
		asking[i] = harness_connect("control.sock");
	}
	harness_settle();
	assert_int_equal(kill(harness.pid, SIGSTOP), 0);
	for (unsigned i = 0; i < ASKING; i++) {
		ask_for_status(asking[i]);
	}
	shim_request(program.fd, 1, 0, MASK_WHOLE);
	assert_int_equal(kill(harness.pid, SIGCONT), 0);
	shim_granted(program.fd, 1);
	granted = granted_at();
	for (unsigned i = 0; i < ASKING; i++) {
		Sbeet__Control__Reply *reply = control_end(asking[i]);

		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_STATUS);
		before += reply->status->service->now_ns < granted;
		packet_free(&reply->base);
	}
	if (before >= ASKING / 2) {
		fail_msg("%u of %d answers came before the program's grant", before, ASKING);
	}
	shim_close(&program);
	harness_finish(&harness);
}

#define CASE(f) cmocka_unit_test_teardown(f, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(programs_are_served_between_answers),
	};

	return cmocka_run_group_tests_name("daemon-users", tests, NULL, NULL);
}
