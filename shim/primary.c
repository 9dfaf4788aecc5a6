/*
 * primary.c: see primary.h.
 */
#include "shim/primary.h"

#include <pthread.h>
#include <stdbool.h>

#include "shim/lane.h"
#include "shim/state.h"

/* One lock each: to make a context takes the driver long. */
static struct primary {
	pthread_mutex_t lock;
	CUcontext context; /* the last one; NULL: none was seen */
	unsigned held;
} primaries[LANE_DEVICES_MAX] = {
	[0 ... LANE_DEVICES_MAX - 1] = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP}};

static bool is_known(CUdevice device) {
	return device >= 0 && device < LANE_DEVICES_MAX;
}

int primary_lock(CUdevice device) {
	int cancel = state_defer_cancel();

	if (is_known(device)) {
		pthread_mutex_lock(&primaries[device].lock);
	}
	return cancel;
}

void primary_unlock(CUdevice device, int cancel) {
	if (is_known(device)) {
		pthread_mutex_unlock(&primaries[device].lock);
	}
	state_restore_cancel(cancel);
}

void primary_retained(CUdevice device, CUcontext context) {
	if (is_known(device)) {
		primaries[device].context = context;
		primaries[device].held++;
	}
}

CUcontext primary_released(CUdevice device) {
	if (!is_known(device)) {
		return NULL;
	}
	if (primaries[device].held > 1) {
		primaries[device].held--;
		return NULL;
	}
	primaries[device].held = 0;
	return primaries[device].context;
}

CUcontext primary_context(CUdevice device) {
	return is_known(device) ? primaries[device].context : NULL;
}

void primary_after_fork(void) {
	for (unsigned i = 0; i < LANE_DEVICES_MAX; i++) {
		primaries[i] = (struct primary){.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
	}
}
