/*
 * server.h: what simgpud keeps: GPUs, the client processes and their objects.
 *
 * One thread, one loop (server.c). A client is a process; it owns contexts, and those own all else:
 * streams, events, modules, memory. When its connection ends, all of that goes at once (session.c).
 * Device models call back into exec.c, which runs blocks and moves bytes.
 */
#pragma once

#include "tests/simgpu/ahead.h"
#include "tests/simgpu/config.h"
#include "tests/simgpu/control.h"
#include "tests/simgpu/interp.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/trace.h"
#include "tests/simgpu/wire.h"

/* Warp instructions that a block runs in one slice: the grain at which resident blocks interleave,
 * and at which the loop looks at its clients. */
#define SERVER_SLICE_INSTRUCTIONS 512

/* Output of kernels that a client does not read is dropped above this, as CUDA's buffer does. */
#define SERVER_PRINT_MAX (1024 * 1024)

/* Contexts that a shared GPU serves at a time, as the hardware does under MPS. */
#define SERVER_MPS_CONTEXTS_MAX 48

struct server;
struct client;

struct gpu {
	struct server *server; /* borrowed, as all pointers upwards here */
	unsigned index;
	const struct config_gpu *config;
	struct device *device;
	struct memory memory;
	unsigned n_contexts;
	struct context *faulty; /* its fault is to reach all others; NULL: none */
};

struct context {
	struct client *client;
	struct gpu *gpu;
	uint32_t id;
	struct device_space *space; /* owned */
	struct interp_machine machine;
	int fault; /* CUresult that every later call gets; 0: none */
	char fault_text[512];
	struct context *next_orphan; /* in control_file->orphans */
};

/* A green context. */
struct part {
	struct context *context;
	struct device_part *device; /* the space's */
};

struct stream {
	struct context *context;
	struct device_stream *device; /* owned */
};

/* One recording of an event. Who waits for it goes on when it is reached, wherever the event is
 * recorded after that. */
struct mark {
	unsigned n_refs; /* the event and every operation that uses it */
	struct device_event device;
};

struct event {
	struct context *context;
	struct mark *mark; /* the last recording; never NULL */
	uint64_t n_marks;
};

struct module {
	struct context *context;
	unsigned n_refs; /* the handle and every launch in flight */
	struct interp_module *interp;
	unsigned regs_max; /* a thread's; 0: any number */
	uint64_t *vars;	   /* owned: device addresses */
};

struct pinned {
	uint64_t start, size; /* in the client's address space */
	uint8_t *host;	      /* owned mapping */
};

enum object_type {
	OBJECT_NONE,
	OBJECT_CONTEXT,
	OBJECT_PART,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
};

struct object {
	enum object_type type;
	void *p;
};

struct packet; /* waits for room in a client's socket */

/* A request whose reply waits for operations to be done. */
struct wait {
	struct wait *next;
	uint32_t id;
	struct context *context;
	struct device_stream *stream; /* NULL: all of the context's */
	uint64_t seq;
	struct mark *mark; /* owned reference, or NULL: then the above counts */
};

struct client {
	struct client *next;
	struct server *server;
	int fd; /* owned */
	int pid;
	bool said_hello;
	bool broken;		/* to be freed by the loop */
	bool leaves;		/* it ends in good order */
	struct object *objects; /* owned; handle = index + 1 */
	size_t n_objects;
	struct pinned *pinned; /* owned */
	size_t n_pinned;
	struct packet *out, **out_last;
	size_t out_bytes;
	struct wait *waits;
	struct op *host_due, **host_last; /* host functions that no thread has fetched yet */
	uint32_t host_next_id;		  /* of the request that waits for one; 0: none waits */
	struct op *host_running;	  /* the one that was fetched */
	int unasked; /* result of the last request that wanted no reply and failed */
};

/* What a device operation means to the server. */
struct op {
	struct device_op base; /* first */
	struct context *context;
	uint32_t reply_id; /* answered when it is done; 0: not */
	struct op *next;   /* host_due */
	struct module *module;
	struct interp_launch launch;
	struct interp_kernel_info kernel;
	struct wire_copy copy;
	struct wire_fill fill;
	struct mark *mark;	  /* owned reference */
	uint64_t value;		  /* token of a host function, address to free or to look at */
	uint32_t wanted, compare; /* VALUE: what is waited for there, and how */
	uint8_t data[];		  /* parameters of a launch, bytes of a copy */
};

struct server {
	struct config config;
	char config_text[WIRE_CONFIG_MAX];
	struct gpu gpus[CONFIG_GPUS_MAX];
	struct client *clients;
	struct control_file *files;
	uint32_t n_groups; /* channel groups allocated so far */
	int listen_fd;	   /* owned */
	int control_fd;	   /* owned: nvidiactl */
	bool paced;
	bool contained; /* faults of a client stay in it, unlike under MPS */
	/* The ioctls are refused, as by a driver that does not know them, or answer success and do
	 * nothing. */
	bool no_preempt, ignores_preempt, no_slices, ignores_slices, no_disable;
	bool stop;
	bool had_client;
	bool moved; /* some operation was done: waits and other devices must look again */
	uint64_t alone_since_ns;
	struct trace *trace; /* owned, or NULL */
	unsigned n_threads;  /* that interpret, the loop's included */
	struct ahead *ahead; /* owned, while server_run() runs */
};

/* server.c */
struct server_options {	  /* texts of the environment may be NULL */
	const char *gpus; /* $SIMGPU */
	const char *socket_path, *control_path;
	const char *trace_path; /* NULL: no trace */
	const char *place, *slice, *host_rate;
	bool paced;
};
int server_init(struct server *s, const struct server_options *o, char *error, size_t error_size);
int server_run(struct server *s);
void server_deinit(struct server *s);
/* Sends or queues; a client that is gone is marked broken. */
void client_send(struct client *c, const void *packet, size_t n);
void client_send2(struct client *c, const void *head, size_t n, const void *data, size_t size);
void client_reply(struct client *c, uint32_t id, int result);

/* session.c */
struct client *client_free(struct client *c);
/* Handles one packet. @fd: came along, or -1; taken. */
void session_handle(struct client *c, const void *packet, size_t n, int fd);
/* Answers the waits that are over. */
void session_settle(struct client *c);
struct mark *mark_unref(struct mark *m);
struct module *module_unref(struct module *m);
/* As interp_kernel_get_info(), with no more registers than the module was compiled for. */
void module_kernel_info(const struct module *m, const struct interp_kernel *kernel,
			struct interp_kernel_info *ret);
/* Hands the next due host function to the client if it waits for one. */
void session_hand_host(struct client *c);

/* exec.c */
extern const struct device_backend exec_backend;
void exec_context_init(struct context *c);
/* What befalls @c reaches every other context of its GPU. */
void exec_spread(struct context *c, int result, const char *text);
/* The same for faults of kernels on shared GPUs, some time after they happened. */
void exec_settle_faults(struct gpu *gpu);
/* Ends all that the context runs; every later call of its client gets @result. */
void exec_fail(struct context *c, int result, const char *text);
/* Host address of a copy's row range as that side's place says; NULL if it is not the client's. */
uint8_t *exec_resolve(struct context *c, uint64_t addr, uint64_t size, bool write);
struct op *op_free(struct op *op);
