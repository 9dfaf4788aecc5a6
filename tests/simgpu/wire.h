/*
 * wire.h: what the client libraries and simgpud say to each other: one structure a packet on a
 * SOCK_SEQPACKET socket, same machine, same build. Requests with id 0 want no reply. Every request
 * of a process comes over one socket, so the order of its threads' calls is kept.
 *
 * Results are CUresult values. Handles are numbers of the session, never 0.
 */
#pragma once

#include <stdint.h>

#define WIRE_VERSION 6

/* Largest packet, data included; well below the default socket buffer. */
#define WIRE_PACKET_MAX (96 * 1024)
/* Copies up to this size carry their bytes in the packet. CUDA stages as much at the call. */
#define WIRE_INLINE_MAX (64 * 1024)

/* Packets that simgpud keeps for a client that does not read. Above the first number of bytes it
 * does not listen to the client until that has read; above the second it lets it go. Both lie above
 * what kernels may have printed (SERVER_PRINT_MAX): who only sends launches need never read. */
#define WIRE_UNREAD_PAUSE (4u * 1024 * 1024)
#define WIRE_UNREAD_MAX	  (16u * 1024 * 1024)
/* CUDA's limit on kernel parameters. */
#define WIRE_PARAMS_MAX	       32764
#define WIRE_NAME_MAX	       4096
#define WIRE_CONFIG_MAX	       256
#define WIRE_KERNEL_PARAMS_MAX 4096

/* Device addresses of GPU i start here and reach over WIRE_DEVICE_SPAN bytes: above every address
 * that a process of x86-64 or aarch64 can have, so that pointers tell what they are. */
#define WIRE_DEVICE_BASE(i) ((1ull << 48) + ((uint64_t)(i) << 40))
#define WIRE_DEVICE_SPAN    (1ull << 40)

#define WIRE_SMS_MAX 256

enum wire_type {
	WIRE_HELLO,
	WIRE_STOP, /* ends simgpud */
	WIRE_GPU_STATE,
	WIRE_CONTEXT_NEW,
	WIRE_CONTEXT_FREE,
	WIRE_CONTEXT_SYNC, /* replies when everything submitted so far is done */
	WIRE_MEMORY_ALLOC,
	WIRE_MEMORY_FREE, /* stream 0: now; else as an operation of the stream */
	WIRE_MEMORY_RANGE,
	WIRE_HOST_MAP, /* brings a memfd: pinned memory */
	WIRE_HOST_UNMAP,
	WIRE_MODULE_LOAD, /* brings a memfd with PTX text */
	WIRE_MODULE_FREE,
	WIRE_KERNEL_FIND, /* by name, or by index when the name is empty */
	WIRE_GLOBAL_FIND,
	WIRE_PART_NEW, /* a green context */
	WIRE_PART_FREE,
	WIRE_STREAM_NEW,
	WIRE_STREAM_FREE,
	WIRE_STREAM_SYNC,
	WIRE_STREAM_QUERY,
	WIRE_EVENT_NEW,
	WIRE_EVENT_FREE,
	WIRE_EVENT_RECORD,
	WIRE_EVENT_RECORD_ALL, /* behind all streams of a context or a green context */
	WIRE_EVENT_WAIT,       /* a stream waits */
	WIRE_EVENT_SYNC,       /* the caller waits */
	WIRE_EVENT_QUERY,
	WIRE_VALUE_WAIT,
	WIRE_VALUE_WRITE,
	WIRE_LAUNCH,
	WIRE_COPY,
	WIRE_FILL,
	WIRE_BATCH, /* brings a memfd with launches, copies and fills: a graph */
	WIRE_HOST_FUNCTION,
	WIRE_HOST_NEXT, /* replies when a host function is due */
	WIRE_HOST_DONE,
	WIRE_LEAVE,	    /* the process ends by itself, and not in the middle of something */
	WIRE_MPS_CLIENTS,   /* who has contexts on shared GPUs */
	WIRE_MPS_TERMINATE, /* ends a client of those; see wire_value_reply */
	_WIRE_REQUEST_N,
	/* from simgpud */
	WIRE_REPLY,
	WIRE_FAULT, /* a context has failed */
	WIRE_PRINT, /* a kernel has printed */
};

struct wire_header {
	uint32_t type;
	uint32_t id;
};

/* First bytes of every reply. */
struct wire_reply {
	struct wire_header h;
	int32_t result;
	uint32_t reserved;
};

struct wire_hello {
	struct wire_header h;
	uint32_t version;
	uint32_t reserved;
	char config[WIRE_CONFIG_MAX]; /* $SIMGPU of the client; empty: any */
};

struct wire_gpu {
	char name[64];
	uint8_t uuid[16];
	uint64_t memory_bytes;
	uint64_t power_limit_mw; /* what it draws with all SMs busy */
	uint32_t cc_major, cc_minor;
	uint32_t n_sms, cores_per_sm;
	uint32_t sm_threads, sm_blocks, sm_regs, sm_shared_bytes;
	uint32_t block_threads_max, block_shared_max, block_shared_optin_max, block_shared_reserved;
	uint32_t sm_clock_khz, memory_clock_khz, bus_width_bits, l2_bytes;
	uint32_t copy_engines;
	uint32_t shared; /* MPS */
	uint32_t integrated;
	uint32_t unused;
};

struct wire_hello_reply {
	struct wire_reply r;
	uint32_t n_gpus;
	uint32_t reserved;
	char config[WIRE_CONFIG_MAX]; /* that simgpud runs with */
	struct wire_gpu gpus[8];
};

struct wire_object { /* requests that name one or two objects */
	struct wire_header h;
	uint32_t object; /* context, stream, event, module, gpu index: as the type says */
	uint32_t other;
	uint64_t value;
	uint64_t value2;
};

struct wire_value_reply {
	struct wire_reply r;
	uint64_t value;
	uint64_t value2;
	uint64_t value3;
};

#define WIRE_MPS_CLIENTS_MAX 256

struct wire_mps_reply {
	struct wire_reply r;
	uint32_t server; /* simgpud's process */
	uint32_t n_clients;
	uint32_t clients[WIRE_MPS_CLIENTS_MAX]; /* processes */
};

/* WIRE_MPS_TERMINATE: value = process. Reply: value = simgpud's process, value2 = contexts that
 * were ended. */

struct wire_gpu_state_reply {
	struct wire_reply r;
	uint64_t power_mw;
	uint64_t energy_mj;
	uint64_t memory_used_bytes;
	uint64_t turns;	      /* of contexts, that have begun */
	uint64_t preemptions; /* turns that were ended by an ioctl */
	uint32_t utilization; /* percent */
	uint32_t n_processes;
};

/* A green context. Reply: its number. */
struct wire_part {
	struct wire_header h;
	uint32_t context;
	uint32_t reserved;
	uint64_t sms[WIRE_SMS_MAX / 64];
};

/* WIRE_STREAM_NEW: object = context or green context, other = enum device_stream_kind, value =
 * priority level. */
/* WIRE_MODULE_LOAD: object = context, value = bytes, other = most registers a thread, 0: any.
 * Reply: module, or a text after the reply. */
/* WIRE_BATCH: object = stream, in the place of those that the requests name; value = bytes. Each
 * request stands behind its size in 8 bytes and is padded to a multiple of that. No other request
 * comes in between. */
#define WIRE_BATCH_ROUND(size) (((size) + 7) & ~(size_t)7)

/* WIRE_HOST_MAP: value = the client's address, value2 = bytes. */
/* WIRE_VALUE_WAIT, WIRE_VALUE_WRITE: object = stream, other = CUstreamWaitValue_flags, value = address
 * of 4 bytes, value2 = what is waited for, or written. */
/* WIRE_EVENT_RECORD_ALL: object = event, other = context or green context. */
/* WIRE_HOST_FUNCTION: object = stream, value = token, handed back by WIRE_HOST_NEXT. */

struct wire_find {
	struct wire_header h;
	uint32_t module;
	uint32_t index;
	char name[]; /* terminated */
};

struct wire_kernel_reply {
	struct wire_reply r;
	uint32_t kernel;    /* index in the module */
	uint32_t n_kernels; /* of the module */
	uint32_t n_params;
	uint32_t params_size;
	uint32_t regs_per_thread;
	uint32_t static_shared_bytes;
	uint32_t local_bytes;
	uint32_t max_threads;
	char name[WIRE_NAME_MAX];
	struct {
		uint32_t offset, size;
	} params[]; /* n_params */
};

struct wire_launch {
	struct wire_header h;
	uint32_t stream;
	uint32_t module;
	uint32_t kernel;
	uint32_t shared_bytes; /* dynamic */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t params_size;
	uint32_t part; /* green context on whose SMs it runs, whatever the stream; 0: on all */
	uint32_t level;	   /* its priority level and one, whatever the stream; 0: the stream's */
	uint32_t reserved; /* 0 */
	uint8_t params[];
};

enum wire_place {
	WIRE_INLINE, /* the packet's own bytes, or the reply's */
	WIRE_HOST,   /* pinned memory, by the client's address */
	WIRE_DEVICE,
};

/* Rows of @width bytes, @height of them. With id not 0 the reply comes when the copy is done
 * (@wait) or when it is known to be possible. The bytes of an inline source follow. */
struct wire_copy {
	struct wire_header h;
	uint32_t stream;
	uint32_t wait;
	uint32_t from, to; /* enum wire_place */
	uint64_t source, target;
	uint64_t source_pitch, target_pitch;
	uint64_t width, height;
};

/* Sets @height rows of @width elements of @element bytes. Bounds are replied to, as above. */
struct wire_fill {
	struct wire_header h;
	uint32_t stream;
	uint32_t wait;
	uint64_t target;
	uint64_t pitch;
	uint64_t width, height;
	uint32_t element;
	uint32_t value;
};

struct wire_fault {
	struct wire_header h; /* id 0 */
	uint32_t context;
	int32_t result;
	char text[];
};

struct wire_print {
	struct wire_header h;
	char text[];
};
