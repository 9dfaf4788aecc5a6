/*
 * enforce.h: makes a grant true for one launch.
 *
 * `whole` runs the original. `smid` and `count` run the twin, with the set's SMs, or its number of
 * SMs from 0 on. `green` runs the original in a stream of the set's green context: which stream
 * that is, place.h knows. Nothing here asks the daemon or waits for it.
 */
#pragma once

#include "proto/smset.h"
#include "sbeet.pb-c.h"
#include "shim/enforce/kernel.h"
#include "shim/launch.h"

/* An SM set as twins need it, in one context. */
struct enforce_set {
	uint64_t context; /* context_serial(); 0: not prepared */
	unsigned n_sms;
	CUdeviceptr address; /* of a struct twin_set; 0: no memory */
};

/* What the daemon granted, as a job keeps it. Immutable while the job is open. */
struct enforce_grant {
	Sbeet__Enforcement enforcement;
	struct smset sms;
	unsigned gpu_sms; /* of the whole GPU */
	unsigned gpu;	  /* 0: the one that was asked for; from 1: of the others (ask.h) */
	bool whole_job;	  /* segments that the program marks don't end the job */
	unsigned level;	  /* ENFORCEMENT_WHOLE: of the streams, 0 to PROTO_TERMS_LEVEL_MAX */
	struct partition *partition; /* ENFORCEMENT_GREEN, or a level: where the work goes; NULL:
				      * not to be had, or the program's own streams */
	struct enforce_set set;	     /* in the context that opened the job */
};

/*
 * Launches @l under @grant. The caller has made sure that kernel_enforcement_mask() allows
 * grant->enforcement, by which @use is filled, on this thread, with the same context current; and
 * that the stream is not being captured.
 * @ret_how: how it was really confined: grant->enforcement; ENFORCEMENT_WHOLE when the original ran
 * because the grant is the whole GPU; ENFORCEMENT_NONE when a confined launch could not be made for
 * want of device memory, and the original ran (the caller reports that).
 * Return: the driver's result.
 */
CUresult enforce_launch(const struct enforce_grant *grant, const struct kernel_use *use,
			const struct launch *l, Sbeet__Enforcement *ret_how);

/* What this shim and this driver can keep, 1 << Sbeet__Enforcement each. */
uint32_t enforce_mask(void);

/* The original, by the very function that the program called. */
CUresult enforce_launch_original(const struct launch *l);

/* The same into the stream @at, whatever @l says. */
CUresult enforce_launch_at(const struct launch *l, CUstream at);

/* How many SMs a set in @context is made of at the least, with ENFORCEMENT_GREEN; 0: none can be.
 */
unsigned enforce_step(CUcontext context);

/* Before a job asks for SMs on GPU @uuid, that of @context: as green_make_ahead(). */
unsigned enforce_make_ahead(CUcontext context, const uint8_t *uuid);

/* The partition that a grant of ENFORCEMENT_GREEN, or of a level, means in @context, made if need
 * be: when a job opens, never on the launch path. NULL: can't be had. */
struct partition *enforce_partition(CUcontext context, const struct enforce_grant *grant);

/* Device memory (control blocks, sets) for a context, ahead of the first confined launch; called
 * when a job opens, never on the launch path. @ret, which
 * may be NULL: for grant->set. Return: 0 or -ENOMEM (then launches run as NONE). */
int enforce_prepare(CUcontext context, const struct enforce_grant *grant, struct enforce_set *ret);
void enforce_stream_destroying(CUcontext context, CUstream stream);
void enforce_context_destroying(CUcontext context);

/* Virtual blocks that ran outside their set since the last call, over all launches that are
 * complete. Reads device memory: called only when the job has nothing in flight. */
uint64_t enforce_outside_blocks(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void enforce_after_fork(void);
