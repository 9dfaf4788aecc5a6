/* power.c: see power.h. */
#include "daemon/core/power.h"

#include <assert.h>

uint64_t power_now_mw(const struct power_gpu *gpu, unsigned busy, uint64_t dynamic_mw) {
	assert(busy <= gpu->n_sms);
	if (busy == 0) {
		return gpu->static_mw;
	}
	return gpu->static_mw + dynamic_mw + (uint64_t)gpu->idle_mw_per_sm * (gpu->n_sms - busy);
}
