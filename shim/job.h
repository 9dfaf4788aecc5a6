/*
 * job.h: jobs of this process, and how an operation gets into one.
 *
 * A lane is a place for one job at a time: one per device, for the whole process or (thread scope)
 *for each thread. Its state is one word:
 *
 *	IDLE      no job. The first operation takes it to OPENING.
 *	OPENING   that thread asks the daemon; others wait.
 *	OPEN      operations come and go without waiting.
 *	DRAINING  no operation may enter; the job ends when what it has is complete.
 *	CLOSING   somebody looks whether the job is over, and ends it if it is: a short moment.
 *
 * An operation writes into its own worker's `inside`, then reads the state; who closes writes the
 * state, then reads every `inside`. So either he sees the operation or it sees him, with one atomic
 * write per operation to a line that no other thread writes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/enforce/enforce.h"
#include "shim/place.h"

#define JOB_DEVICES_MAX 16

struct stream_use;
struct worker;

enum lane_state {
	LANE_IDLE,
	LANE_OPENING,
	LANE_OPEN,
	LANE_DRAINING,
	LANE_CLOSING,
	_LANE_STATE_N,
};

/* Under the records' lock, but for the one who opens and the one who closes. */
struct job_sums {
	uint64_t launches, copies, bytes;
};

struct lane {
	_Atomic uint32_t state;	  /* enum lane_state; a futex */
	_Atomic uint32_t waiting; /* threads that sleep on it */
	struct worker *owner;	  /* thread scope; else NULL */

	/* written while OPENING, constant until IDLE */
	_Atomic uint64_t job;
	struct enforce_grant grant;
	_Atomic nsec_t granted_ns;

	/* what later jobs should ask for: see job_learn() in job.c */
	_Atomic uint32_t mask_wanted;
	unsigned mask_age; /* jobs since then; of who opens */

	_Atomic bool drain;	   /* a job that is OPEN or CLOSING goes to DRAINING */
	_Atomic nsec_t refused_ns; /* until then nobody asks again */
	struct job_sums sums;
	nsec_t watch_ns; /* the tracker's: how long it left the lane alone last time */
};

/* What makes an operation an operation; filled by the wrappers. */
enum {
	OP_WAITS = 1 << 0, /* returns when it is complete: a point where the program has waited */
	OP_PER_THREAD = 1 << 1, /* stream 0 is the thread's own */
	OP_WHOLE = 1 << 2,	/* can't be confined */
	OP_GREEN = 1 << 3,	/* a whole GPU, or a partition by a green context */
	OP_PEER = 1 << 5,    /* comes after and before all work of all contexts that it touches */
	OP_UNNAMED = 1 << 4, /* the function names no stream: it goes to the default one itself */
};

struct op {
	Sbeet__OpKind kind;
	unsigned traits;
	uint64_t bytes;
	CUstream stream;
	const struct launch *launch; /* kernel launches by the launch functions, else NULL */
	const struct kernel *kernel; /* with launch: what kernel_find() says */

	/* between job_begin() and job_end() */
	struct worker *worker;
	struct lane *lane;
	struct stream_use *use;
	struct kernel_use kernel_use; /* of a launch whose job is confined */
	struct place_use place; /* place.at: the stream to name to the driver; after any verdict */
	nsec_t begin_ns;	/* OP_WAITS */
	nsec_t called_ns;	/* when it found a job that it can't join; 0: it did not */
	bool unconfined; /* joins a job whose grant it can't keep: the original runs, and says so */
};

enum job_verdict {
	JOB_BYPASS, /* to the driver, as if we were not there; then job_bypassed() */
	JOB_GO,	    /* to the driver under op->lane's grant, then job_end() */
	JOB_FAIL,   /* SBEET_REQUIRE, and there is no daemon: *ret_rc is the answer */
};

/* To be called first of all, with state_bypass() false. Raises the depth counter for JOB_GO. */
enum job_verdict job_begin(struct op *op, CUresult *ret_rc);

/* @rc: the driver's answer. @how: how a launch was confined. */
void job_end(struct op *op, CUresult rc, Sbeet__Enforcement how);

/* After JOB_BYPASS, when the driver has answered. */
void job_bypassed(struct op *op);

/* Between job_begin() and job_end(): the operation goes to the program's own stream after all. */
void job_unconfine(struct op *op);

/* The grant under which @op runs; valid until job_end(). */
const struct enforce_grant *job_grant(const struct op *op);

/* Ends the job of @lane if all its operations are complete. Never waits for any. Return: whether.
 */
bool job_try_close(struct lane *lane);

/* All operations are known to be complete, and nobody is inside. A glance, without excluding
 * anyone. */
bool job_is_complete(struct lane *lane);

/* Whether @job is the one that @lane has now. */
bool job_is_current(struct lane *lane, uint64_t job);

/* The daemon wants the SMs of @job back. From the connection's reader: only leaves word. */
void job_revoked(uint64_t job);
/* DRAINING from now on, if a job is open. */
void job_drain(struct lane *lane);

typedef void (*job_visit_fn)(struct lane *lane, void *data);

/* Every lane that has a job. */
void job_for_each(job_visit_fn visit, void *data);

/* Number of lanes that are not IDLE. */
unsigned job_count(void);

/*
 * Waits until nobody is in the middle of CLOSING a job, or until @deadline if it is not 0. Who
 * closes reads the counters of the contexts that the job used: first take away what he would find
 * there, then call this, and he has his hands off it.
 */
void job_settle(nsec_t deadline);

/* A context is gone or may be: what was cached about contexts counts no longer. */
void job_forget_contexts(void);

/* The lane of @device for the calling thread's operations, NULL beyond JOB_DEVICES_MAX. */
struct lane *job_lane(struct worker *w, CUdevice device);

void job_lanes_init(struct lane *lanes, struct worker *owner);

/* After fork, in the child: forget everything without calling the driver. */
void job_after_fork(void);
