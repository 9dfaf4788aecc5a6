/*
 * declare.c: see declare.h.
 */
#include "shim/declare.h"

#include <stdio.h>
#include <string.h>

#include "proto/enforcement.h"
#include "proto/limits.h"
#include "shim/base/log.h"
#include "shim/enforce/green.h"
#include "shim/greet.h"
#include "shim/terms.h"

static uint8_t declared[PROTO_KERNELS_MAX / 8]; /* by number */

/* What the kernel's launches can keep. @ret_refusal: why not more; NULL: a twin of it can be
 * confined. */
static uint32_t find_mask(const struct kernel *k, const char **ret_refusal) {
	const char *whole = kernel_needs_whole(k);
	uint32_t mask = ENFORCEMENT_BIT(WHOLE);

	*ret_refusal = whole ? whole : kernel_refusal(k);
	if (!*ret_refusal) {
		mask |= ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN);
	}
	/* Places are also active where terms may come that have no parts. */
	if (!whole && greet_daemon_cuts() && green_possible()) {
		mask |= ENFORCEMENT_BIT(GREEN);
	}
	return mask;
}

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
	def.id = id;
	def.name = (char *)kernel_name(k);
	def.enforcement_mask = find_mask(k, &refusal);
	snprintf(why, sizeof(why), "%s", refusal ? refusal : "");
	def.refusal = why;
	def.dependent = kernel_waits_first(k);
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &def;
	if (send(&m) < 0) {
		return 0;
	}
	declared[id / 8] |= (uint8_t)(1u << id % 8);
	if (refusal && def.enforcement_mask == ENFORCEMENT_BIT(WHOLE) && !terms_steer_any()) {
		log_line(LOG_LEVEL_INFO,
			 "Kernel '%s' can't be confined to SMs, its jobs wait for a whole GPU: %s",
			 kernel_name(k), refusal);
	}
	return id;
}

void declare_forget(void) {
	memset(declared, 0, sizeof(declared));
}
