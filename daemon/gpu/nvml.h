/*
 * nvml.h: the few functions of NVML that sbeetd needs, by dlopen.
 *
 * Every call may take milliseconds and, with a sick driver, forever: for the worker thread only.
 * The types are our own declarations of NVML's stable interface, so the build needs no toolkit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml;

struct nvml_gpu {
	uint8_t uuid[16];
	char name[96];
	char pci[32];	 /* "00000000:65:00.0"; empty: not known */
	char driver[32]; /* its version; empty: not known */
	unsigned n_sms;
	uint64_t memory_bytes;
	uint64_t power_limit_mw; /* 0: not known */
	unsigned green_step;	 /* SMs in the smallest green context; 0: none can be made */
	int simulated_sharing;	 /* of a simulated GPU: 0 exclusive, 1 MPS; -1: a real GPU */
};

struct nvml_reading {
	uint64_t power_mw;	    /* 0: not known */
	uint64_t energy_mj;	    /* since some time before; 0: not known */
	uint64_t memory_used_bytes; /* UINT64_MAX: not known */
	int utilization_percent;    /* of the time, how much some kernel ran; -1: not known */
	int temperature_celsius;    /* -1: not known */
};

#define NVML_READING_NULL                                       \
	((struct nvml_reading){.memory_used_bytes = UINT64_MAX, \
			       .utilization_percent = -1,       \
			       .temperature_celsius = -1})

/* Loads and initialises. Return: 0; -ENOENT: no such library; -EIO: NVML refuses. @why: one line.
 */
int nvml_open(struct nvml **ret, char *why, size_t why_size);
struct nvml *nvml_close(struct nvml *nvml);

/* The driver's version, "580.65.06"; empty: not known. */
void nvml_driver(struct nvml *nvml, char *version, size_t size);

/* SMs in the smallest green context of GPUs of compute capability @major; 0: none can be made. */
unsigned nvml_green_step(int major);

/* At most @max GPUs. Those that can't be read are left out and counted. Return: their number. */
size_t nvml_list(struct nvml *nvml, struct nvml_gpu *gpus, size_t max, unsigned *ret_left_out);

/* Of the @index-th of nvml_list(), what NVML has no answer for as in NVML_READING_NULL.
 * Return: 0, or -ENODEV: the GPU is lost. */
int nvml_read(struct nvml *nvml, size_t index, struct nvml_reading *ret);
