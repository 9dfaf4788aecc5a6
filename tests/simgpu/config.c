/* config.c: see config.h. Figures from NVIDIA's data sheets and programming guide; power figures
 * from the dissertation (Table 3.2) and, for the H200, measured. */
#include "tests/simgpu/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)
#define GIB (1024ull * MIB)

static const struct config_gpu config_rtx3070 = {
	.name = "Simulated GeForce RTX 3070",
	.cc_major = 8,
	.cc_minor = 6,
	.cores_per_sm = 128,
	.memory_bytes = 8 * GIB,
	.sm_clock_khz = 1725000,
	.memory_clock_khz = 7001000,
	.bus_width_bits = 256,
	.block_shared_optin_max = 99 * KIB,
	.block_shared_reserved = KIB,
	.l2_bytes = 4 * MIB,
	.device =
		{
			.n_sms = 46,
			.sm_threads = 1536,
			.sm_blocks = 16,
			.sm_shared_bytes = 100 * KIB,
			.copy_engines = 2,
			.launch_ns = 2000,
			.copy_latency_ns = 1500,
			.host_bytes_per_ms = 25000000,
			.device_bytes_per_ms = 400000000,
			.power = {.static_mw = 46000, .idle_sm_uw = 445000, .busy_sm_uw = 3770000},
		},
};

static const struct config_gpu config_t400 = {
	.name = "Simulated T400",
	.cc_major = 7,
	.cc_minor = 5,
	.cores_per_sm = 64,
	.memory_bytes = 2 * GIB,
	.sm_clock_khz = 1425000,
	.memory_clock_khz = 5001000,
	.bus_width_bits = 64,
	.block_shared_optin_max = 64 * KIB,
	.block_shared_reserved = 0,
	.l2_bytes = 512 * KIB,
	.device =
		{
			.n_sms = 6,
			.sm_threads = 1024,
			.sm_blocks = 16,
			.sm_shared_bytes = 64 * KIB,
			.copy_engines = 1,
			.launch_ns = 2500,
			.copy_latency_ns = 2000,
			.host_bytes_per_ms = 12000000,
			.device_bytes_per_ms = 70000000,
			.power = {.static_mw = 8000, .idle_sm_uw = 652000, .busy_sm_uw = 810000},
		},
};

static const struct config_gpu config_h200 = {
	.name = "Simulated H200",
	.cc_major = 9,
	.cc_minor = 0,
	.cores_per_sm = 128,
	.memory_bytes = 141 * GIB,
	.sm_clock_khz = 1980000,
	.memory_clock_khz = 3201000,
	.bus_width_bits = 6144,
	.block_shared_optin_max = 227 * KIB,
	.block_shared_reserved = KIB,
	.l2_bytes = 60 * MIB,
	.device =
		{
			.n_sms = 132,
			.sm_threads = 2048,
			.sm_blocks = 32,
			.sm_shared_bytes = 228 * KIB,
			.copy_engines = 2,
			.launch_ns = 1500,
			.copy_latency_ns = 1200,
			.host_bytes_per_ms = 50000000,
			.device_bytes_per_ms = 4000000000,
			.power = {.static_mw = 123500, .idle_sm_uw = 0, .busy_sm_uw = 1520000},
		},
};

/* A Jetson Orin Nano. */
static const struct config_gpu config_orin = {
	.name = "Simulated Orin",
	.cc_major = 8,
	.cc_minor = 7,
	.cores_per_sm = 128,
	.memory_bytes = 8 * GIB,
	.sm_clock_khz = 625000,
	.memory_clock_khz = 2133000,
	.bus_width_bits = 128,
	.block_shared_optin_max = 163 * KIB,
	.block_shared_reserved = KIB,
	.l2_bytes = 2 * MIB,
	.integrated = true,
	.device =
		{
			.n_sms = 8,
			.sm_threads = 1536,
			.sm_blocks = 16,
			.sm_shared_bytes = 164 * KIB,
			.copy_engines = 1,
			.launch_ns = 4000,
			.copy_latency_ns = 3000,
			.host_bytes_per_ms = 20000000,
			.device_bytes_per_ms = 60000000,
			.power = {.static_mw = 4000, .idle_sm_uw = 100000, .busy_sm_uw = 700000},
		},
};

static const struct {
	const char *word;
	const struct config_gpu *gpu;
} config_models[] = {
	{"rtx3070", &config_rtx3070},
	{"t400", &config_t400},
	{"h200", &config_h200},
	{"orin", &config_orin},
};

/* What is the same in every GPU since compute capability 7.0, and the time slice of our model. */
static void config_common(struct config_gpu *g) {
	g->block_threads_max = 1024;
	g->block_shared_max = 48 * KIB;
	g->device.sm_regs = 65536;
	g->device.slice_ns = 2050000;
	g->device.switch_ns = 174000; /* two that share have 46 % each, as measured on an H200 */
}

/* An H200 cut down to @n_sms: static power, memory bandwidth in proportion, 8 GiB. */
static void config_from_count(struct config_gpu *g, unsigned n_sms) {
	*g = config_h200;
	snprintf(g->name, sizeof(g->name), "Simulated GPU with %u SM%s", n_sms,
		 n_sms == 1 ? "" : "s");
	g->memory_bytes = 8 * GIB;
	g->device.n_sms = n_sms;
	g->device.device_bytes_per_ms = g->device.device_bytes_per_ms * n_sms / 132;
	g->device.power.static_mw = g->device.power.static_mw * n_sms / 132;
}

/* Return: 0 or -EINVAL. */
static int config_parse_count(const char *word, unsigned *ret) {
	unsigned n = 0;

	if (!*word) {
		return -EINVAL;
	}
	for (; *word; word++) {
		if (*word < '0' || *word > '9') {
			return -EINVAL;
		}
		n = n * 10 + (unsigned)(*word - '0');
		if (n > DEVICE_SMS_MAX) {
			return -EINVAL;
		}
	}
	if (n == 0) {
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

/* "50khz". Return: 0 or -EINVAL. */
static int config_parse_clock(const char *text, unsigned *ret_khz) {
	unsigned khz = 0;

	for (; *text >= '0' && *text <= '9' && khz < 10000000; text++) {
		khz = khz * 10 + (unsigned)(*text - '0');
	}
	if (khz == 0 || khz > 10000000 || strcmp(text, "khz") != 0) {
		return -EINVAL;
	}
	*ret_khz = khz;
	return 0;
}

/* @word: "t400@50khz:mps", changed. */
static int config_parse_gpu(char *word, struct config_gpu *ret) {
	char *mode = strchr(word, ':'), *clock;
	bool found = false;
	unsigned n, khz = 0;

	if (mode) {
		*mode++ = '\0';
	}
	clock = strchr(word, '@');
	if (clock) {
		*clock++ = '\0';
		if (config_parse_clock(clock, &khz) < 0) {
			return -EINVAL;
		}
	}
	for (size_t i = 0; i < sizeof(config_models) / sizeof(*config_models); i++) {
		if (strcmp(word, config_models[i].word) == 0) {
			*ret = *config_models[i].gpu;
			found = true;
		}
	}
	if (!found) {
		if (config_parse_count(word, &n) < 0) {
			return -EINVAL;
		}
		config_from_count(ret, n);
	}
	config_common(ret);
	ret->sm_clock_khz = khz ? khz : ret->sm_clock_khz;
	if (mode && strcmp(mode, "mps") != 0 && strcmp(mode, "exclusive") != 0) {
		return -EINVAL;
	}
	ret->device.shared = mode && strcmp(mode, "mps") == 0;
	return 0;
}

/* Stable from run to run, different for each index: "SIMGPU" and the index. */
static void config_make_uuid(uint8_t uuid[16], unsigned index) {
	static const uint8_t stem[16] = {'S',  'I',  'M',  'G',	 'P',  'U',  0x40, 0x01,
					 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

	memcpy(uuid, stem, sizeof(stem));
	uuid[15] = (uint8_t)index;
}

int config_parse(const char *text, struct config *ret, char *error, size_t error_size) {
	struct config c = {0};
	char *copy = strdup(text), *rest = copy, *word;
	char shown[64];

	if (!copy) {
		return -ENOMEM;
	}
	while ((word = strsep(&rest, ","))) {
		snprintf(shown, sizeof(shown), "%s", word);
		if (c.n_gpus == CONFIG_GPUS_MAX) {
			snprintf(error, error_size, "SIMGPU: more than %d GPUs", CONFIG_GPUS_MAX);
			free(copy);
			return -EINVAL;
		}
		if (config_parse_gpu(word, &c.gpus[c.n_gpus]) < 0) {
			snprintf(error, error_size,
				 "SIMGPU: '%s' is no GPU: expected rtx3070, t400, h200, orin or a number "
				 "of SMs from 1 to %d, then nothing or a clock such as '@50khz', "
				 "then nothing, ':mps' or ':exclusive'",
				 shown, DEVICE_SMS_MAX);
			free(copy);
			return -EINVAL;
		}
		config_make_uuid(c.gpus[c.n_gpus].uuid, c.n_gpus);
		c.n_gpus++;
	}
	free(copy);
	*ret = c;
	return 0;
}

int config_parse_place(const char *text, struct config *config) {
	static const char mode[] = "adversarial:";
	const char *digit = text + sizeof(mode) - 1;
	uint64_t seed = 0;

	if (*text == '\0') {
		return 0;
	}
	if (strncmp(text, mode, sizeof(mode) - 1) != 0 || !*digit) {
		return -EINVAL;
	}
	for (; *digit; digit++) {
		if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(seed, 10, &seed) ||
		    __builtin_add_overflow(seed, (uint64_t)(*digit - '0'), &seed)) {
			return -EINVAL;
		}
	}
	if (seed == 0 || seed > UINT64_MAX - CONFIG_GPUS_MAX) {
		return -EINVAL;
	}
	for (unsigned i = 0; i < config->n_gpus; i++) {
		config->gpus[i].device.place_seed = seed + i;
	}
	return 0;
}

/* Of digits alone, from @min (at least 1) to @max. Return: 0 if it is anything else. */
static uint64_t parse_number(const char *text, uint64_t min, uint64_t max) {
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9' && n <= max; text++) {
		n = n * 10 + (uint64_t)(*text - '0');
	}
	return *text || n < min || n > max ? 0 : n;
}

int config_parse_slice(const char *text, struct config *config) {
	uint64_t us = parse_number(text, CONFIG_SLICE_MIN_US, CONFIG_SLICE_MAX_US);

	if (*text == '\0') {
		return 0;
	}
	if (us == 0) {
		return -EINVAL;
	}
	for (unsigned i = 0; i < config->n_gpus; i++) {
		config->gpus[i].device.slice_ns = us * 1000;
	}
	return 0;
}

int config_parse_host_rate(const char *text, struct config *config) {
	uint64_t rate = parse_number(text, 1, CONFIG_HOST_RATE_MAX);

	if (*text == '\0') {
		return 0;
	}
	if (rate == 0) {
		return -EINVAL;
	}
	for (unsigned i = 0; i < config->n_gpus; i++) {
		config->gpus[i].device.host_bytes_per_ms = rate;
	}
	return 0;
}

static unsigned round_up(unsigned n, unsigned unit) {
	return (n + unit - 1) / unit * unit;
}

struct device_kernel config_block_needs(const struct config_gpu *g, unsigned threads,
					unsigned regs_per_thread, unsigned shared_bytes) {
	unsigned warps = (threads + 31) / 32;
	unsigned shared = shared_bytes + g->block_shared_reserved;

	/* Registers are given to a warp in units of 256, shared memory to a block in units of 128
	 * (256 before cc 8). Threads count by whole warps. */
	return (struct device_kernel){
		.threads = warps * 32,
		.regs = warps * round_up(regs_per_thread * 32, 256),
		.shared_bytes = round_up(shared, g->cc_major >= 8 ? 128 : 256),
	};
}
