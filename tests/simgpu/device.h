/*
 * device.h: the model of one simulated GPU: contexts (spaces), streams, the queues of the TX2 paper
 * (Amert et al., rules G, X, R, C, N and A), SMs, copy engines and virtual time. Pure logic: no
 * I/O, no clock, no threads; what a block computes and what a copy moves is behind struct
 * device_backend.
 *
 * Queues. Each stream is a FIFO (G1). The head of a stream goes to the EE queue of its space and
 * priority (G2, A1) or to the FIFO of its copy engine (C1) as soon as the NULL stream's rules allow
 * (N1, N2: heads are compared by the order of submission; non-blocking streams are exempt). Only
 * the head of the highest non-empty EE queue of a space is assigned (X1, A2), block by block, to an
 * SM with room for its threads, registers, shared memory and block slots (R1-R3); it leaves the
 * queue when its last block is assigned (G3) and the stream when its last block is done (G4, C4). A
 * copy engine does one copy at a time in FIFO order (C2, C3).
 *
 * Parts. A green context of a space has queues of its own and only its SMs. SMs that several parts
 * have are shared block by block, as between spaces.
 *
 * Levels. Priorities count between parts, and between spaces that share the GPU: as long as a block
 * waits for an SM, none of a lower priority begins there.
 *
 * Placement. A block goes to the SM that has room and the fewest resident threads; then the fewest
 * blocks, then the lowest index. That is breadth-first, as gpu-facts.md saw it.
 *
 * Sharing. Exclusive: each space has the SMs for itself while it is its turn; turns end after
 * config.slice_ns when another space has work. Blocks of the others stand still, their clocks too,
 * and for config.switch_ns after the change everybody's.
 * Shared (MPS): all spaces place blocks on the same SMs, one block each in turn, and %smid is
 * virtual: the lowest number that the space does not use yet is given to an SM when the space's
 * first block comes to it, and is free again when its last block there is gone.
 *
 * Time. Virtual nanoseconds, never behind the last event. Each resident block has a clock; the
 * block with the earliest one runs a slice, and the backend says how long that took (sharing of the
 * SM included). Ties go by age. A block therefore ends at an event of its own, when its clock is
 * the earliest; its memory accesses come at most one slice early. Copies take latency plus size
 * divided by bandwidth. The first blocks of a kernel start config.launch_ns late.
 *
 * Everything is deterministic given the order of calls and their times.
 *
 * What was measured on real GPUs, and whether this one does so ("unkind": under place_seed too):
 *
 * | fact                                                    | here                               |
 * | one process: %smid is physical, masks by it are exact   | yes                                |
 * | processes without MPS: time-sliced, 46 % of solo each   | yes: slice_ns, and switch_ns lost  |
 * | a time slice of 2.05 ms                                 | yes                                |
 * | an ioctl preempts a context in the middle of a kernel   | yes; turns last 20 us at least     |
 * | an ioctl disables a context's channels                  | yes: it has no turns until then    |
 * | ... takes 0.2 ms of the caller, 0.4 until another runs  | switch_ns, no time of the caller   |
 * | ... results stay exact                                  | yes                                |
 * | ... no effect under MPS                                 | yes                                |
 * | memory of the dead stays while a descriptor is held     | yes: control.h                     |
 * | ... disjoint masks of SMs do not help                   | yes                                |
 * | MPS: kernels overlap; %smid virtual, lowest first       | yes                                |
 * | ... a mask [66, 132) beside a client that fills starves | yes: the ids do not come up        |
 * | green contexts: the same SMs in every process           | yes: parts                         |
 * | MPS: stream priorities count between processes          | yes: at each block                 |
 * | ... a launch above waits for SMs that others hold       | no: it takes those that are free   |
 * | pinned memory: a copy of 4 bytes reads at the call if   | yes, of up to 64                   |
 * |   nothing in its own stream is in front of it           |                                    |
 * | a wait for an event that is complete is none            | yes                                |
 * | events are none to who waits for a blocking stream      | yes                                |
 * | a block lands where there is room, not where asked      | yes; unkind                        |
 * | SMs x occupancy blocks leave a target SM at 5-6 of 8    | no: all are placed at once, before |
 * |   because surplus goes where others have left           |   any can leave; unkind does it    |
 * | a stop flag is seen at the next claim; claimed = run    | yes                                |
 * | a flag in host memory slows 250 times                   | no: memory has no distance         |
 * | 2.7 us a launch, 2.6 us a memset before it              | 1.5 us and 1.2 us on the device;   |
 * |                                                         |   the host's part is simgpud's own |
 * | NVML: energy anew each 100 ms, power each 50 ms; slow   | no: exact at any time, at once     |
 * | memory of two GPUs, mapping at the same address         | no such functions                  |
 * | kill -9 under MPS can make a neighbour's kernel fail    | yes, where a kernel was running    |
 * | MPS: a fault reaches all clients of the GPU             | yes (not: SIMGPU_FAULTS=contained) |
 * | MPS: at most 48 client contexts a GPU                   | yes                                |
 * | terminate_client ends a client, neighbours go on        | yes: mps-control.c                 |
 * | cuGetProcAddress gives the exported symbol's address    | yes                                |
 * | private export tables; static cudart needs them         | none, and it gives up              |
 * | compute-bound power: a line, 123.5 W + 1.52 W an SM     | yes, for h200                      |
 * | memory-bound power follows bandwidth                    | no: it follows SMs                 |
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/power.h"

#define DEVICE_SMS_MAX	  256
#define DEVICE_PRIORITIES 6 /* 0 lowest; CUDA's 0 to -5 */
#define DEVICE_NEVER	  UINT64_MAX

#define DEVICE_TURN_MIN_NS 20000 /* preempted or not */

struct device_config {
	unsigned n_sms;
	unsigned sm_threads; /* per SM, as the next three */
	unsigned sm_blocks;
	unsigned sm_regs;
	unsigned sm_shared_bytes;
	unsigned copy_engines; /* 1: both directions; 2: one each */
	bool shared;	       /* MPS */
	uint64_t place_seed;   /* not 0: any SM with room takes a block, unkindly, not R1-R3 */
	uint64_t slice_ns;
	uint64_t switch_ns; /* lost when blocks of one space make room for another's */
	uint64_t launch_ns;
	uint64_t copy_latency_ns;
	uint64_t host_bytes_per_ms;   /* over the bus */
	uint64_t device_bytes_per_ms; /* inside device memory: DtoD copies, memsets */
	struct power_config power;
};

struct device;
struct device_space;
struct device_part;
struct device_stream;

enum device_op_kind {
	DEVICE_KERNEL,
	DEVICE_COPY_IN,	   /* host to device */
	DEVICE_COPY_OUT,   /* device to host */
	DEVICE_COPY_LOCAL, /* within the device, memsets: needs no copy engine */
	DEVICE_EVENT,	   /* records an event */
	DEVICE_WAIT,	   /* waits for one */
	DEVICE_VALUE,	   /* waits until the backend sees the value that it is for */
	DEVICE_HOST,	   /* a host function: done when device_op_complete() says so */
	DEVICE_ACTION,	   /* takes no time: done as soon as it is reached */
};

struct device_event {
	uint64_t recorded; /* number of the last record submitted; 0: never */
	uint64_t done;	   /* number of the last one reached */
	uint64_t done_ns;
	size_t n_others; /* EVENT operations of the last record that come before its last one */
};

struct device_kernel {
	unsigned threads; /* per block, as the next two */
	unsigned regs;	  /* of the whole block, rounded as the hardware does */
	unsigned shared_bytes;
	uint64_t n_blocks;
};

enum device_op_state {
	DEVICE_OP_QUEUED,  /* in its stream */
	DEVICE_OP_PENDING, /* at the head; in an engine's queue, or waiting for an event or the host
			    */
	DEVICE_OP_RUNNING, /* blocks assigned, or on the copy engine */
};

/* An operation of a stream; the caller embeds it. Fields above the line are the caller's to set. */
struct device_op {
	enum device_op_kind kind;
	struct device_kernel kernel; /* KERNEL */
	unsigned level;		     /* KERNEL: priority and one; 0: the stream's */
	struct device_part *part;    /* KERNEL: on whose SMs; of the stream's space; NULL: on all */
	uint64_t bytes;		     /* copies */
	struct device_event *event;  /* EVENT, WAIT: borrowed until the op is done */
	uint64_t event_number; /* EVENT, WAIT: which record; 0 for WAIT: nothing to wait for */
	/* -------- */
	enum device_op_state state;
	uint64_t seq; /* order of submission on this device, from 1 */
	struct device_stream *stream;
	struct device_op *next;	      /* in the stream */
	struct device_op *next_queue; /* in the EE or CE queue */
	uint64_t next_block, done_blocks;
	uint64_t start_ns;
};

/* A block on an SM, as the backend and the trace see it. */
struct device_block {
	struct device_op *op;
	uint64_t index;
	unsigned sm;   /* physical */
	unsigned smid; /* what the block sees */
	uint64_t start_ns;
	void *state; /* the backend's */
	/* -------- */
	bool ended;
};

enum device_result {
	DEVICE_DONE, /* the block has ended */
	DEVICE_MORE,
	DEVICE_FAULT, /* the whole space fails */
};

struct device_backend {
	/* Starts a block: sets block->state. Return: 0 or a negative errno (the space fails). */
	int (*block_start)(void *userdata, struct device_block *block);
	/* Runs a slice at @now_ns. @sm_threads: resident threads of its SM, its own included.
	 * @ret_ns: how long it took. */
	enum device_result (*block_run)(void *userdata, struct device_block *block, uint64_t now_ns,
					unsigned sm_threads, uint64_t *ret_ns);
	/* Frees block->state. @end_ns: when it ended; DEVICE_NEVER if it was stopped. */
	void (*block_end)(void *userdata, struct device_block *block, uint64_t end_ns);
	/* Whether a VALUE operation, which is at the head of its stream, need not wait any more. */
	bool (*value_reached)(void *userdata, const struct device_op *op);
	/* A HOST operation is due. */
	void (*host_due)(void *userdata, struct device_op *op);
	/* @op is done: a copy's bytes are to be moved now, an event is recorded. @ok is false when
	 * it was dropped because its space failed or is being freed. Gives @op back to the caller,
	 * which may free it, and may not call device functions from here. */
	void (*op_done)(void *userdata, struct device_op *op, bool ok);
	/* The space has failed: later submissions are dropped. */
	void (*space_failed)(void *userdata, struct device_space *space);
};

/* Return: 0 or -ENOMEM. Time begins at @now_ns. @backend and @userdata are borrowed. */
int device_new(struct device **ret, const struct device_config *config, uint64_t now_ns,
	       const struct device_backend *backend, void *userdata);
struct device *device_free(struct device *d); /* no spaces left */

int device_space_new(struct device_space **ret, struct device *d, void *owner);
/* Stops its blocks, drops its operations (op_done with ok false), frees its streams. */
struct device_space *device_space_free(struct device_space *s);
void *device_space_owner(const struct device_space *s);
/* Fails it from outside, as a fault of one of its blocks does. */
void device_space_stop(struct device_space *s);
/* A kernel of it has begun and is not done. */
bool device_space_runs_kernel(const struct device_space *s);
bool device_space_has_failed(const struct device_space *s);
/*
 * Exclusive: ends the turn of the space if it is its turn, in the middle of whatever it runs; what
 * it runs goes on at its next turn. A turn lasts DEVICE_TURN_MIN_NS at least, so however often this
 * is called, everybody's work goes on.
 */
void device_space_preempt(struct device_space *s);
/* Exclusive: the space's turns last @ns from now on, the present one too; 0: as the config says. */
void device_space_set_slice(struct device_space *s, uint64_t ns);
/*
 * Exclusive: the space has turns, or none, from now on; what it runs stands still where it is,
 * until it has turns again. Its copies go on. Its last turn lasts until another space has one, or
 * it is preempted.
 */
enum device_turns { DEVICE_NO_TURNS, DEVICE_LAST_TURN, DEVICE_TURNS };
void device_space_enable(struct device_space *s, enum device_turns turns);
/* Turns that have begun, and those that device_space_preempt() has ended. */
uint64_t device_turns(const struct device *d);
uint64_t device_preemptions(const struct device *d);

/*
 * A green context: some SMs of the GPU, @sms as a bit mask of DEVICE_SMS_MAX bits, with EE queues
 * and virtual %smid of its own, in the memory of the space. Lives as long as the space. Return: 0,
 * -ENOMEM.
 */
int device_part_new(struct device_part **ret, struct device_space *s, const uint64_t *sms);

enum device_stream_kind {
	DEVICE_STREAM_BLOCKING, /* ordered against the NULL stream */
	DEVICE_STREAM_NON_BLOCKING,
	DEVICE_STREAM_NULL,
};

int device_stream_new(struct device_stream **ret, struct device_space *s,
		      enum device_stream_kind kind, unsigned priority);
/* A stream of a green context, to be told by device_busy_streams(). */
void device_stream_set_part(struct device_stream *st, const struct device_part *part);
/* What is queued still runs; the stream is freed after its last operation. */
struct device_stream *device_stream_free(struct device_stream *st);
struct device_space *device_stream_space(const struct device_stream *st);

/* Appends to the stream at the present virtual time. Takes @op until op_done. */
void device_submit(struct device_stream *st, struct device_op *op);
/* A HOST operation has returned. */
void device_op_complete(struct device_op *op);
/* Looks again at heads that wait for events of other devices, or for values. */
void device_poke(struct device *d);
/* Whether some stream waits for a value: nobody tells when that changes. */
bool device_awaits_value(const struct device *d);

/* Every operation with a number up to @seq is done. */
bool device_stream_passed(const struct device_stream *st, uint64_t seq);
bool device_space_passed(const struct device_space *s, uint64_t seq);
/* The streams of @s, or of @part alone unless that is NULL, with operations that are not done,
 * freed ones included: at most @max of them. Return: how many there are. */
size_t device_busy_streams(const struct device_space *s, const struct device_part *part,
			   struct device_stream **ret, size_t max);
/* Number of the last operation submitted to the device. */
uint64_t device_last_seq(const struct device *d);

uint64_t device_now_ns(const struct device *d);
/* When the next event is due; DEVICE_NEVER: nothing to do. */
uint64_t device_next_ns(const struct device *d);
/* Handles the next event: one slice of one block, or the end of a copy, or a change of turns. */
void device_step(struct device *d);
/* Lets idle time pass up to @ns, but not beyond the next event. */
void device_pass(struct device *d, uint64_t ns);

const struct power *device_power(const struct device *d);

/* Blocks of this shape that fit on one SM; 0: none ever. */
unsigned device_occupancy(const struct device_config *c, const struct device_kernel *k);
