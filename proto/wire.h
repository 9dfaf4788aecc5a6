/*
 * wire.h: what wire.c offers besides the functions of <protobuf-c/protobuf-c.h>.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/*
 * Writes @m in one pass to the end of @buffer of @size bytes: its last n bytes.
 * Return: n; above @size @m does not fit, and what @buffer holds is undefined.
 */
size_t wire_pack(const ProtobufCMessage *m, void *buffer, size_t size);
