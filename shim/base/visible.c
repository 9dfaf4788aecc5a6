/* visible.c: see visible.h. */
#include "shim/base/visible.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "shim/base/log.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"

static _Atomic bool chosen; /* it is ours */

bool visible_is_set(void) {
	return getenv(VARIABLE) != NULL;
}

void visible_choose(const ProtobufCBinaryData *uuid) {
	const uint8_t *u = uuid->data;
	char text[64];

	if (uuid->len != PROTO_UUID_BYTES || visible_is_set()) {
		return;
	}
	snprintf(text, sizeof(text),
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
	setenv(VARIABLE, text, 0);
	atomic_store(&chosen, true);
	log_line(LOG_LEVEL_INFO, "sbeetd has chosen %s", text);
}

void visible_end(void) {
	if (atomic_exchange(&chosen, false)) {
		unsetenv(VARIABLE);
	}
}
