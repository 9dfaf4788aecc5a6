/* listing.c: see listing.h. */
#include "daemon/gpu/listing.h"

#include <stdio.h>
#include <string.h>

#include "daemon/gpu/driver.h"

/* @why goes on with the driver's reason. */
static int list_without_nvml(struct gpu_listing *l, char *why, size_t why_size) {
	size_t used = strlen(why);
	char reason[128] = "";
	int n = driver_list(l->gpus, SCHED_GPUS_MAX, &l->integrated, reason, sizeof(reason));

	if (n < 0) {
		snprintf(why + used, why_size - used, "%s%s", used ? "; " : "", reason);
		return n;
	}
	l->n = (size_t)n;
	l->n_left_out = 0;
	l->nvml = nvml_close(l->nvml);
	return 0;
}

int gpu_list(struct gpu_listing *ret, char *why, size_t why_size) {
	struct gpu_listing l = {.nvml = NULL};
	int r;

	*why = '\0';
	r = nvml_open(&l.nvml, why, why_size);
	if (r == 0) {
		l.n = nvml_list(l.nvml, l.gpus, SCHED_GPUS_MAX, &l.n_left_out);
	}
	if ((r < 0 || l.n == 0) && list_without_nvml(&l, why, why_size) == 0) {
		r = 0;
	}
	if (r == 0) {
		*ret = l;
	}
	return r;
}
