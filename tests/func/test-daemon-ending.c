/*
 * test-daemon-ending.c: a real sbeetd makes programs quiet for somebody who is about to end them.
 * See daemon/control/ending.h.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"

#define LONG_NS	 (100ull * 1000000000)
#define SHORT_NS (20ull * 1000000)

static struct harness harness;

static int setup(void **state) {
	harness_start(&harness, (const char *[]){"--gpus", "8", "--policy", "fcfs", NULL});
	return 0;
}

static int teardown(void **state) {
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	harness_clean(&harness);
	memset(&harness, 0, sizeof(harness));
	return 0;
}

/* A connection that lasts. */
static int connect_control(void) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 30ull * 1000000000);
	assert_true(fd >= 0);
	return fd;
}

static void ask(int fd, uint32_t id, uint64_t session, uint64_t drain_ns) {
	Sbeet__Control__SessionKill kill = SBEET__CONTROL__SESSION_KILL__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	kill.session = session;
	kill.terminate = true;
	kill.drain_ns = drain_ns;
	request.id = id;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_SESSION_KILL;
	request.session_kill = &kill;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
}

static Sbeet__Control__Reply *receive(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX + 1];
	ProtobufCMessage *m = NULL;
	int n;

	while ((n = packet_receive(fd, buffer, NULL)) == -EAGAIN) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		assert_true(poll(&p, 1, 60000) > 0);
	}
	assert_true(n > 0);
	assert_int_equal(packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			 0);
	return (Sbeet__Control__Reply *)m;
}

static void expect_done(int fd, uint32_t id, bool running) {
	Sbeet__Control__Reply *reply = receive(fd);

	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_DONE);
	assert_int_equal(reply->id, id);
	assert_int_equal(reply->done->running, running);
	assert_int_equal(reply->done->pid, getpid());
	packet_free(&reply->base);
}

static void expect_error(int fd, uint32_t id, Sbeet__ErrorCode code) {
	Sbeet__Control__Reply *reply = receive(fd);

	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	assert_int_equal(reply->id, id);
	assert_int_equal(reply->error->code, code);
	packet_free(&reply->base);
}

static void expect_revoke(int fd, uint64_t job) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	assert_int_equal(m->revoke->job, job);
	packet_free(&m->base);
}

static void what_runs_may_end_and_nothing_more_starts(void **state) {
	struct shim a = shim_open("a", MASK_ALL), b = shim_open("b", MASK_ALL);
	int control = connect_control();

	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	harness_settle();
	shim_request(b.fd, 1, 0, MASK_ALL); /* behind a's second */
	ask(control, 7, a.session, LONG_NS);
	expect_revoke(a.fd, 1);
	shim_done(a.fd, 1);
	expect_done(control, 7, false);
	shim_granted(b.fd, 1);
	shim_done(b.fd, 1);
	shim_request(a.fd, 3, 0, MASK_ALL);
	shim_expect_silence(a.fd);
	close(control);
	shim_granted(a.fd, 2); /* nobody wants its end any more */
	shim_done(a.fd, 2);
	shim_granted(a.fd, 3);
	shim_close(&a);
	shim_close(&b);
}

static void an_idle_program_is_quiet_at_once(void **state) {
	struct shim a = shim_open("a", MASK_ALL);
	int control = connect_control(), other = connect_control();

	ask(control, 1, a.session, LONG_NS);
	expect_done(control, 1, false);
	ask(other, 1, a.session, LONG_NS);
	expect_error(other, 1, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	ask(other, 2, a.session + 1, LONG_NS);
	expect_error(other, 2, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_expect_silence(a.fd);
	shim_cancel(a.fd, 1); /* as one that nobody withholds */
	shim_expect_silence(a.fd);
	close(other);
	close(control);
	shim_request(a.fd, 2, 0, MASK_ALL);
	shim_granted(a.fd, 2);
	shim_close(&a);
}

static void the_time_ends_and_something_runs(void **state) {
	struct shim a = shim_open("a", MASK_ALL);
	int control = connect_control();

	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	ask(control, 1, a.session, SHORT_NS);
	expect_revoke(a.fd, 1);
	expect_done(control, 1, true);
	shim_done(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	shim_expect_silence(a.fd); /* the signal is still to come */
	close(control);
	shim_granted(a.fd, 2);
	shim_close(&a);
}

static void the_program_ends_by_itself(void **state) {
	struct shim a = shim_open("a", MASK_ALL), b = shim_open("b", MASK_ALL);
	int control = connect_control();

	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_granted(b.fd, 1);
	ask(control, 1, a.session, LONG_NS);
	ask(control, 2, b.session, LONG_NS);
	expect_done(control, 1, false);
	expect_revoke(b.fd, 1);
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_done(b.fd, 1);
	expect_done(control, 2, false);
	shim_close(&b); /* with a job that is withheld */
	shim_close(&a);
	harness_settle();
	close(control);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(what_runs_may_end_and_nothing_more_starts),
		CASE(an_idle_program_is_quiet_at_once),
		CASE(the_time_ends_and_something_runs),
		CASE(the_program_ends_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
