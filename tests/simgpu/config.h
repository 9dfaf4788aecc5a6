/*
 * config.h: which GPUs are simulated: the text of $SIMGPU to models. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/device.h"

#define CONFIG_GPUS_MAX 8
#define CONFIG_DEFAULT	"rtx3070"

struct config_gpu {
	char name[64];
	unsigned cc_major, cc_minor;
	unsigned cores_per_sm;
	uint64_t memory_bytes;
	unsigned sm_clock_khz;
	unsigned memory_clock_khz;
	unsigned bus_width_bits;
	unsigned block_threads_max;
	unsigned block_shared_max;	 /* without asking */
	unsigned block_shared_optin_max; /* with MAX_DYNAMIC_SHARED_SIZE_BYTES */
	unsigned block_shared_reserved;	 /* taken by the system for each block */
	unsigned l2_bytes;
	bool integrated;		 /* no NVML knows it */
	uint8_t uuid[16];
	struct device_config device;
};

struct config {
	struct config_gpu gpus[CONFIG_GPUS_MAX];
	unsigned n_gpus;
};

/*
 * "rtx3070,t400:mps,16@50khz": models and SM counts (1-256), each with ":mps" or ":exclusive"
 * (default). A clock before that replaces the model's: a slow GPU makes long kernels of few
 * instructions, whose simulated times then don't depend on how fast this machine is.
 * Return: 0 or -EINVAL with @error telling which word and what is allowed. @ret untouched then.
 */
int config_parse(const char *text, struct config *ret, char *error, size_t error_size);

/* "" (as the hardware is known to place) or "adversarial:SEED", a number from 1 on. For all GPUs.
 * Return: 0 or -EINVAL. */
int config_parse_place(const char *text, struct config *config);

/* "" (as on an H200) or the microseconds of a time slice, for all exclusive GPUs. A long one leaves
 * the GPU to whoever has it until his work is done or preempted. Return: 0 or -EINVAL. */
#define CONFIG_SLICE_MIN_US 100
#define CONFIG_SLICE_MAX_US 1000000000
int config_parse_slice(const char *text, struct config *config);

/* "" (the models' own) or bytes a millisecond that a copy between host and GPU moves, for all GPUs.
 * Return: 0 or -EINVAL. */
#define CONFIG_HOST_RATE_MAX 1000000000
int config_parse_host_rate(const char *text, struct config *config);

/* What a block of a kernel takes of an SM, rounded as the hardware does. */
struct device_kernel config_block_needs(const struct config_gpu *g, unsigned threads,
					unsigned regs_per_thread, unsigned shared_bytes);
