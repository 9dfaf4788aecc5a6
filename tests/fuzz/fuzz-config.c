/*
 * fuzz-config.c: any bytes are a configuration within its bounds, or refused with a message.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void warn(const char *why) {
	if (!*why) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct settings s;
	char why[512] = "";

	settings_init(&s);
	if (config_read(&s, "input", (const char *)bytes, size, warn, why, sizeof(why)) < 0) {
		if (!*why) {
			abort();
		}
		return 0;
	}
	if (!s.policy || s.n_gpus > SCHED_GPUS_MAX || s.drain == 0) {
		abort();
	}
	return 0;
}
