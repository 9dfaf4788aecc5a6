/*
 * driver.h: what the files of the simulated libcuda.so.1 share. One file a topic (api-*.c) with the
 * driver's functions as cuda.h declares them; this is what they stand on.
 *
 * Handles are pointers to the structures below, each with a tag in its first word by which a handle
 * of the wrong kind is told (a pointer to nowhere crashes, as with the real driver). What they
 * describe lives in simgpud, under a number. Handles may be used by any thread; destroying one
 * while another thread uses it is the program's mistake, as ever.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/simgpu/client.h"

#define EXPORT __attribute__((visibility("default")))

#define DRIVER_VERSION 13000

#define DRIVER_GROUPS	4 /* channel groups of a context */
#define DRIVER_CHANNELS 2 /* of its first group, which computes; the others have one */

enum driver_tag {
	DRIVER_CONTEXT = 0x53435458,
	DRIVER_GREEN = 0x5347524e,
	DRIVER_STREAM = 0x53535452,
	DRIVER_EVENT = 0x53455654,
	DRIVER_MODULE = 0x534d4f44,
	DRIVER_FUNCTION = 0x5346554e,
	DRIVER_LIBRARY = 0x534c4942,
	DRIVER_KERNEL = 0x534b524e,
	DRIVER_GRAPH = 0x53475248,
	DRIVER_GRAPH_EXEC = 0x53475845,
};

#define STREAM_ATTRIBUTES 4

struct stream_attributes {
	CUstreamAttrValue values[STREAM_ATTRIBUTES];
};

struct CUctx_st {
	uint32_t tag;
	uint32_t id;
	uint32_t null_stream;
	int device;
	unsigned flags;
	bool is_primary;
	CUgreenCtx
		green; /* NULL, or of which it is the alias; then all else is the primary one's */
	int fault;     /* atomic: CUresult that every call gets from now on */
	struct CUctx_st *next;	  /* in driver.contexts or driver.destroyed */
	struct CUmod_st *modules; /* under driver.list_lock */
	size_t limits[CU_LIMIT_MAX];
	struct stream_attributes attributes; /* of its legacy stream */
	uint32_t groups[DRIVER_GROUPS];	     /* handles of its channel groups; 0: none */
	uint32_t channels[DRIVER_GROUPS][DRIVER_CHANNELS]; /* of their channels; 0: none */
};

struct CUgreenCtx_st {
	uint32_t tag;
	uint32_t id;
	CUcontext context; /* the primary one, of which it holds a reference */
	CUcontext alias;   /* owned: what stands for it as a context; NULL: not asked for yet */
	CUdevice device;
	unsigned n_sms;
};

struct CUstream_st {
	uint32_t tag;
	uint32_t id;
	CUcontext context;
	CUgreenCtx green; /* NULL: of the context itself */
	unsigned flags;
	int priority;
	struct stream_attributes attributes;
};

struct CUevent_st {
	uint32_t tag;
	uint32_t id;
	CUcontext context;
	unsigned flags;
	uint64_t capture; /* in which it was last recorded, and where there; 0: none */
	unsigned branch, n_changes;
};

struct CUmod_st {
	uint32_t tag;
	uint32_t id;
	uint32_t n_kernels;
	CUcontext context;
	CUlibrary library;	     /* NULL, or whose it is */
	struct CUmod_st *next;	     /* in context->modules */
	struct CUfunc_st *functions; /* owned: those asked for so far; under driver.lock */
};

struct CUfunc_st {
	uint32_t tag;
	uint32_t index;
	CUmodule module;
	struct CUfunc_st *next;
	unsigned regs, static_shared, local, max_threads;
	int max_dynamic_shared;
	int carveout;
	size_t params_size;
	size_t n_params;
	struct {
		uint32_t offset, size;
	} * params; /* owned */
	char *name; /* owned */
};

struct CUkern_st {
	uint32_t tag;
	CUlibrary library;
	struct CUkern_st *next;
	char *name; /* owned */
};

struct library_module {
	struct library_module *next;
	CUmodule module;
};

struct CUlib_st {
	uint32_t tag;
	char *ptx; /* owned */
	size_t ptx_size;
	unsigned regs_max;
	struct library_module
		*modules;	   /* one for each context that has used it; under driver.lock */
	struct CUkern_st *kernels; /* under driver.lock */
};

struct CUgraphNode_st {
	CUgraphNode next;
	CUgraphNodeType type;
	CUfunction function; /* of kernel nodes */
	CUcontext context;   /* of kernel nodes: as set by hand; NULL: the function's */
	int priority;	     /* of kernel nodes: counts if the graph is to use it */
	void **params;	     /* owned: where the parameters are, as the program was told last */
	size_t size;
	_Alignas(8) uint8_t packet[];
};

struct CUgraph_st {
	uint32_t tag;
	size_t n_nodes;
	CUgraphNode nodes, *last; /* owned */
};

struct driver {
	pthread_mutex_t lock;	    /* guards what says so; held across calls to simgpud that
				     * create things, never across waiting */
	pthread_mutex_t list_lock;  /* guards contexts; held for moments only, as the thread that
				     * reads simgpud's packets takes it */
	struct CUctx_st *contexts;  /* alive */
	struct CUctx_st *destroyed; /* kept: programs ask for a destroyed current context, or
				     * unload its modules, and must be told */
	CUcontext primary[8];
	unsigned primary_refs[8];
	unsigned primary_flags[8];
};
extern struct driver driver;

/* ---- driver.c ---- */

/* The number of a device among all GPUs of simgpud, of which $CUDA_VISIBLE_DEVICES may hide some.
 */
unsigned driver_gpu_index(CUdevice device);
unsigned driver_n_devices(void);

/* CUDA_SUCCESS once cuInit() was called and the process has not forked since. */
CUresult driver_ready(void);
/* The same, and a device number that exists. @ret_gpu: what it is. */
CUresult driver_device(CUdevice device, const struct wire_gpu **ret_gpu);
/* The same, and a current context. A context that has failed gives its error. */
CUresult driver_current(CUcontext *ret);
CUresult context_check(CUcontext context);
const struct wire_gpu *context_gpu(CUcontext context);

/* Requests. The answer's result, or CUDA_ERROR_DEVICE_UNAVAILABLE when simgpud is gone. */
CUresult driver_call(void *request, size_t size, int fd, void *reply, size_t reply_size);
CUresult driver_call2(const struct client_message *request, int fd,
		      const struct client_message *reply);
CUresult driver_post(void *request, size_t size);
/* A request about one or two objects; @ret may be NULL. */
CUresult driver_ask(enum wire_type type, uint32_t object, uint32_t other, uint64_t value,
		    struct wire_value_reply *ret);

/* Notes that @result came back from @context if it is one that stays. Returns it. */
CUresult context_note(CUcontext context, CUresult result);

/* A memfd with @size bytes of @text, or of zeros if it is NULL. Return: it, or -1. */
int driver_memfd(const void *text, size_t size);

/* ---- api-context.c ---- */

CUcontext *context_slot(void); /* of this thread: where its current context stands; never NULL */
CUresult context_new(int device, unsigned flags, bool is_primary, CUcontext *ret);
void context_free(CUcontext context);

/* ---- driver-group.c ---- */

/* Allocates the channel groups of a new context, and frees them, by ioctl; nothing without
 * libsimgpu-ioctl.so. Under driver.lock. */
void groups_new(CUcontext context);
void groups_free(CUcontext context);

/* ---- api-stream.c ---- */

struct target {
	CUcontext context;
	uint32_t stream;
	bool blocking; /* it and the legacy default stream wait for each other */
};
/* A stream of @context, or of @green in it if that is not NULL. */
CUresult stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority,
		    CUstream *ret);
bool stream_is_default(CUstream stream);
/* What @stream means to this thread. @per_thread: 0 is the thread's own stream. */
CUresult stream_target(CUstream stream, bool per_thread, struct target *ret);
/* The same, before a question about @stream, or a setting of it. */
CUresult stream_ask_about(CUstream stream, bool per_thread, struct target *ret);

/* ---- api-graph.c ---- */

CUgraph graph_free(CUgraph g);

/*
 * Before an operation goes to simgpud: if @t's stream is capturing, the request goes into the graph
 * instead (*ret_taken) or there is an error. The stream in the request does not count.
 */
CUresult capture_take(const struct target *t, const struct client_message *m, bool *ret_taken);
/* The same for what cannot stand in a graph: it spoils the capture. */
CUresult capture_refuse(const struct target *t);
/* What is not put into a stream, but names it: only the legacy stream beside the capture of a
 * blocking one spoils that, whatever it is (an H200), but for cuStreamIsCapturing(). */
CUresult capture_beside(const struct target *t);
/* For what concerns all streams of @context: spoils captures in any of them. CUDA tells those of
 * green contexts apart; here they count as the primary one's. */
CUresult capture_refuse_all(CUcontext context);
/* Recording of events, and waiting for them: marks between the streams of a capture. */
CUresult capture_record(const struct target *t, CUevent event, bool *ret_taken);
CUresult capture_wait(const struct target *t, CUevent event, bool *ret_taken);
/* Before calls that CUDA calls unsafe while a capture goes on: they spoil it unless the thread has
 * chosen a mode that lets them be. */
CUresult capture_check_thread(void);
CUresult capture_check_event(CUevent event);

/* ---- api-module.c ---- */

/* The function behind a handle that may be a CUkernel, for @context. */
CUresult function_resolve(CUfunction function, CUcontext context, CUfunction *ret);
/* @regs_max: 0 is any number. */
CUresult module_new(CUcontext context, const char *ptx, size_t size, unsigned regs_max,
		    CUlibrary library, CUmodule *ret, char *log, size_t log_size);
void module_free(CUmodule module);
CUresult module_function(CUmodule module, const char *name, uint32_t index, CUfunction *ret);
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_size);
CUresult function_get_attribute(CUfunction f, CUfunction_attribute what, int *ret);
CUresult function_set_attribute(CUfunction f, CUfunction_attribute what, int value);
/* CU_JIT_MAX_REGISTERS, or 0. */
unsigned image_regs_max(unsigned n, const CUjit_option *options, void *const *values);
/* PTX text of an image, owned by the caller. @log: why not. */
CUresult image_ptx(const void *image, size_t size, const struct wire_gpu *gpu, char **ret,
		   size_t *ret_size, char *log, size_t log_size);
/* Writes @log to where the load options want it, else to stderr. */
void image_log(unsigned n, CUjit_option *options, void **values, const char *log);

/* A whole file, terminated by a zero byte; owned by the caller. */
CUresult file_read(const char *path, char **ret, size_t *ret_size);

/* ---- api-library.c ---- */

CUresult kernel_function(CUkernel kernel, CUcontext context, CUfunction *ret);

/* ---- api-memory.c ---- */

static inline bool memory_is_device(uint64_t addr) {
	return addr >= WIRE_DEVICE_BASE(0);
}
/* Fresh memory that simgpud reaches by the same address. */
CUresult memory_share(size_t size, void **ret);
void memory_unshare(void *addr, size_t size);
/* Whether @size bytes at @addr lie in memory that simgpud can reach. */
bool memory_is_pinned(const void *addr, size_t size);
