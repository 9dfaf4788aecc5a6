/*
 * events.h: what is going to happen in a simulation, soonest first.
 */
#pragma once

#include <stddef.h>

#include "proto/units.h"

/* At one moment, in this order: what ends frees SMs before anything new asks for them, and a job
 * that ends at its deadline is in time. */
enum event_kind {
	/* The arbiter's: see arbiter.h. */
	EVENT_KERNEL_START,
	EVENT_KERNEL_END,
	EVENT_FINISH,
	EVENT_STOP,   /* of a job that runs on for a while after it was told to stop */
	EVENT_SHARED, /* index: the GPU */
	EVENT_LOOK,   /* likewise: sim_shared looks what the programs did */

	/* sim.c's. */
	EVENT_DEADLINE, /* only with SCHED_LATE_DROP */
	EVENT_RELEASE,
};

struct event {
	nsec_t at;
	enum event_kind kind;
	uint32_t index; /* of the task for EVENT_RELEASE, else of the job */
	uint32_t grant; /* of the arbiter sim_grants: which of the job's this is about */
	uint64_t order; /* of the job: its number in the table may be another job's by now */
};

struct event_queue {
	struct event *heap; /* owned; the first one is at [0] */
	size_t n, capacity;
};

/* @q: zeroed at first. Return: 0, -ENOMEM. */
int event_push(struct event_queue *q, struct event event);

/* The first one, of at least one. */
struct event event_pop(struct event_queue *q);

void event_queue_deinit(struct event_queue *q);
