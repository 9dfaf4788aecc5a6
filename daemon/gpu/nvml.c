/*
 * nvml.c: NVML by dlopen. See nvml.h.
 */
#include "daemon/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/sched.h"

/* NVML's ABI, from its documentation. Results are int, 0 is success; devices are opaque. */
typedef void *nvml_device;

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem_id;
	char bus_id[32];
};

struct nvml_utilization {
	unsigned gpu, memory; /* percent of the time */
};

#define NVML_UUID_BYTES	 96
#define NVML_GPU_IS_LOST 15
#define NVML_TEMPERATURE_GPU 0 /* the sensor on the chip */

/* Name of the function, result of its absence: the ones without which we can't list GPUs. */
#define NVML_FUNCTIONS(X)                                                                          \
	X(init, "nvmlInit_v2", int, (void), true)                                                  \
	X(shutdown, "nvmlShutdown", int, (void), true)                                             \
	X(error_string, "nvmlErrorString", const char *, (int), true)                              \
	X(count, "nvmlDeviceGetCount_v2", int, (unsigned *), true)                                 \
	X(handle, "nvmlDeviceGetHandleByIndex_v2", int, (unsigned, nvml_device *), true)           \
	X(uuid, "nvmlDeviceGetUUID", int, (nvml_device, char *, unsigned), true)                   \
	X(name, "nvmlDeviceGetName", int, (nvml_device, char *, unsigned), true)                   \
	X(capability, "nvmlDeviceGetCudaComputeCapability", int, (nvml_device, int *, int *),      \
	  true)                                                                                    \
	X(cores, "nvmlDeviceGetNumGpuCores", int, (nvml_device, unsigned *), true)                 \
	X(memory, "nvmlDeviceGetMemoryInfo", int, (nvml_device, struct nvml_memory *), true)       \
	X(power, "nvmlDeviceGetPowerUsage", int, (nvml_device, unsigned *), false)                 \
	X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", int, (nvml_device, unsigned *), false)   \
	X(energy, "nvmlDeviceGetTotalEnergyConsumption", int, (nvml_device, unsigned long long *), \
	  false)                                                                                   \
	X(utilization, "nvmlDeviceGetUtilizationRates", int,                                       \
	  (nvml_device, struct nvml_utilization *), false)                                         \
	X(temperature, "nvmlDeviceGetTemperature", int, (nvml_device, int, unsigned *), false)     \
	X(pci, "nvmlDeviceGetPciInfo_v3", int, (nvml_device, struct nvml_pci *), false)            \
	X(driver, "nvmlSystemGetDriverVersion", int, (char *, unsigned), false)                    \
	X(simulated_sharing, "simgpuDeviceSharing", int, (unsigned), false)

struct nvml {
	void *library; /* owned */
	nvml_device devices[SCHED_GPUS_MAX];
#define X(field, symbol, result, arguments, required) result(*field) arguments;
	NVML_FUNCTIONS(X)
#undef X
};

static int load_functions(struct nvml *nvml, char *why, size_t why_size) {
#define X(field, symbol, result, arguments, required)                           \
	*(void **)&nvml->field = dlsym(nvml->library, symbol);                  \
	if (required && !nvml->field) {                                         \
		snprintf(why, why_size, "libnvidia-ml.so.1 has no %s", symbol); \
		return -EIO;                                                    \
	}
	NVML_FUNCTIONS(X)
#undef X
	return 0;
}

int nvml_open(struct nvml **ret, char *why, size_t why_size) {
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	int r;

	if (!nvml) {
		return -ENOMEM;
	}
	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		snprintf(why, why_size, "%s", dlerror());
		free(nvml);
		return -ENOENT;
	}
	r = load_functions(nvml, why, why_size);
	if (r == 0 && (r = nvml->init()) != 0) {
		snprintf(why, why_size, "nvmlInit: %s", nvml->error_string(r));
		r = -EIO;
	}
	if (r < 0) {
		dlclose(nvml->library);
		free(nvml);
		return r;
	}
	*ret = nvml;
	return 0;
}

struct nvml *nvml_close(struct nvml *nvml) {
	if (nvml) {
		nvml->shutdown();
		dlclose(nvml->library);
		free(nvml);
	}
	return NULL;
}

/* "GPU-" and 32 hexadecimal digits with dashes between. */
static int parse_uuid(const char *text, uint8_t uuid[static 16]) {
	size_t n = 0;

	if (strncmp(text, "GPU-", 4) != 0) {
		return -EINVAL;
	}
	for (const char *p = text + 4; *p; p++) {
		const char *digits = "0123456789abcdef", *digit;

		if (*p == '-') {
			continue;
		}
		digit = strchr(digits, *p);
		if (!digit || n == 32) {
			return -EINVAL;
		}
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | (digit - digits));
		n++;
	}
	return n == 32 ? 0 : -EINVAL;
}

/* FP32 cores per SM: NVML counts cores, not SMs. CUDA C++ Programming Guide, compute capabilities.
 */
static unsigned cores_per_sm(int major, int minor) {
	if (major == 7 || (major == 8 && minor == 0)) {
		return 64;
	}
	return 128;
}

/*
 * The groups of SMs in which the driver cuts a GPU for green contexts, as documented with
 * cuDevSmResourceSplitByCount. On Hopper 2 would do, but then no kernel with thread-block clusters
 * runs in a part of the GPU, and cuBLAS has many. Programs tell what their driver says, and get no
 * green context if that is something else.
 */
unsigned nvml_green_step(int major) {
	switch (major) {
	case 0 ... 5:
		return 0;
	case 6:
		return 1;
	case 7:
		return 2;
	case 8:
		return 4;
	default:
		return 8;
	}
}

static int read_gpu(struct nvml *nvml, unsigned index, struct nvml_gpu *ret, nvml_device *device) {
	char uuid[NVML_UUID_BYTES];
	struct nvml_memory memory = {0};
	struct nvml_pci pci = {0};
	struct nvml_gpu gpu = {.simulated_sharing = -1};
	unsigned cores = 0, limit_mw = 0;
	int major = 0, minor = 0;

	if (nvml->handle(index, device) != 0 || nvml->uuid(*device, uuid, sizeof(uuid)) != 0 ||
	    parse_uuid(uuid, gpu.uuid) < 0 || nvml->capability(*device, &major, &minor) != 0 ||
	    nvml->cores(*device, &cores) != 0) {
		return -EIO;
	}
	gpu.n_sms = cores / cores_per_sm(major, minor);
	if (gpu.n_sms == 0 || gpu.n_sms > PROTO_SMS_MAX) {
		return -EIO;
	}
	gpu.green_step = nvml_green_step(major);
	if (nvml->name(*device, gpu.name, sizeof(gpu.name)) != 0) {
		snprintf(gpu.name, sizeof(gpu.name), "unknown");
	}
	gpu.name[sizeof(gpu.name) - 1] = '\0';
	if (nvml->memory(*device, &memory) == 0) {
		gpu.memory_bytes = memory.total;
	}
	if (nvml->pci && nvml->pci(*device, &pci) == 0) {
		snprintf(gpu.pci, sizeof(gpu.pci), "%.31s", pci.bus_id);
	}
	if (nvml->power_limit && nvml->power_limit(*device, &limit_mw) == 0) {
		gpu.power_limit_mw = limit_mw;
	}
	if (nvml->simulated_sharing) {
		gpu.simulated_sharing = nvml->simulated_sharing(index);
	}
	*ret = gpu;
	return 0;
}

void nvml_driver(struct nvml *nvml, char *version, size_t size) {
	if (!nvml->driver || nvml->driver(version, (unsigned)size) != 0) {
		*version = '\0';
	}
}

size_t nvml_list(struct nvml *nvml, struct nvml_gpu *gpus, size_t max, unsigned *ret_left_out) {
	unsigned count = 0;
	size_t n = 0;

	if (nvml->count(&count) != 0) {
		count = 0;
	}
	*ret_left_out = 0;
	for (unsigned i = 0; i < count; i++) {
		if (n < max && n < SCHED_GPUS_MAX &&
		    read_gpu(nvml, i, &gpus[n], &nvml->devices[n]) == 0) {
			nvml_driver(nvml, gpus[n].driver, sizeof(gpus[n].driver));
			n++;
		} else {
			(*ret_left_out)++;
		}
	}
	return n;
}

int nvml_read(struct nvml *nvml, size_t index, struct nvml_reading *ret) {
	nvml_device device = nvml->devices[index];
	struct nvml_reading reading = NVML_READING_NULL;
	struct nvml_utilization utilization;
	struct nvml_memory memory;
	unsigned long long energy_mj;
	unsigned power_mw, temperature;
	int power = 0, energy = 0;

	if (nvml->power && (power = nvml->power(device, &power_mw)) == 0) {
		reading.power_mw = power_mw;
	}
	if (nvml->energy && (energy = nvml->energy(device, &energy_mj)) == 0) {
		reading.energy_mj = energy_mj;
	}
	if (nvml->memory(device, &memory) == 0) {
		reading.memory_used_bytes = memory.used;
	}
	if (nvml->utilization && nvml->utilization(device, &utilization) == 0 &&
	    utilization.gpu <= 100) {
		reading.utilization_percent = (int)utilization.gpu;
	}
	if (nvml->temperature &&
	    nvml->temperature(device, NVML_TEMPERATURE_GPU, &temperature) == 0 &&
	    temperature <= INT_MAX) {
		reading.temperature_celsius = (int)temperature;
	}
	*ret = reading;
	return power == NVML_GPU_IS_LOST || energy == NVML_GPU_IS_LOST ? -ENODEV : 0;
}
