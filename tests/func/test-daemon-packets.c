/*
 * test-daemon-packets.c: packets that no shim sends: none ends sbeetd or disturbs another program.
 */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"

static struct harness harness;

/* One process plays several here: those that it hangs up are not to wait for its death. */
#define NO_DRAIN "--drain", "1ms"

static const char *const mps[] = {"--gpus", "80,40", "--sharing", "mps", NO_DRAIN, NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static bool n_jobs_is(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == *(size_t *)data;
}

/* A witness that must notice nothing. */
static struct shim start_with_witness(void) {
	struct shim witness;

	harness_start(&harness, mps);
	witness = shim_open("witness", MASK_ALL);
	shim_request(witness.fd, 1, 0, MASK_ALL);
	shim_granted(witness.fd, 1);
	return witness;
}

static void finish_with_witness(struct shim *witness, uint64_t n_errors) {
	Sbeet__Control__Status *status = status_get();

	assert_int_equal(status->service->protocol_errors, n_errors);
	assert_int_equal(status->n_sessions, 1);
	assert_int_equal(status->n_jobs, 1);
	status_free(status);
	shim_done(witness->fd, 1);
	shim_request(witness->fd, 2, 1, MASK_ALL);
	shim_granted(witness->fd, 2);
	shim_close(witness);
	harness_finish(&harness);
}

static void daemon_refuses_packets_cut_short(void **state) {
	struct shim witness = start_with_witness();
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char program[] = "cut";
	uint8_t bytes[64];
	size_t n;

	hello.version = PROTO_VERSION;
	hello.program = program;
	hello.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	n = protobuf_c_message_pack(&m.base, bytes);
	for (size_t cut = 1; cut < n; cut++) {
		int fd = shim_connect();

		assert_int_equal(send(fd, bytes, cut, 0), cut);
		shim_error(fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
		shim_closed(fd);
		close(fd);
	}
	finish_with_witness(&witness, n - 1);
}

static void daemon_refuses_oversized_packets(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("large", MASK_ALL);
	char *bytes = calloc(1, PROTO_PACKET_MAX + 1);

	assert_non_null(bytes);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	assert_int_equal(send(s.fd, bytes, PROTO_PACKET_MAX + 1, 0), PROTO_PACKET_MAX + 1);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(s.fd);
	shim_close(&s);
	free(bytes);
	status_until(n_jobs_is, &(size_t){1}); /* it may still have run, until --drain */
	finish_with_witness(&witness, 1);
}

static void daemon_answers_unknown_messages_and_goes_on(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("newer", MASK_ALL);
	static const uint8_t unknown[] = {0xd0, 0x05, 1}; /* field 90 = 1 */

	assert_int_equal(send(s.fd, unknown, sizeof(unknown), 0), sizeof(unknown));
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN);
	shim_request(s.fd, 1, 1, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

static void daemon_refuses_messages_in_the_wrong_state(void **state) {
	struct shim witness = start_with_witness(), s;
	int fd = shim_connect();

	shim_request(fd, 1, 0, MASK_ALL); /* before hello */
	shim_error(fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(fd);
	close(fd);
	s = shim_open("twice", MASK_ALL);
	shim_hello(s.fd, "twice", NULL, MASK_ALL);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	s = shim_open("done", MASK_ALL);
	shim_done(s.fd, 1); /* no such job */
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	s = shim_open("early", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_WHOLE); /* waits for the witness */
	shim_done(s.fd, 1);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	finish_with_witness(&witness, 4);
}

static void daemon_refuses_another_protocol_version(void **state) {
	static const uint32_t versions[] = {PROTO_VERSION - 1, PROTO_VERSION + 1, UINT32_MAX};
	struct shim witness = start_with_witness();
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	char expected[64];

	hello.enforcement_mask = MASK_ALL;
	hello.shim_version = (char[]){"9.8.7"};
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	for (size_t i = 0; i < 3; i++) {
		int fd = shim_connect();

		hello.version = versions[i];
		shim_send(fd, &m);
		answer = shim_receive(fd);
		assert_non_null(answer);
		assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_ERROR);
		assert_int_equal(answer->error->code, SBEET__ERROR_CODE__ERROR_CODE_VERSION);
		snprintf(expected, sizeof(expected), "libsbeet.so 9.8.7 speaks protocol %u,",
			 versions[i]);
		assert_non_null(strstr(answer->error->text, expected));
		assert_non_null(strstr(answer->error->text, "install the same version of both"));
		packet_free(&answer->base);
		shim_closed(fd);
		close(fd);
	}
	finish_with_witness(&witness, 3);
}

static void daemon_says_which_request_it_cannot_serve(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("s", MASK_ALL);

	shim_request(s.fd, 1, 7, MASK_ALL);
	shim_error(s.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	shim_request(s.fd, 2, 0, MASK_ALL);
	shim_granted(s.fd, 2);
	shim_request(s.fd, 2, 0, MASK_ALL);
	shim_error(s.fd, 2, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE);
	for (uint64_t job = 3; job < 3 + PROTO_JOBS_PER_SESSION - 1; job++) {
		shim_request(s.fd, job, 0, MASK_ALL);
	}
	shim_request(s.fd, 1000, 0, MASK_ALL);
	shim_error(s.fd, 1000, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
	shim_done(s.fd, 2);
	shim_granted(s.fd, 3);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

static void daemon_counts_kernels_once(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("k", MASK_ALL);
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Control__Status *status;

	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	for (uint32_t id = PROTO_KERNELS_MAX; id > 0; id /= 2) {
		kernel.id = id;
		kernel.enforcement_mask = id % 2 ? MASK_WHOLE : MASK_ALL;
		shim_send(s.fd, &m);
	}
	kernel.id = 1024;
	shim_send(s.fd, &m);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE);
	status = status_get();
	assert_int_equal(status->sessions[1]->kernels, 17);
	assert_int_equal(status->sessions[1]->kernels_confinable, 16);
	status_free(status);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

/* Asks and asks, reads nothing, until it is thrown out. */
static void daemon_disconnects_a_slow_reader(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("slow", MASK_ALL);
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {99};
	int r = 0;

	request.job = 1;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.enforcement_mask = MASK_ALL;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	for (int i = 0; i < 100000 && r == 0; i++) {
		r = packet_send(s.fd, &m.base, -1);
	}
	assert_true(r == -EPIPE || r == -ECONNRESET);
	shim_close(&s);
	finish_with_witness(&witness, 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_refuses_packets_cut_short),
		CASE(daemon_refuses_oversized_packets),
		CASE(daemon_answers_unknown_messages_and_goes_on),
		CASE(daemon_refuses_messages_in_the_wrong_state),
		CASE(daemon_refuses_another_protocol_version),
		CASE(daemon_says_which_request_it_cannot_serve),
		CASE(daemon_counts_kernels_once),
		CASE(daemon_disconnects_a_slow_reader),
	};

	return cmocka_run_group_tests_name("daemon-packets", tests, NULL, NULL);
}
