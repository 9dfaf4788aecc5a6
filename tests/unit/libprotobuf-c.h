/*
 * libprotobuf-c.h: the library that proto/wire.c stands in for, for tests to compare the two. It is
 * loaded by hand, because the functions of both have the same names.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

struct libprotobuf_c {
	size_t (*size)(const ProtobufCMessage *m);
	size_t (*pack)(const ProtobufCMessage *m, uint8_t *out);
	ProtobufCMessage *(*unpack)(const ProtobufCMessageDescriptor *type,
				    ProtobufCAllocator *allocator, size_t n, const uint8_t *packet);
	void (*free)(ProtobufCMessage *m, ProtobufCAllocator *allocator);
};

/* Loaded by the first call; exits with a message where that fails. Stays loaded. */
const struct libprotobuf_c *libprotobuf_c(void);
