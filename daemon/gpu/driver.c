/* driver.c: see driver.h. */
#include "daemon/gpu/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits.h"

/* CUdevice_attribute, of the driver's stable interface. */
enum {
	ATTRIBUTE_SMS = 16,
	ATTRIBUTE_INTEGRATED = 18,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_SIMGPU = 0x51690, /* of the simulated GPU alone: 0 exclusive, 1 MPS */
};

struct uuid {
	uint8_t bytes[16];
};

#define DRIVER_FUNCTIONS(X)                                     \
	X(init, "cuInit", (unsigned))                           \
	X(version, "cuDriverGetVersion", (int *))               \
	X(count, "cuDeviceGetCount", (int *))                   \
	X(device, "cuDeviceGet", (int *, int))                  \
	X(uuid, "cuDeviceGetUuid", (struct uuid *, int))        \
	X(name, "cuDeviceGetName", (char *, int, int))          \
	X(attribute, "cuDeviceGetAttribute", (int *, int, int)) \
	X(memory, "cuDeviceTotalMem_v2", (size_t *, int))       \
	X(pci, "cuDeviceGetPCIBusId", (char *, int, int))

struct driver {
#define X(name, symbol, arguments) int(*name) arguments;
	DRIVER_FUNCTIONS(X)
#undef X
};

static int load_functions(struct driver *d, char *why, size_t why_size) {
	/* Never closed: it has threads of its own. */
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		snprintf(why, why_size, "%s", dlerror());
		return -ENOENT;
	}
#define X(name, symbol, arguments)                                         \
	*(void **)&d->name = dlsym(library, symbol);                       \
	if (!d->name) {                                                    \
		snprintf(why, why_size, "libcuda.so.1 has no %s", symbol); \
		return -EIO;                                               \
	}
	DRIVER_FUNCTIONS(X)
#undef X
	return 0;
}

static int read_gpu(const struct driver *d, int index, struct nvml_gpu *ret, bool *ret_integrated) {
	struct nvml_gpu gpu = {.simulated_sharing = -1};
	int device, sms = 0, major = 0, integrated = 0, version = 0, sharing = 0;
	struct uuid uuid;
	size_t memory;

	if (d->device(&device, index) != 0 || d->uuid(&uuid, device) != 0 ||
	    d->attribute(&sms, ATTRIBUTE_SMS, device) != 0 || sms < 1 || sms > PROTO_SMS_MAX ||
	    d->attribute(&major, ATTRIBUTE_MAJOR, device) != 0) {
		return -EIO;
	}
	memcpy(gpu.uuid, uuid.bytes, sizeof(gpu.uuid));
	gpu.n_sms = (unsigned)sms;
	gpu.green_step = nvml_green_step(major);
	if (d->name(gpu.name, sizeof(gpu.name), device) != 0) {
		snprintf(gpu.name, sizeof(gpu.name), "unknown");
	}
	gpu.name[sizeof(gpu.name) - 1] = '\0';
	if (d->memory(&memory, device) == 0) {
		gpu.memory_bytes = memory;
	}
	if (d->pci(gpu.pci, sizeof(gpu.pci), device) != 0) {
		gpu.pci[0] = '\0';
	}
	if (d->version(&version) == 0) {
		snprintf(gpu.driver, sizeof(gpu.driver), "CUDA %d.%d", version / 1000,
			 version % 1000 / 10);
	}
	d->attribute(&integrated, ATTRIBUTE_INTEGRATED, device);
	if (d->attribute(&sharing, ATTRIBUTE_SIMGPU, device) == 0) {
		gpu.simulated_sharing = sharing == 1;
	}
	*ret_integrated = integrated != 0;
	*ret = gpu;
	return 0;
}

int driver_list(struct nvml_gpu *gpus, size_t max, bool *ret_integrated, char *why,
		size_t why_size) {
	struct driver d;
	int n = 0, count = 0, r = load_functions(&d, why, why_size);

	if (r < 0) {
		return r;
	}
	r = d.init(0);
	if (r == 0) {
		r = d.count(&count);
	}
	if (r != 0) {
		snprintf(why, why_size, "cuInit: error %d", r);
		return -EIO;
	}
	for (int i = 0; i < count && (size_t)n < max; i++) {
		if (read_gpu(&d, i, &gpus[n], ret_integrated) == 0) {
			n++;
		}
	}
	return n;
}
