/*
 * enforce.h: makes a grant true for one launch.
 *
 * `whole` runs the original. `smid` and `count` run the twin, with the set's SMs, or its number of
 * SMs from 0 on. Nothing here asks the daemon or waits for it.
 */
#pragma once

#include "proto/smset.h"
#include "sbeet.pb-c.h"
#include "shim/kernel.h"
#include "shim/launch.h"

/* What the daemon granted, as a job keeps it. Immutable while the job is open. */
struct enforce_grant {
	Sbeet__Enforcement enforcement;
	struct smset sms;
	unsigned gpu_sms; /* of the whole GPU */
};

/*
 * Launches @l under @grant. The caller has made sure that kernel_enforcement_mask() allows
 * grant->enforcement.
 * @ret_how: how it was really confined: grant->enforcement; ENFORCEMENT_WHOLE when the original ran
 * because the grant is the whole GPU; ENFORCEMENT_NONE when a confined launch could not be made for
 * want of device memory or because the stream is being captured, and the original ran (the caller
 * reports that).
 * Return: the driver's result.
 */
CUresult enforce_launch(const struct enforce_grant *grant, const struct kernel *k,
			const struct launch *l, Sbeet__Enforcement *ret_how);

/* The original, by the very function that the program called. */
CUresult enforce_launch_original(const struct launch *l);

/* Device memory (control blocks, sets) for a context, ahead of the first confined launch; called
 * when a job opens, never on the launch path. Return: 0 or -ENOMEM (then launches run as NONE). */
int enforce_prepare(CUcontext context, const struct enforce_grant *grant);
void enforce_stream_destroying(CUcontext context, CUstream stream);
void enforce_context_destroying(CUcontext context);

/* Virtual blocks that ran outside their set since the last call, over all launches that are
 * complete. Reads device memory: called only when the job has nothing in flight. */
uint64_t enforce_outside_blocks(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void enforce_after_fork(void);
