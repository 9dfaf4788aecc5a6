/*
 * fuzz-packet.c: any bytes from a socket give a message that keeps every bound, or a refusal.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What passed is packed again: packing reads every field to its end. */
static void try_type(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
		     int (*validate)(const ProtobufCMessage *)) {
	ProtobufCMessage *m = NULL;
	uint8_t *again;

	if (packet_unpack(type, bytes, size, &m) < 0) {
		return;
	}
	if (validate(m) == 0) {
		again = malloc(protobuf_c_message_get_packed_size(m) + 1);
		if (again) {
			protobuf_c_message_pack(m, again);
			free(again);
		}
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
	return 0;
}
