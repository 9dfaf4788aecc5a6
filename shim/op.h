/*
 * op.h: one operation on its way into the driver: what the program calls, what that means (context,
 * stream, kernel, job; each looked up once), where it runs, and the account of it.
 *
 *	op_init(); op_begin(); the driver's function with place.at; op_end()
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/enforce/enforce.h"
#include "shim/place.h"
#include "shim/shapes.h"
#include "shim/worker.h"

/* What makes an operation an operation. */
enum {
	OP_WAITS = 1 << 0, /* returns when it is complete: a point where the program has waited */
	OP_PER_THREAD = 1 << 1, /* stream 0 is the thread's own */
	OP_WHOLE = 1 << 2,	/* can't be confined */
	OP_GREEN = 1 << 3,	/* a whole GPU, or a partition by a green context */
	OP_UNNAMED = 1 << 4, /* the function names no stream: it goes to the default one itself */
	OP_PEER = 1 << 5,    /* comes after and before all work of all contexts that it touches */
	OP_BACK = 1 << 6,    /* a kernel may make the copy: the hook calls op_kernels_done() */
};

struct op {
	/* what the program calls: see op_init() */
	Sbeet__OpKind kind;
	unsigned traits;
	uint64_t bytes;
	CUstream stream;
	const struct launch *launch; /* kernel launches by the launch functions, else NULL */

	/* what that means; between op_begin() and op_end() */
	struct worker *worker;
	const struct stream_id *id; /* of the stream; its context is the current one */
	struct lane *lane;
	struct stream_use *use;
	struct kernel *kernel;	      /* of a launch; NULL: not known */
	uint32_t kernel_epoch;	      /* when that was found out */
	struct kernel_use kernel_use; /* of a launch that a twin can make */
	bool at_once;		      /* its blocks may wait for each other: it is OP_WHOLE */

	/* where it runs */
	struct place_use place; /* place.at: the stream to name to the driver; after any verdict */
	struct partition *to;	/* the partition it is meant for; NULL: none */
	Sbeet__Enforcement how; /* what holds it on its SMs; who launches may find that it can't */
	bool unconfined; /* joins a job whose grant it can't keep: the original runs, and says so */
	bool passes;	 /* enters a job that drains: see lane_wait_drained() */
	bool outside;	 /* no mark has made a job for it: see mark.h */

	point_t begun;	  /* OP_WAITS */
	nsec_t begin_ns;  /* OP_WAITS, where single operations are recorded; else 0 */
	nsec_t called_ns; /* when it found a job that it can't join; 0: it did not */
	nsec_t waited_ns; /* since when it waits for the end of the present one; 0: it does not */
};

/* @launch: of a launch function, else NULL; borrowed until op_end(). Sets what op_begin() reads: an
 * initializer would clear the rest as well. */
static inline void op_init(struct op *op, Sbeet__OpKind kind, unsigned traits, uint64_t bytes,
			   CUstream stream, const struct launch *launch) {
	op->kind = kind;
	op->traits = traits;
	op->bytes = bytes;
	op->stream = stream;
	op->launch = launch;
	op->place = (struct place_use){
		.stream = stream, .per_thread = traits & OP_PER_THREAD, .at = stream};
	op->unconfined = false;
	op->passes = false;
	op->outside = false;
	op->called_ns = 0;
	op->waited_ns = 0;
}

enum op_verdict {
	OP_BYPASS, /* to the driver, as if we were not there; then op_bypassed() */
	OP_GO,	   /* to the driver under op->lane's grant, then op_end() */
	OP_FAIL,   /* SBEET_REQUIRE, and there is no daemon: *ret_rc is the answer */
};

/* To be called once after op_init(), with state_bypass() false. Raises the depth counter for OP_GO.
 */
enum op_verdict op_begin(struct op *op, CUresult *ret_rc);

/* @rc: the driver's answer. op->how: how it was really confined. */
void op_end(struct op *op, CUresult rc);

/* After OP_BYPASS, when the driver has answered. */
void op_bypassed(struct op *op);

/* After op_begin(): the operation goes to the program's own stream after all. */
void op_unconfine(struct op *op);

/* After op_begin(): the kernels of the job are done once the stream comes to this point, if what
 * follows is a copy back. By op_begin() itself, but with OP_BACK. */
void op_kernels_done(const struct op *op);

/* After op_begin(): whether the thread has launched something in this stream and job before. */
static inline bool op_has_launched(const struct op *op) {
	return atomic_load_explicit(&op->use->launches, memory_order_relaxed) > 0;
}

/* What the thread knows of launches like that of @op, whose kernel is known; found out if need be.
 * Valid until its next launch. NULL: too many kernels, or no memory. */
struct shape *op_shape(const struct op *op);

/* The grant under which @op runs; valid until op_end(). */
const struct enforce_grant *op_grant(const struct op *op);
