/*
 * meter.c: see meter.h.
 */
#include "tests/gpu/meter.h"

#include <dlfcn.h>

#include "tests/apps/common.h"

/* The counter moves every 100 ms on an H200; who waits ten times longer waits for nothing. */
#define EDGE_NS_MAX 1000000000u

static void *nvml_device;
static int (*nvml_energy)(void *device, unsigned long long *ret_mj);

static bool load(void) {
	int (*init)(void);
	int (*handle)(unsigned index, void **ret);
	void *lib;

	if (nvml_device) {
		return true;
	}
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!lib) {
		return false;
	}
	init = (int (*)(void))dlsym(lib, "nvmlInit_v2");
	handle = (int (*)(unsigned, void **))dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
	nvml_energy = (int (*)(void *, unsigned long long *))dlsym(
		lib, "nvmlDeviceGetTotalEnergyConsumption");
	return init && handle && nvml_energy && init() == 0 && handle(0, &nvml_device) == 0;
}

bool meter_read(uint64_t *ret_ns, uint64_t *ret_mj) {
	unsigned long long first, now;
	uint64_t end;

	if (!load() || nvml_energy(nvml_device, &first) != 0) {
		return false;
	}
	end = app_now_ns() + EDGE_NS_MAX;
	do {
		if (nvml_energy(nvml_device, &now) != 0) {
			return false;
		}
	} while (now == first && app_now_ns() < end);
	*ret_ns = app_now_ns();
	*ret_mj = now;
	return true;
}

bool meter_begin(struct meter_span *span) {
	return meter_read(&span->ns, &span->mj);
}

double meter_end(const struct meter_span *span) {
	uint64_t ns, mj;

	if (!meter_read(&ns, &mj) || ns <= span->ns) {
		return 0;
	}
	return (double)(mj - span->mj) * 1e6 / (double)(ns - span->ns);
}
