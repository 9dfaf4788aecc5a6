/*
 * declare.c: see declare.h.
 */
#include "shim/declare.h"

#include <stdio.h>
#include <string.h>

#include "proto/enforcement.h"
#include "proto/limits.h"
#include "shim/base/log.h"
#include "shim/greet.h"
#include "shim/place.h"

static uint8_t declared[PROTO_KERNELS_MAX / 8]; /* by number */

uint32_t declare_kernel(const struct kernel *k, int (*send)(const Sbeet__ToDaemon *message)) {
	uint32_t id = k ? kernel_id(k) : 0;
	Sbeet__KernelDef def = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char why[PROTO_TEXT_MAX];
	const char *refusal;

	if (id == 0 || id >= PROTO_KERNELS_MAX || strlen(kernel_name(k)) > PROTO_KERNEL_NAME_MAX) {
		return 0;
	}
	if (declared[id / 8] & (1u << id % 8)) {
		return id;
	}
	refusal = kernel_refusal(k);
	snprintf(why, sizeof(why), "%s", refusal ? refusal : "");
	def.id = id;
	def.name = (char *)kernel_name(k);
	def.enforcement_mask =
		ENFORCEMENT_BIT(WHOLE) | (refusal ? 0 : ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN));
	if (place_active()) {
		def.enforcement_mask |= ENFORCEMENT_BIT(GREEN);
	}
	def.refusal = why;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &def;
	if (send(&m) < 0) {
		return 0;
	}
	declared[id / 8] |= (uint8_t)(1u << id % 8);
	if (refusal && !place_active()) {
		log_line(LOG_LEVEL_INFO,
			 "Kernel '%s' can't be confined to SMs, its jobs wait for a whole GPU: %s",
			 kernel_name(k), refusal);
	}
	return id;
}

void declare_forget(void) {
	memset(declared, 0, sizeof(declared));
}
