/*
 * runs.h: what programs' jobs came to, as sbeetd keeps it: one run for each process.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/live/control.h"
#include "proto/histogram.h"
#include "proto/limits.h"

struct run {
	char task[PROTO_NAME_MAX + 1], program[PROTO_NAME_MAX + 1], ended[PROTO_NAME_MAX + 1];
	uint64_t number, jobs, misses, within_period, abandoned, launches, energy_mj;
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME; ended_ns 0: it runs */
	nsec_t period, deadline, gpu;
	nsec_t responses, started_late, waits; /* of all jobs together */
	nsec_t max_response, max_started_late, max_wait;
	struct histogram response;
	uint32_t pid, uid; /* pid 0: of several processes, or not known */
	uint32_t gpus;	   /* mask: on which its jobs ran; 0: not known */
	unsigned n_processes;
	bool realtime;
	bool restarted; /* sbeetd was started again meanwhile */
};

struct runs {
	struct run *list; /* owned; those that began first come first */
	size_t n;
	unsigned n_connected; /* programs of the run that was asked for that still are */
};

/* Asks for the runs of this task and this `sbeetctl run`, "" for all. Return: 0, or an enum
 * ctl_exit with one line in @error. */
int runs_ask(struct control *c, const char *task, const char *run, struct runs *ret, char *error,
	     size_t error_size);
void runs_deinit(struct runs *runs);

/* One run for all of the same task, where it was first. */
void runs_merge_tasks(struct runs *runs);

/* The response time that @percent of its jobs do not exceed, within 3.2 %; 0: it had none. */
nsec_t run_percentile(const struct run *run, unsigned percent);

/* Whether so many of its jobs began within the period of another one that its frames must be
 * several jobs each: then misses are not those of frames. */
bool runs_split_frames(uint64_t jobs, uint64_t within_period);
#define RUNS_SPLIT_FRAMES                                                                        \
	"a synchronisation ends a job, so a frame with one in its middle is several jobs, each " \
	"with a deadline of its own; mark the frames instead: MARKS in sbeetctl(1)"

/* How long it has lasted, until @now of CLOCK_REALTIME if it runs. */
nsec_t run_duration(const struct run *run, uint64_t now);

/* NULL if memory ran out. */
json_t *run_json(const struct run *run, uint64_t now);

/* CLOCK_REALTIME in ns. */
uint64_t runs_now(void);
