/* visible.c: see visible.h. */
#include "shim/base/visible.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "proto/text.h"
#include "shim/base/log.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"

static _Atomic bool chosen; /* it is ours */

bool visible_is_set(void) {
	return getenv(VARIABLE) != NULL;
}

void visible_choose(const ProtobufCBinaryData *uuid) {
	char text[TEXT_GPU_UUID_BYTES];

	if (uuid->len != PROTO_UUID_BYTES || visible_is_set()) {
		return;
	}
	text_gpu_uuid(uuid->data, text);
	setenv(VARIABLE, text, 0);
	atomic_store(&chosen, true);
	log_line(LOG_LEVEL_INFO, "sbeetd has chosen %s", text);
}

void visible_end(void) {
	if (atomic_exchange(&chosen, false)) {
		unsetenv(VARIABLE);
	}
}
