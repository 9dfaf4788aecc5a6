/*
 * gpu-uuid.c: see gpu-uuid.h.
 */
#include "shim/base/hot.h"
#include "shim/real.h"

#include "shim/gpu-uuid.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "proto/limits.h"
#include "shim/lane.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HOT_DATA static struct {
	_Atomic bool known;
	uint8_t bytes[PROTO_UUID_BYTES]; /* written once, before that */
} gpus[LANE_DEVICES_MAX];

static bool ask_driver(CUdevice device, uint8_t uuid[PROTO_UUID_BYTES]) {
	const struct real *real = real_get();
	__typeof__(real->cuDeviceGetUuid) get =
		real->cuDeviceGetUuid_v2 ? real->cuDeviceGetUuid_v2 : real->cuDeviceGetUuid;
	CUuuid id;

	/* _v2 gives a MIG instance's own. */
	if (!get || get(&id, device) != CUDA_SUCCESS) {
		return false;
	}
	memcpy(uuid, id.bytes, PROTO_UUID_BYTES);
	return true;
}

/* Return: whether it is known now. Apart from the way of a job's start. */
__attribute__((noinline)) static bool learn(CUdevice device) {
	uint8_t uuid[PROTO_UUID_BYTES];

	if (!ask_driver(device, uuid)) {
		return false;
	}
	pthread_mutex_lock(&lock);
	if (!atomic_load(&gpus[device].known)) {
		memcpy(gpus[device].bytes, uuid, sizeof(uuid));
		atomic_store_explicit(&gpus[device].known, true, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return true;
}

HOT_CODE const uint8_t *gpu_uuid(CUdevice device) {
	if (device < 0 || device >= LANE_DEVICES_MAX) {
		return NULL;
	}
	return atomic_load_explicit(&gpus[device].known, memory_order_acquire) || learn(device)
		       ? gpus[device].bytes
		       : NULL;
}

void gpu_uuid_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	memset(gpus, 0, sizeof(gpus));
}
