/*
 * harness-control.c: what sbeetctl asks. See harness.h.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness-internal.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "proto/validate.h"

/* The question's connection is accepted in one turn of the loop and read in a later one; what was
 * there before is handled by then. */
void harness_settle(void) {
	status_free(status_get());
}

/* A status and the packets that it came in, which hold what it points to. */
struct gathered {
	Sbeet__Control__Status status; /* first: see status_free() */
	ProtobufCMessage **packets;
	size_t n_packets;
};

/* Adds the @n pointers @from. */
static void add_all(void ***to, size_t *n_to, void *const *from, size_t n) {
	if (n == 0) {
		return;
	}
	*to = realloc(*to, (*n_to + n) * sizeof(void *));
	assert_non_null(*to);
	memcpy(*to + *n_to, from, n * sizeof(void *));
	*n_to += n;
}

/* Owns @packet from now on. */
static void gather(struct gathered *g, ProtobufCMessage *packet) {
	const Sbeet__Control__Status *from = ((Sbeet__Control__Reply *)packet)->status;
	Sbeet__Control__Status *to = &g->status;

	add_all((void ***)&g->packets, &g->n_packets, (void *const[]){packet}, 1);
	if (from->service) {
		assert_null(to->service);
		to->service = from->service;
	}
	if (from->mps) {
		assert_null(to->mps);
		to->mps = from->mps;
	}
	add_all((void ***)&to->gpus, &to->n_gpus, (void *const *)from->gpus, from->n_gpus);
	add_all((void ***)&to->sessions, &to->n_sessions, (void *const *)from->sessions,
		from->n_sessions);
	add_all((void ***)&to->jobs, &to->n_jobs, (void *const *)from->jobs, from->n_jobs);
}

int control_begin(Sbeet__Control__Request *request) {
	int fd = harness_connect("control.sock");

	assert_int_equal(packet_send(fd, &request->base, -1), 0);
	return fd;
}

Sbeet__Control__Reply *control_ask(Sbeet__Control__Request *request) {
	return control_end(control_begin(request));
}

void control_do(Sbeet__Control__Request *request) {
	Sbeet__Control__Reply *reply = control_ask(request);

	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_DONE);
	packet_free(&reply->base);
}

Sbeet__Control__Reply *control_end(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *m = NULL;
	char why[256];
	int n;

	harness_wait_readable(fd);
	n = packet_receive(fd, buffer, NULL);
	assert_true(n > 0);
	assert_int_equal(packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			 0);
	assert_int_equal(validate_control_reply((Sbeet__Control__Reply *)m, why, sizeof(why)), 0);
	close(fd);
	return (Sbeet__Control__Reply *)m;
}

void policy_set(const char *name, Sbeet__ErrorCode error) {
	Sbeet__Control__PolicyRequest policy = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	policy.name = (char *)(uintptr_t)name;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &policy;
	reply = control_ask(&request);
	if (error == SBEET__ERROR_CODE__ERROR_CODE_NONE) {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_POLICY);
		assert_string_equal(reply->policy->name, name);
	} else {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
		assert_int_equal(reply->error->code, error);
	}
	packet_free(&reply->base);
}

Sbeet__Control__Status *status_get(void) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	Sbeet__Control__StatusRequest ask = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct gathered *g = calloc(1, sizeof(*g));
	int fd = harness_connect("control.sock");
	bool last = false;

	assert_non_null(g);
	sbeet__control__status__init(&g->status);
	request.id = 7;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
	while (!last) {
		Sbeet__Control__Reply *reply;
		ProtobufCMessage *m = NULL;
		char why[256];
		int n;

		harness_wait_readable(fd);
		n = packet_receive(fd, buffer, NULL);
		assert_true(n > 0);
		assert_int_equal(
			packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			0);
		reply = (Sbeet__Control__Reply *)m;
		assert_int_equal(validate_control_reply(reply, why, sizeof(why)), 0);
		assert_int_equal(reply->id, 7);
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_STATUS);
		last = reply->last;
		gather(g, m);
	}
	close(fd);
	assert_non_null(g->status.service);
	return &g->status;
}

void status_free(Sbeet__Control__Status *status) {
	struct gathered *g = (struct gathered *)status;

	for (size_t i = 0; i < g->n_packets; i++) {
		packet_free(g->packets[i]);
	}
	free(g->packets);
	free(status->gpus);
	free(status->sessions);
	free(status->jobs);
	free(g);
}

void status_until(bool (*holds)(const Sbeet__Control__Status *status, void *data), void *data) {
	nsec_t hang = nsec_now() + HARNESS_HANG_MS * NSEC_PER_MSEC;
	bool ok;

	do {
		Sbeet__Control__Status *status = status_get();

		assert_true(nsec_now() < hang);
		ok = holds(status, data);
		status_free(status);
		if (!ok) {
			usleep(1000); /* between two looks, not in place of one */
		}
	} while (!ok);
}
