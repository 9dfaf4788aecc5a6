/*
 * device-internal.h: what the files of the device model share: device.c (turns, time, spaces),
 * device-stream.c (streams, copy engines), device-block.c (SMs, EE queues, blocks). Not for others.
 *
 * An engine is a set of SMs in use: one for all spaces when the GPU is shared, one for each space
 * when it is exclusive, and then only the active one runs.
 */
#pragma once

#include "tests/simgpu/device.h"
#include "tests/simgpu/heap.h"

struct device_sm {
	unsigned threads, blocks, regs, shared_bytes; /* in use */
};

struct device_engine {
	struct device_engine *next;  /* in device->engines */
	struct device_space *spaces; /* through space->next */
	struct device_sm sms[DEVICE_SMS_MAX];
	unsigned busy_sms;
	struct heap blocks;    /* resident; times are the engine's own */
	uint64_t epoch_ns;     /* device time = epoch + engine time, while active */
	uint64_t suspended_ns; /* engine time, while not active */
	uint64_t resumes_ns;   /* device time when its turn begins, after the switch */
	uint64_t slice_ns;     /* of its turns; 0: as the device's config says */
	bool disabled;	       /* it has no turns */
	bool stays;	       /* but the present one goes on */
};

struct device_queue {
	struct device_op *first, **last;
};

/* SMs that a space uses by queues of their own: all of them, or a green context's. */
struct device_part {
	struct device_part *next; /* in space->parts */
	struct device_space *space;
	bool shuts_out[DEVICE_SMS_MAX]; /* SMs that are not its own */
	struct device_queue ee[DEVICE_PRIORITIES];
	uint16_t sm_blocks[DEVICE_SMS_MAX]; /* of this part on each SM */
	uint16_t sm_virtual[DEVICE_SMS_MAX];
	bool virtual_used[DEVICE_SMS_MAX];
};

struct device_space {
	struct device_space *next; /* in engine->spaces */
	struct device *device;
	struct device_engine *engine;
	void *owner;
	bool failed;
	struct device_stream *streams; /* through stream->next */
	struct device_stream *null_stream;
	struct device_part whole;
	struct device_part *parts; /* all of them, `whole` first */
};

struct device_stream {
	struct device_stream *next;
	struct device_space *space;
	const struct device_part *part; /* of which green context; NULL: none */
	enum device_stream_kind kind;
	unsigned priority;
	bool closing;
	struct device_op *first, **last;
};

struct device_copy_engine {
	struct device_queue queue;
	struct device_op *running;
};

struct device {
	struct device_config config;
	const struct device_backend *backend; /* borrowed */
	void *userdata;
	struct device_engine *engines;
	struct device_engine *active; /* NULL: none yet */
	uint64_t turn_end_ns;
	bool preempted; /* the turn ends before its time */
	uint64_t turns, preemptions;
	struct device_copy_engine copy[2];
	struct heap copies; /* running copies, engine or none */
	uint64_t now_ns;
	uint64_t seq, order;
	uint64_t place_random; /* state of the generator; 0: not used */
	unsigned running;      /* ops in state RUNNING */
	size_t n_copies;       /* submitted and not done */
	unsigned n_values;     /* VALUE operations at the head of a stream */
	bool heads_moved;      /* heads of streams must be looked at */
	struct power power;
};

/* ---- device.c ---- */

/* The state has changed by which power is reckoned. */
void device_update_power(struct device *d);
/* Brings queues, turns and SMs up to date after any change. */
void device_settle(struct device *d);
void device_op_set_running(struct device *d, struct device_op *op);
void device_op_unset_running(struct device *d, struct device_op *op);
void device_space_fail(struct device_space *s);

void device_queue_init(struct device_queue *q);
void device_queue_append(struct device_queue *q, struct device_op *op);
void device_queue_remove(struct device_queue *q, const struct device_op *op);

/* ---- device-block.c ---- */

struct device_part *device_op_part(const struct device_op *op);
/* A2: the highest queue that is not empty, or NULL. */
struct device_queue *device_part_ee_queue(struct device_part *p);
/* Assigns blocks to SMs until nothing fits: of the highest priority first, one for each part of
 * each space in turn. */
void device_dispatch(struct device *d);
/* Takes the block off its SM and frees it. Its heap entry is the caller's business. */
void device_block_release(struct device *d, struct device_block *b, uint64_t end_ns);

/* ---- device-stream.c ---- */

bool device_op_is_copy(const struct device_op *op);
/* NULL: needs none. */
struct device_copy_engine *device_copy_engine(struct device *d, const struct device_op *op);
/* C2, C3. */
void device_copy_engine_next(struct device *d, struct device_copy_engine *ce);
/* G4, C4: the head of its stream is done. */
void device_op_finish(struct device *d, struct device_op *op, bool ok);
/* Advances heads until nothing moves, the operation that was submitted first always first. */
void device_space_advance(struct device *d, struct device_space *s);
void device_stream_unlink(struct device_stream *st);
