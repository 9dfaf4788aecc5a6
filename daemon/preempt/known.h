/*
 * known.h: keeps what was found out about a GPU under a driver (effect.h), in a file of its own, so
 * that it is found out once.
 */
#pragma once

#include <stdint.h>

#include "daemon/preempt/order.h"
#include "proto/limits.h"

/* Reads what @directory keeps of the GPU under the driver version @driver into @ret's effects.
 * Return: 0; -ENOENT: nothing, or of another driver; -EBADMSG: it makes no sense; or another
 * negative errno. @ret is untouched on failure. */
int known_load(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES],
	       const char *driver, struct order_gpu *ret);

/* Writes @gpu's effects; waits for the disk. Return: 0 or negative errno. */
int known_save(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES],
	       const char *driver, const struct order_gpu *gpu);
