/*
 * inventory.h: which GPUs there are, and what is read from them: power, energy, memory in use,
 * utilization and temperature.
 *
 * Either fixed (--gpus), or asked of NVML by one worker thread, because a reading takes
 * milliseconds and the event loop has microseconds. The thread sleeps unless it is asked. Without
 * NVML, as on the Jetsons, the GPUs are those of CUDA's driver, and the power of an integrated one
 * is what a sensor of the board shows, which the thread reads each millisecond.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/sched.h"
#include "proto/limits.h"

struct event_base;
struct inventory;

struct inventory_gpu {
	uint8_t uuid[PROTO_UUID_BYTES];
	char name[96];
	char pci[32]; /* "00000000:65:00.0"; empty: not known */
	char driver[32]; /* its version; empty: not known */
	unsigned n_sms;
	enum sched_sharing sharing;
	bool follows_mps;      /* `sharing` is MPS while MPS is up: see inventory_set_mps() */
	bool simulated, fixed; /* of simgpu; not of NVML at all, but named by its SMs */
	unsigned green_step;   /* SMs in the smallest green context; 0: none can be made */
	uint64_t memory_bytes;
	uint64_t power_limit_mw; /* 0: not known */

	/* The last reading; 0: not known, unless said otherwise. */
	uint64_t power_mw;
	uint64_t energy_mj; /* since the daemon started */
	uint64_t memory_used_bytes; /* UINT64_MAX: not known */
	int utilization_percent;    /* of the time, how much some kernel ran; -1: not known */
	int temperature_celsius;    /* -1: not known */
	nsec_t read_at;		    /* 0: never */
	bool lost;	    /* the driver can't reach it */
};

/* How GPUs are shared, as --sharing says. */
struct inventory_sharing {
	bool automatic[SCHED_GPUS_MAX];
	enum sched_sharing mode[SCHED_GPUS_MAX]; /* where not automatic */
	bool mps_is_up;				 /* decides for real GPUs where automatic */
};

/* "auto", "mps", "exclusive", or a list "0=mps,1=exclusive" (others: auto). Return: 0, -EINVAL. */
int inventory_sharing_parse(const char *text, struct inventory_sharing *ret);

/* "80,40": SM counts. Return: how many there are; -EINVAL, -ERANGE (SMs), -E2BIG (GPUs). */
int inventory_sms_parse(const char *text, unsigned ret_sms[static SCHED_GPUS_MAX]);

/* Called from the loop: once when the GPUs are known (@error 0, or a negative errno with @why if
 * neither NVML nor the driver can be used: the inventory is then empty), not after readings. */
typedef void (*inventory_ready_fn)(void *userdata, int error, const char *why);

/* GPUs of the given sizes; ready at once. UUIDs: first byte is the index + 1, the rest 0. */
int inventory_new_fixed(struct inventory **ret, const unsigned *sms, size_t n,
			const struct inventory_sharing *sharing);

/* Starts the worker; @ready is called from @base's loop. @sensors: the folder of power sensors,
 * "/sys/class/hwmon". Return: 0 or negative errno. */
int inventory_new_nvml(struct inventory **ret, struct event_base *base,
		       const struct inventory_sharing *sharing, const char *sensors,
		       inventory_ready_fn ready, void *userdata);

/* MPS has come or gone: the GPUs with `follows_mps` are shared, or are not. */
void inventory_set_mps(struct inventory *inventory, bool is_up);

/* Takes NULL. Does not wait for a worker that hangs in the driver. */
struct inventory *inventory_free(struct inventory *inventory);

size_t inventory_n_gpus(const struct inventory *inventory);
const struct inventory_gpu *inventory_gpu(const struct inventory *inventory, size_t index);

/* Index of the GPU, or -1. */
int inventory_find(const struct inventory *inventory, const uint8_t uuid[static PROTO_UUID_BYTES]);

/* Asks for new readings if the last ones are older than a second. Returns at
 * once; the readings are there some milliseconds later. */
void inventory_refresh(struct inventory *inventory, nsec_t now);
