/*
 * nvml.c: the simulated libnvidia-ml.so.1: inventory, power and energy from simgpud's state.
 *
 * The few types that are needed are declared here: NVML's header is not part of the CUDA toolkit.
 * Functions, structures and values are those of NVML's API reference.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/client.h"
#include "tests/simgpu/place.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef const struct wire_gpu *nvmlDevice_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct {
	unsigned int gpu, memory; /* percent */
} nvmlUtilization_t;

typedef enum {
	NVML_TEMPERATURE_GPU,
} nvmlTemperatureSensors_t;

typedef enum {
	NVML_CLOCK_GRAPHICS,
	NVML_CLOCK_SM,
	NVML_CLOCK_MEM,
	NVML_CLOCK_VIDEO,
} nvmlClockType_t;

EXPORT nvmlReturn_t nvmlInit_v2(void);
EXPORT nvmlReturn_t nvmlShutdown(void);
EXPORT const char *nvmlErrorString(nvmlReturn_t result);
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *numCores);
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power);
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit);
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
							unsigned long long *energy);
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
						  nvmlUtilization_t *utilization);
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
					      unsigned int *clock);
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
					     unsigned int *celsius);
EXPORT int simgpuDeviceSharing(unsigned int index);

static unsigned nvml_users; /* nvmlInit calls without their nvmlShutdown; atomic */

EXPORT nvmlReturn_t nvmlInit_v2(void) {
	int r = client_connect();

	if (r < 0) {
		return r == -ECHILD ? NVML_ERROR_UNKNOWN : NVML_ERROR_DRIVER_NOT_LOADED;
	}
	__atomic_add_fetch(&nvml_users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

/* The connection stays: a GPU that nobody watches is simulated no further, and forgets its energy.
 */
EXPORT nvmlReturn_t nvmlShutdown(void) {
	unsigned n = __atomic_load_n(&nvml_users, __ATOMIC_RELAXED);

	if (n == 0) {
		return NVML_ERROR_UNINITIALIZED;
	}
	__atomic_sub_fetch(&nvml_users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT:
		return "Timeout";
	case NVML_ERROR_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_ERROR_UNKNOWN:
		break;
	}
	return "Unknown Error";
}

static nvmlReturn_t nvml_ready(void) {
	return __atomic_load_n(&nvml_users, __ATOMIC_RELAXED) > 0 && client_state() == 0
		       ? NVML_SUCCESS
		       : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t nvml_check(nvmlDevice_t device, const void *out) {
	const struct wire_hello_reply *all = client_gpus();
	nvmlReturn_t r = nvml_ready();

	if (r != NVML_SUCCESS) {
		return r;
	}
	return out && device >= all->gpus && device < all->gpus + all->n_gpus
		       ? NVML_SUCCESS
		       : NVML_ERROR_INVALID_ARGUMENT;
}

/* For tests: $SIMGPU_DIR/nvml-fault holds "no-power" (nor utilization and temperature), "lost", or "waits": GPUs can't be counted
 * yet. */
static nvmlReturn_t nvml_fault(void) {
	char dir[256], path[300], text[16] = "";
	FILE *f;

	if (place_dir(dir, sizeof(dir)) < 0 ||
	    place_file(path, sizeof(path), dir, "nvml-fault") < 0 || !(f = fopen(path, "re"))) {
		return NVML_SUCCESS;
	}
	if (!fgets(text, sizeof(text), f)) {
		text[0] = '\0';
	}
	fclose(f);
	return strcmp(text, "lost") == 0       ? NVML_ERROR_GPU_IS_LOST
	       : strcmp(text, "waits") == 0    ? NVML_ERROR_TIMEOUT
	       : strcmp(text, "no-power") == 0 ? NVML_ERROR_NOT_SUPPORTED
					       : NVML_SUCCESS;
}

static nvmlReturn_t nvml_state(nvmlDevice_t device, struct wire_gpu_state_reply *ret) {
	struct wire_object q = {.h = {.type = WIRE_GPU_STATE},
				.object = (uint32_t)(device - client_gpus()->gpus)};
	struct client_message out = {.head = &q, .head_size = sizeof(q)};
	struct client_message in = {.head = ret, .head_size = sizeof(*ret)};

	return client_call(&out, -1, &in) < 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
	nvmlReturn_t r = nvml_ready();

	if (r != NVML_SUCCESS || !deviceCount) {
		return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
	}
	while (nvml_fault() == NVML_ERROR_TIMEOUT) {
		usleep(1000);
	}
	*deviceCount = client_gpus()->n_gpus;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	nvmlReturn_t r = nvml_ready();

	if (r != NVML_SUCCESS || !device || index >= client_gpus()->n_gpus) {
		return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
	}
	*device = &client_gpus()->gpus[index];
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
	nvmlReturn_t r = nvml_check(device, uuid);
	const uint8_t *b;
	int n;

	if (r != NVML_SUCCESS) {
		return r;
	}
	b = device->uuid;
	n = snprintf(uuid, length,
		     "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		     b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
		     b[12], b[13], b[14], b[15]);
	return n >= (int)length ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
	nvmlReturn_t r = nvml_check(device, name);

	if (r != NVML_SUCCESS) {
		return r;
	}
	return snprintf(name, length, "%s", device->name) >= (int)length
		       ? NVML_ERROR_INSUFFICIENT_SIZE
		       : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
						       int *minor) {
	nvmlReturn_t r = nvml_check(device, major);

	if (r != NVML_SUCCESS || !minor) {
		return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
	}
	*major = (int)device->cc_major;
	*minor = (int)device->cc_minor;
	return NVML_SUCCESS;
}

/* One bus for each GPU. */
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	nvmlReturn_t r = nvml_check(device, pci);

	if (r == NVML_SUCCESS) {
		*pci = (nvmlPciInfo_t){.bus = (unsigned)(device - client_gpus()->gpus) + 1};
		snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:00.0", pci->domain, pci->bus);
		snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:00.0", pci->domain,
			 pci->bus);
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *numCores) {
	nvmlReturn_t r = nvml_check(device, numCores);

	if (r == NVML_SUCCESS && device->integrated) {
		return NVML_ERROR_NOT_SUPPORTED;
	}
	if (r == NVML_SUCCESS) {
		*numCores = device->n_sms * device->cores_per_sm;
	}
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	struct wire_gpu_state_reply state;
	nvmlReturn_t r = nvml_check(device, memory);

	if (r == NVML_SUCCESS) {
		r = nvml_state(device, &state);
	}
	if (r == NVML_SUCCESS) {
		memory->total = device->memory_bytes;
		memory->used = state.memory_used_bytes;
		memory->free = memory->total - memory->used;
	}
	return r;
}

/* Milliwatts. */
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power) {
	struct wire_gpu_state_reply state;
	nvmlReturn_t r = nvml_check(device, power);

	if (r == NVML_SUCCESS) {
		r = nvml_fault();
	}
	if (r == NVML_SUCCESS) {
		r = nvml_state(device, &state);
	}
	if (r == NVML_SUCCESS) {
		*power = (unsigned)state.power_mw;
	}
	return r;
}

/* Milliwatts. */
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) {
	nvmlReturn_t r = nvml_check(device, limit);

	if (r == NVML_SUCCESS) {
		*limit = (unsigned)device->power_limit_mw;
	}
	return r;
}

/* Millijoules since simgpud began. */
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
							unsigned long long *energy) {
	struct wire_gpu_state_reply state;
	nvmlReturn_t r = nvml_check(device, energy);

	if (r == NVML_SUCCESS) {
		r = nvml_fault();
	}
	if (r == NVML_SUCCESS) {
		r = nvml_state(device, &state);
	}
	if (r == NVML_SUCCESS) {
		*energy = state.energy_mj;
	}
	return r;
}

/* How busy the memory is, is not simulated: told as 0. */
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
						  nvmlUtilization_t *utilization) {
	struct wire_gpu_state_reply state;
	nvmlReturn_t r = nvml_check(device, utilization);

	if (r == NVML_SUCCESS) {
		r = nvml_fault();
	}
	if (r == NVML_SUCCESS) {
		r = nvml_state(device, &state);
	}
	if (r == NVML_SUCCESS) {
		*utilization = (nvmlUtilization_t){.gpu = state.utilization};
	}
	return r;
}

/* A GPU in a room of 25 degrees that warms by 55 at its power limit; it follows its power at once. */
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
					     unsigned int *celsius) {
	struct wire_gpu_state_reply state;
	nvmlReturn_t r = nvml_check(device, celsius);

	if (r == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU) {
		r = NVML_ERROR_INVALID_ARGUMENT;
	}
	if (r == NVML_SUCCESS) {
		r = nvml_fault();
	}
	if (r == NVML_SUCCESS) {
		r = nvml_state(device, &state);
	}
	if (r == NVML_SUCCESS) {
		*celsius = 25 + (unsigned)(55 * state.power_mw / device->power_limit_mw);
	}
	return r;
}

/* Megahertz. */
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
					      unsigned int *clock) {
	nvmlReturn_t r = nvml_check(device, clock);

	if (r != NVML_SUCCESS) {
		return r;
	}
	switch (type) {
	case NVML_CLOCK_GRAPHICS:
	case NVML_CLOCK_SM:
		*clock = device->sm_clock_khz / 1000;
		return NVML_SUCCESS;
	case NVML_CLOCK_MEM:
		*clock = device->memory_clock_khz / 1000;
		return NVML_SUCCESS;
	case NVML_CLOCK_VIDEO:
		break;
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Not NVML's: how processes share the GPU. 0: exclusive, 1: as under MPS; -1: no such GPU, or NVML
 * is not initialised. */
EXPORT int simgpuDeviceSharing(unsigned int index) {
	if (nvml_ready() != NVML_SUCCESS || index >= client_gpus()->n_gpus) {
		return -1;
	}
	return (int)client_gpus()->gpus[index].shared;
}
