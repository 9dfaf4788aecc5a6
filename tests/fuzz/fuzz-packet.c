/*
 * fuzz-packet.c: any bytes from a socket give a message that keeps every bound, or a refusal; and
 * proto/wire.c reads them as libprotobuf-c does.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprotobuf-c.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/validate.h"
#include "state.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool holds) {
	if (!holds) {
		abort();
	}
}

/* Return: the bytes of @m, to be freed. */
static uint8_t *pack(const ProtobufCMessage *m, size_t *ret_n) {
	uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(m) + 1);

	require(bytes);
	*ret_n = protobuf_c_message_pack(m, bytes);
	return bytes;
}

/*
 * What is accepted has the values that libprotobuf-c finds. What is refused it refuses as well, or
 * it is none of the bytes that an encoder would write for these values.
 */
static void compare(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size) {
	const struct libprotobuf_c *other = libprotobuf_c();
	ProtobufCMessage *ours = protobuf_c_message_unpack(type, NULL, size, bytes);
	ProtobufCMessage *theirs = other->unpack(type, NULL, size, bytes);
	uint8_t *a, *b;
	size_t n_a, n_b;

	require(theirs || !ours);
	if (!theirs) {
		return;
	}
	a = pack(theirs, &n_a); /* without unknown fields */
	if (!ours) {
		require(n_a != size || memcmp(a, bytes, size) != 0);
		ours = protobuf_c_message_unpack(type, NULL, n_a, a);
		require(ours);
	}
	b = pack(ours, &n_b);
	require(n_a == n_b && memcmp(a, b, n_a) == 0);
	require(other->size(ours) == n_b && other->pack(ours, b) == n_b);
	require(memcmp(a, b, n_a) == 0);
	free(a);
	free(b);
	protobuf_c_message_free_unpacked(ours, NULL);
	other->free(theirs, NULL);
}

/* What passed is packed again: packing reads every field to its end. */
static void try_type(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
		     int (*validate)(const ProtobufCMessage *)) {
	ProtobufCMessage *m = NULL;
	size_t n;

	compare(type, bytes, size);
	if (packet_unpack(type, bytes, size, &m) < 0) {
		return;
	}
	if (validate(m) == 0) {
		free(pack(m, &n));
	}
	packet_free(m);
}

static char why[64];

static int to_daemon(const ProtobufCMessage *m) {
	return validate_to_daemon((const Sbeet__ToDaemon *)m, why, sizeof(why));
}

static int to_shim(const ProtobufCMessage *m) {
	return validate_to_shim((const Sbeet__ToShim *)m, why, sizeof(why));
}

static int request(const ProtobufCMessage *m) {
	return validate_control_request((const Sbeet__Control__Request *)m, why, sizeof(why));
}

static int reply(const ProtobufCMessage *m) {
	return validate_control_reply((const Sbeet__Control__Reply *)m, why, sizeof(why));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	if (size > PROTO_PACKET_MAX) {
		return 0;
	}
	try_type(&sbeet__to_daemon__descriptor, bytes, size, to_daemon);
	try_type(&sbeet__to_shim__descriptor, bytes, size, to_shim);
	try_type(&sbeet__control__request__descriptor, bytes, size, request);
	try_type(&sbeet__control__reply__descriptor, bytes, size, reply);
	compare(&sbeet__state__record__descriptor, bytes, size);
	return 0;
}
