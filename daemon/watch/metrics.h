/*
 * metrics.h: what a monitoring system wants to know, as OpenMetrics text: jobs, misses and times of
 * each task, SMs in use, energy, time to decide.
 *
 * Bounded: the first METRICS_TASKS names have a series each, all others share the task "*", which
 * no name can be. Counts from the daemon's start. Served by metrics-http.h; NULL where it is off.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "proto/units.h"

#define METRICS_TASKS 64

struct metrics;
struct watched;

/* @watched: borrowed, outlives it; its GPUs are known. Return: 0 or -ENOMEM. */
int metrics_new(struct metrics **ret, const struct watched *watched);
struct metrics *metrics_free(struct metrics *metrics); /* takes NULL */

/* Of a job: from release to request, from request to grant, from release to end. */
struct metrics_times {
	nsec_t started_late, wait, response;
};

/* A job of the task @name is complete. Does nothing for NULL, as the next two. */
void metrics_job(struct metrics *metrics, const char *name, const struct metrics_times *times,
		 bool missed);

/* A turn of the scheduler, grants sent included, took so long. */
void metrics_decision(struct metrics *metrics, nsec_t duration);

/* From @now on @n_sms of the GPU are in use. */
void metrics_occupancy(struct metrics *metrics, size_t gpu, unsigned n_sms, nsec_t now);

/* All of it, as of @now, and asks for new readings of the GPUs' counters for the next time. */
void metrics_print(const struct metrics *metrics, nsec_t now, FILE *out);
