/*
 * snapshot.h: all that sbeetd tells about itself at one moment, and its JSON form.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/base/json.h"
#include "client/live/control.h"
#include "proto/enforcement.h"
#include "proto/smset.h"

/* All sessions of one name. */
struct snapshot_task {
	const char *name; /* borrowed from a session */
	const char *allocation; /* likewise; empty: in none; NULL: its sessions are in several */
	Sbeet__TaskClass task_class;
	uint64_t period, deadline; /* ns */
	int32_t priority;
	uint64_t n_sessions, n_running, n_waiting, jobs, launches, misses;
	uint64_t max_wait, max_response; /* ns */
	uint64_t max_started_late;	 /* ns */
	uint64_t energy_mj;		 /* dynamic, by the model; 0: not known */
	uint64_t last_response;		 /* ns; of several sessions the longest */
	char letter;			 /* in maps, see letters.h; 0: none was given */
};

struct snapshot {
	struct control_answer answer; /* owned; everything below points into it */
	const Sbeet__Control__Service *service;
	const Sbeet__Control__Mps *mps; /* NULL: an older sbeetd */
	Sbeet__Control__Gpu **gpus;	/* the arrays are owned, the elements not */
	size_t n_gpus;
	Sbeet__Control__Session **sessions;
	size_t n_sessions;
	Sbeet__Control__Job **jobs;
	size_t n_jobs;
	char *letters;		     /* owned: of each job, its task's letter */
	struct snapshot_task *tasks; /* owned */
	size_t n_tasks;
	Sbeet__Control__Allocation **allocations;
	size_t n_allocations;
};

/* Return: 0, or an enum ctl_exit with one line in @error. */
int snapshot_init(struct snapshot *ret, struct control *control, char *error, size_t error_size);
void snapshot_deinit(struct snapshot *s);

/* The object that sbeetctl(1) documents; NULL if memory ran out. */
json_t *snapshot_json(const struct snapshot *s);

/* The @i-th one alone; likewise. */
json_t *snapshot_gpu_json(const struct snapshot *s, size_t i);
json_t *snapshot_session_json(const struct snapshot *s, size_t i);
json_t *snapshot_task_json(const struct snapshot *s, size_t i);
json_t *snapshot_job_json(const struct snapshot *s, size_t i);
json_t *snapshot_allocation_json(const struct snapshot *s, size_t i);
json_t *allocation_json(const Sbeet__Control__Allocation *m);

/* The SMs of the @i-th GPU on which jobs run: what they hold, and what those run on that hold
 * nothing since they run under terms. */
struct smset snapshot_gpu_busy(const struct snapshot *s, size_t i);

/* The longest that it has taken to preempt any GPU; 0: not measured on any. */
nsec_t snapshot_preempt_ns(const struct snapshot *s);

/* As NVML prints it, "GPU-" and 36 characters; empty: not known. */
#define SNAPSHOT_UUID_TEXT 64
void snapshot_gpu_uuid(const struct snapshot *s, size_t i, char text[SNAPSHOT_UUID_TEXT]);

/* SMs of the GPU of this index; 0: there is none. */
unsigned snapshot_gpu_sms(const struct snapshot *s, uint32_t index);

/* Whether the SMs of @job's set are the very ones that its kernels run on. Only then may the set be
 * shown as such; else just their number means anything. */
bool job_is_exact(const Sbeet__Control__Job *job);
bool job_is_running(const Sbeet__Control__Job *job);
struct smset job_sms(const Sbeet__Control__Job *job);

/* In ns: from its release to its request, and from there to its grant; until now if it waits. */
uint64_t job_started_late(const Sbeet__Control__Job *job);
uint64_t job_waited(const struct snapshot *s, const Sbeet__Control__Job *job);
