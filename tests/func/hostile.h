/*
 * hostile.h: packets as a hostile client may send them: messages of either socket with arbitrary
 * values, and such messages with bytes changed.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

struct hostile {
	uint64_t random; /* the state of the generator */
	bool careful;	 /* most values are such as a real client may send */
	uint8_t packet[PROTO_PACKET_MAX + 2048];
	size_t n; /* bytes of the packet; may be more than sbeetd takes */
};

/* A value below @n, which is above 0. */
uint64_t hostile_below(struct hostile *h, uint64_t n);

/* Makes a packet of @type, which has one oneof: most often a message that parses. */
void hostile_make(struct hostile *h, const ProtobufCMessageDescriptor *type);

/* Changes, adds and takes away bytes of the packet. */
void hostile_break(struct hostile *h);
