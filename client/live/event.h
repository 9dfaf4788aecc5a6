/*
 * event.h: one thing that happened, as sbeetd tells it and as a trace file keeps it.
 *
 * Both ways into a struct event check what they read, so everything behind may trust it: numbers
 * are in range, texts are printable. The JSON form is one object a line; sbeet-trace(5) documents
 * its keys, and a table in event.c is all that writer and reader know of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/base/json.h"
#include "control.pb-c.h"
#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/units.h"

enum event_kind {
	EVENT_START, /* of a stream: version, policy, clock */
	EVENT_LOST,  /* `lost` events before the next one are missing */
	EVENT_GPU,
	EVENT_SESSION_START,
	EVENT_SESSION_END,
	EVENT_JOB_REQUEST,
	EVENT_JOB_GRANT,
	EVENT_JOB_DONE,
	EVENT_JOB_ABANDON,
	EVENT_JOB_MISS,
	EVENT_JOB_OVERRUN,
	EVENT_POLICY,
	EVENT_CONFIG,
	EVENT_GPU_DRAIN,
	EVENT_GPU_RESUME,
	EVENT_SESSION_KILL,
	EVENT_JOB_REVOKE,
	EVENT_JOB_RESUME,
	EVENT_JOB_LATE,
	EVENT_JOB_STOP,
	EVENT_OP,	/* one operation of a job */
	EVENT_OPS_LOST, /* `lost` operations before the next one are missing */
	_EVENT_KIND_N,
};

/* GPUs that a stream may name; their numbers are below. */
#define EVENT_GPUS_MAX 16

/* Raised when a key changes its meaning; additions alone do not raise it. */
#define EVENT_FORMAT 1

/* Of a kernel's name; sbeetd cuts longer ones. */
#define EVENT_KERNEL_MAX 255

/* Times are CLOCK_MONOTONIC; 0 where there is none. */
struct event {
	enum event_kind kind;
	nsec_t time;
	bool before; /* it was so before the stream began */

	/* EVENT_START */
	uint64_t format;     /* EVENT_FORMAT */
	int64_t wall_offset; /* ns from the time above to CLOCK_REALTIME */

	uint64_t lost; /* EVENT_LOST, EVENT_OPS_LOST */

	/* EVENT_OP */
	Sbeet__OpKind op;
	char kernel[EVENT_KERNEL_MAX + 1];     /* of a launch; empty: not known */
	uint64_t blocks, block_threads, bytes; /* of the grid; in each; of copies */
	uint64_t stream;		       /* tells streams apart */

	uint64_t session, job, pid, uid, tid;
	char task[PROTO_NAME_MAX + 1];
	Sbeet__TaskClass task_class;
	nsec_t period;

	uint64_t gpu, slot;
	struct smset sms;
	Sbeet__Enforcement enforcement;
	bool steered; /* it runs under terms of this level, and was not asked for */
	uint64_t level;
	nsec_t release, granted, finished, predicted_finish;
	nsec_t launched;  /* the first kernel; 0: not known */
	nsec_t kernel_end; /* of the last one; 0: not known */
	nsec_t deadline;  /* of jobs absolute, of sessions relative */
	nsec_t requested; /* 0: not told, as by older daemons; see event_requested() */
	uint64_t launches;

	uint64_t gpu_sms, power_mw, energy_mj;
	char sharing[PROTO_NAME_MAX + 1];

	char name[PROTO_NAME_MAX + 1]; /* of a program, a policy, a GPU */
	char version[PROTO_NAME_MAX + 1];
};

/* "job-grant"; NULL-terminated by _EVENT_KIND_N. */
const char *event_kind_name(enum event_kind kind);
bool event_is_job(enum event_kind kind);

/* When the job was requested: at its release or after it. */
nsec_t event_requested(const struct event *e);

/* Return: 0; -ENOMSG: of a kind that this sbeetctl does not know; -EBADMSG. */
int event_from_wire(const Sbeet__Control__Event *m, struct event *ret);
int event_from_start(const Sbeet__Control__EventsStart *m, struct event *ret);

int event_from_op(const Sbeet__Control__JobOps *m, size_t index, struct event *ret);

/* "launch", "copy-htod", ... */
const char *event_op_name(Sbeet__OpKind kind);

/* NULL if memory ran out. */
json_t *event_json(const struct event *e);

/* Return: 0; -ENOMSG: of an unknown kind; -EBADMSG with what is wrong in @why. */
int event_from_json(const json_t *object, struct event *ret, char *why, size_t size);

/* What has happened, in words: "GPU 0, SMs 0-22 (smid), waited 0.1 ms". @size: 256 is enough. */
void event_describe(const struct event *e, char *text, size_t size);
