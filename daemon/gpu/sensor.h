/*
 * sensor.h: the power of a GPU that has no meter of its own: what a sensor of the board shows for
 * the rail that feeds it, as Linux gives it in /sys/class/hwmon (INA3221 on the Jetsons).
 *
 * A reading takes up to a millisecond where the sensor is on I2C: for the worker thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/units.h"

struct sensor;

/* The best sensor in @folder, "/sys/class/hwmon": of a rail for the GPU alone, else of one that it
 * shares with the CPU, else of the whole board. Return: 0, -ENOENT (none) or -ENOMEM. */
int sensor_new(struct sensor **ret, const char *folder);
struct sensor *sensor_free(struct sensor *sensor); /* takes NULL */

/* "VDD_GPU_SOC" */
const char *sensor_rail(const struct sensor *sensor);

/* Milliwatts. Return: 0, or -EIO: it can't be read. */
int sensor_read(struct sensor *sensor, uint64_t *ret_mw);

/* Energy as the sum of readings. All zero at first. */
struct sensor_energy {
	uint64_t uj;
	uint64_t rest_pj; /* below one microjoule */
	nsec_t at;	  /* of the last reading; 0: none */
	uint64_t mw;
};

/* Between two readings the power is taken to change evenly; more than a second without one (the
 * machine slept) counts nothing. */
void sensor_add(struct sensor_energy *e, nsec_t now, uint64_t mw);
