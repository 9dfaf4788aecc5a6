/*
 * api-stream.c: streams, events, host functions. Capture is in api-graph.c.
 */
#include <signal.h>
#include <stdlib.h>

#include "tests/simgpu/device.h"
#include "tests/simgpu/driver.h"

/* ---- streams of threads ---- */

/* The per-thread default streams of one thread, one for each context that it has used. */
struct thread_stream {
	struct thread_stream *next;
	CUcontext context;
	uint32_t stream;
};

static pthread_key_t thread_streams_key;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;

static void thread_streams_free(void *p) {
	for (struct thread_stream *t = p, *next; t; t = next) {
		struct wire_object q = {.h = {.type = WIRE_STREAM_FREE}, .object = t->stream};

		next = t->next;
		if (t->context->tag == DRIVER_CONTEXT) {
			(void)driver_post(&q, sizeof(q));
		}
		free(t);
	}
}

static void thread_streams_init(void) {
	pthread_key_create(&thread_streams_key, thread_streams_free);
}

static CUresult thread_stream(CUcontext context, uint32_t *ret) {
	struct wire_value_reply reply;
	struct thread_stream *first, *t;
	CUresult r;

	pthread_once(&thread_streams_once, thread_streams_init);
	first = pthread_getspecific(thread_streams_key);
	for (t = first; t; t = t->next) {
		if (t->context == context) {
			*ret = t->stream;
			return CUDA_SUCCESS;
		}
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = driver_ask(WIRE_STREAM_NEW, context->id, DEVICE_STREAM_BLOCKING, 0, &reply);
	if (r != CUDA_SUCCESS) {
		free(t);
		return r;
	}
	*t = (struct thread_stream){
		.next = first, .context = context, .stream = (uint32_t)reply.value};
	pthread_setspecific(thread_streams_key, t);
	*ret = t->stream;
	return CUDA_SUCCESS;
}

CUresult stream_target(CUstream stream, bool per_thread, struct target *ret) {
	struct target t = {0};
	CUresult r;

	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		r = driver_ready();
		if (r != CUDA_SUCCESS) {
			return r;
		}
		if (stream->tag != DRIVER_STREAM) {
			return CUDA_ERROR_INVALID_HANDLE;
		}
		t = (struct target){.context = stream->context,
				    .stream = stream->id,
				    .blocking = !(stream->flags & CU_STREAM_NON_BLOCKING)};
		r = context_check(t.context);
	} else {
		r = driver_current(&t.context);
		if (r == CUDA_SUCCESS) {
			per_thread = stream ? stream == CU_STREAM_PER_THREAD : per_thread;
			t.stream = t.context->null_stream;
			t.blocking = per_thread;
			r = per_thread ? thread_stream(t.context, &t.stream) : CUDA_SUCCESS;
		}
	}
	if (r == CUDA_SUCCESS) {
		*ret = t;
	}
	return r;
}

CUresult stream_ask_about(CUstream stream, bool per_thread, struct target *ret) {
	CUresult r = stream_target(stream, per_thread, ret);

	return r == CUDA_SUCCESS ? capture_beside(ret) : r;
}

/* ---- streams ---- */

bool stream_is_default(CUstream stream) {
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

CUresult stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority,
		    CUstream *ret) {
	enum device_stream_kind kind = flags & CU_STREAM_NON_BLOCKING ? DEVICE_STREAM_NON_BLOCKING
								      : DEVICE_STREAM_BLOCKING;
	struct wire_value_reply reply;
	CUstream s = calloc(1, sizeof(*s));
	CUresult r;

	if (!s) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Out of range means the nearest, as cuda.h says. */
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	r = driver_ask(WIRE_STREAM_NEW, green ? green->id : context->id, kind, (uint64_t)-priority,
		       &reply);
	if (r != CUDA_SUCCESS) {
		free(s);
		return r;
	}
	*s = (struct CUstream_st){.tag = DRIVER_STREAM,
				  .id = (uint32_t)reply.value,
				  .context = context,
				  .green = green,
				  .flags = flags,
				  .priority = priority};
	*ret = s;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags,
						   int priority) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return stream_new(c, NULL, flags, priority, phStream);
}

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags) {
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream hStream) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD ||
	    hStream->tag != DRIVER_STREAM) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (hStream->context->tag == DRIVER_CONTEXT) {
		r = driver_ask(WIRE_STREAM_FREE, hStream->id, 0, 0, NULL);
	}
	hStream->tag = 0;
	free(hStream);
	return r;
}

/* WIRE_STREAM_SYNC or WIRE_STREAM_QUERY. */
static CUresult stream_ask(CUstream stream, enum wire_type type, bool per_thread) {
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r == CUDA_SUCCESS) {
		r = capture_refuse(&t);
	}
	if (r == CUDA_SUCCESS) {
		r = capture_check_thread();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	return context_note(t.context, driver_ask(type, t.stream, 0, 0, NULL));
}

static CUresult stream_wait_event(CUstream stream, CUevent event, bool per_thread) {
	struct wire_object q = {.h = {.type = WIRE_EVENT_WAIT}};
	struct target t;
	bool taken;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!event || event->tag != DRIVER_EVENT) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = capture_wait(&t, event, &taken);
	if (r != CUDA_SUCCESS || taken) {
		return r;
	}
	q.object = event->id;
	q.other = t.stream;
	return driver_post(&q, sizeof(q));
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream hStream) {
	return stream_ask(hStream, WIRE_STREAM_SYNC, false);
}

EXPORT typeof(cuStreamSynchronize) cuStreamSynchronize_ptsz;
EXPORT CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream) {
	return stream_ask(hStream, WIRE_STREAM_SYNC, true);
}

EXPORT CUresult CUDAAPI cuStreamQuery(CUstream hStream) {
	return stream_ask(hStream, WIRE_STREAM_QUERY, false);
}

EXPORT typeof(cuStreamQuery) cuStreamQuery_ptsz;
EXPORT CUresult CUDAAPI cuStreamQuery_ptsz(CUstream hStream) {
	return stream_ask(hStream, WIRE_STREAM_QUERY, true);
}

EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
	(void)Flags;
	return stream_wait_event(hStream, hEvent, false);
}

EXPORT typeof(cuStreamWaitEvent) cuStreamWaitEvent_ptsz;
EXPORT CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent,
					       unsigned int Flags) {
	(void)Flags;
	return stream_wait_event(hStream, hEvent, true);
}

static bool stream_is_own(CUstream stream) {
	return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

static CUresult stream_get_id(CUstream stream, unsigned long long *ret, bool per_thread) {
	struct target t;
	CUresult r = stream_ask_about(stream, per_thread, &t);

	if (r == CUDA_SUCCESS) {
		*ret = t.stream;
	}
	return r;
}

/* What is the same for both kinds of default stream. @own: not a default stream; @t: its target. */
#define STREAM_GET(name, type, value)                                     \
	EXPORT CUresult CUDAAPI name(CUstream stream, type *ret) {        \
		bool own = stream_is_own(stream);                         \
		struct target t;                                          \
		CUresult r = stream_ask_about(stream, false, &t);         \
                                                                          \
		(void)own;                                                \
		if (r == CUDA_SUCCESS) {                                  \
			*ret = (value);                                   \
		}                                                         \
		return r;                                                 \
	}                                                                 \
	EXPORT typeof(name) name##_ptsz;                                  \
	EXPORT CUresult CUDAAPI name##_ptsz(CUstream stream, type *ret) { \
		return name(stream, ret);                                 \
	}
STREAM_GET(cuStreamGetPriority, int, own ? stream->priority : 0)
STREAM_GET(cuStreamGetFlags, unsigned int, own ? stream->flags : 0)
STREAM_GET(cuStreamGetCtx, CUcontext, t.context)
STREAM_GET(cuStreamGetDevice, CUdevice, t.context->device)
#undef STREAM_GET

EXPORT CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
	return stream_get_id(hStream, streamId, false);
}

EXPORT typeof(cuStreamGetId) cuStreamGetId_ptsz;
EXPORT CUresult CUDAAPI cuStreamGetId_ptsz(CUstream hStream, unsigned long long *streamId) {
	return stream_get_id(hStream, streamId, true);
}

/* ---- events ---- */

EXPORT CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags) {
	struct wire_value_reply reply;
	CUcontext c;
	CUevent e;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!phEvent || (Flags & CU_EVENT_INTERPROCESS)) {
		return phEvent ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = driver_ask(WIRE_EVENT_NEW, c->id, 0, 0, &reply);
	if (r != CUDA_SUCCESS) {
		free(e);
		return r;
	}
	*e = (struct CUevent_st){
		.tag = DRIVER_EVENT, .id = (uint32_t)reply.value, .context = c, .flags = Flags};
	*phEvent = e;
	return CUDA_SUCCESS;
}

static CUresult event_check(CUevent event) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!event || event->tag != DRIVER_EVENT) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	return context_check(event->context);
}

EXPORT CUresult CUDAAPI cuEventDestroy(CUevent hEvent) {
	struct wire_object q = {.h = {.type = WIRE_EVENT_FREE}};

	if (driver_ready() != CUDA_SUCCESS) {
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (!hEvent || hEvent->tag != DRIVER_EVENT) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	q.object = hEvent->id;
	if (hEvent->context->tag == DRIVER_CONTEXT) {
		(void)driver_post(&q, sizeof(q));
	}
	hEvent->tag = 0;
	free(hEvent);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream, bool per_thread) {
	struct wire_object q = {.h = {.type = WIRE_EVENT_RECORD}};
	struct target t;
	bool taken;
	CUresult r = event_check(event);

	if (r == CUDA_SUCCESS) {
		r = stream_target(stream, per_thread, &t);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (t.context != event->context) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = capture_record(&t, event, &taken);
	if (r != CUDA_SUCCESS || taken) {
		return r;
	}
	q.object = event->id;
	q.other = t.stream;
	return driver_post(&q, sizeof(q));
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream) {
	return event_record(hEvent, hStream, false);
}

EXPORT typeof(cuEventRecord) cuEventRecord_ptsz;
EXPORT CUresult CUDAAPI cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) {
	return event_record(hEvent, hStream, true);
}

EXPORT CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream,
					       unsigned int flags) {
	return flags ? CUDA_ERROR_NOT_SUPPORTED : event_record(hEvent, hStream, false);
}

EXPORT typeof(cuEventRecordWithFlags) cuEventRecordWithFlags_ptsz;
EXPORT CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream,
						    unsigned int flags) {
	return flags ? CUDA_ERROR_NOT_SUPPORTED : event_record(hEvent, hStream, true);
}

/* @green: NULL: all streams of @context, those of its green contexts included. */
static CUresult event_record_all(CUevent event, CUcontext context, CUgreenCtx green) {
	struct wire_object q = {.h = {.type = WIRE_EVENT_RECORD_ALL}};
	CUresult r = event_check(event);

	if (r == CUDA_SUCCESS) {
		r = context_check(context);
	}
	if (r == CUDA_SUCCESS && context->id != event->context->id) {
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	if (r == CUDA_SUCCESS) {
		r = capture_refuse_all(context);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	event->capture = 0;
	q.object = event->id;
	q.other = green ? green->id : context->id;
	return driver_post(&q, sizeof(q));
}

EXPORT CUresult CUDAAPI cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
	return event_record_all(hEvent, hCtx, hCtx ? hCtx->green : NULL);
}

EXPORT CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
	if (!hCtx || hCtx->tag != DRIVER_GREEN) {
		return driver_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT
						      : CUDA_ERROR_NOT_INITIALIZED;
	}
	return event_record_all(hEvent, hCtx->context, hCtx);
}

EXPORT CUresult CUDAAPI cuEventQuery(CUevent hEvent) {
	CUresult r = event_check(hEvent);

	if (r == CUDA_SUCCESS) {
		r = capture_check_event(hEvent);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	return context_note(hEvent->context, driver_ask(WIRE_EVENT_QUERY, hEvent->id, 0, 0, NULL));
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent hEvent) {
	CUresult r = event_check(hEvent);

	if (r == CUDA_SUCCESS) {
		r = capture_check_event(hEvent);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	return context_note(hEvent->context, driver_ask(WIRE_EVENT_SYNC, hEvent->id, 0, 0, NULL));
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
	struct wire_value_reply start, end;
	CUresult r = event_check(hStart);

	if (r == CUDA_SUCCESS) {
		r = event_check(hEnd);
	}
	if (r != CUDA_SUCCESS || !pMilliseconds) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if ((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = driver_ask(WIRE_EVENT_QUERY, hStart->id, 0, 0, &start);
	if (r == CUDA_SUCCESS) {
		r = driver_ask(WIRE_EVENT_QUERY, hEnd->id, 0, 0, &end);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (start.value2 == 0 || end.value2 == 0) {
		return CUDA_ERROR_INVALID_HANDLE; /* never recorded */
	}
	*pMilliseconds = (float)((double)(int64_t)(end.value - start.value) / 1e6);
	return CUDA_SUCCESS;
}

/* ---- values in memory ---- */

static CUresult value_submit(enum wire_type type, CUstream stream, bool per_thread,
			     CUdeviceptr address, uint32_t value, unsigned flags) {
	struct wire_object q = {
		.h = {.type = type}, .other = flags, .value = address, .value2 = value};
	struct wire_reply reply;
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r == CUDA_SUCCESS && flags > (type == WIRE_VALUE_WAIT ? CU_STREAM_WAIT_VALUE_NOR : 0)) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		r = capture_refuse(&t); /* no such nodes are simulated */
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	q.object = t.stream;
	return context_note(t.context, driver_call(&q, sizeof(q), -1, &reply, sizeof(reply)));
}

EXPORT CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					    unsigned int flags) {
	return value_submit(WIRE_VALUE_WAIT, stream, false, addr, value, flags);
}

EXPORT typeof(cuStreamWaitValue32_v2) cuStreamWaitValue32_v2_ptsz;
EXPORT CUresult CUDAAPI cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr,
						    cuuint32_t value, unsigned int flags) {
	return value_submit(WIRE_VALUE_WAIT, stream, true, addr, value, flags);
}

EXPORT CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					     unsigned int flags) {
	return value_submit(WIRE_VALUE_WRITE, stream, false, addr, value, flags);
}

EXPORT typeof(cuStreamWriteValue32_v2) cuStreamWriteValue32_v2_ptsz;
EXPORT CUresult CUDAAPI cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr addr,
						     cuuint32_t value, unsigned int flags) {
	return value_submit(WIRE_VALUE_WRITE, stream, true, addr, value, flags);
}

/* ---- host functions ---- */

struct host_call {
	CUhostFn function;
	CUstreamCallback callback; /* the older form, with stream and status */
	CUstream stream;
	void *data;
};

/* Runs host functions one after the other, as CUDA does, on a thread of the driver's own. */
static void *host_thread(void *unused) {
	(void)unused;
	for (;;) {
		struct wire_object done = {.h = {.type = WIRE_HOST_DONE}};
		struct wire_value_reply reply;
		struct host_call *call;

		if (driver_ask(WIRE_HOST_NEXT, 0, 0, 0, &reply) != CUDA_SUCCESS) {
			return NULL;
		}
		call = (struct host_call *)(uintptr_t)reply.value;
		if (call->callback) {
			call->callback(call->stream, CUDA_SUCCESS, call->data);
		} else {
			call->function(call->data);
		}
		free(call);
		(void)driver_post(&done, sizeof(done));
	}
}

static pthread_once_t host_thread_once = PTHREAD_ONCE_INIT;
static bool host_thread_runs;

static void host_thread_start(void) {
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	host_thread_runs = pthread_create(&thread, NULL, host_thread, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (host_thread_runs) {
		pthread_detach(thread);
	}
}

static CUresult host_function(struct host_call template, bool per_thread) {
	struct wire_object q = {.h = {.type = WIRE_HOST_FUNCTION}};
	struct host_call *call;
	struct target t;
	CUresult r = stream_target(template.stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!template.function && !template.callback) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = capture_refuse(&t);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_once(&host_thread_once, host_thread_start);
	call = host_thread_runs ? malloc(sizeof(*call)) : NULL;
	if (!call) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*call = template;
	q.object = t.stream;
	q.value = (uint64_t)(uintptr_t)call;
	return driver_post(&q, sizeof(q));
}

EXPORT CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
	return host_function(
		(struct host_call){.function = fn, .stream = hStream, .data = userData}, false);
}

EXPORT typeof(cuLaunchHostFunc) cuLaunchHostFunc_ptsz;
EXPORT CUresult CUDAAPI cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData) {
	return host_function(
		(struct host_call){.function = fn, .stream = hStream, .data = userData}, true);
}

EXPORT CUresult CUDAAPI cuStreamAddCallback(CUstream hStream, CUstreamCallback callback,
					    void *userData, unsigned int flags) {
	if (flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return host_function(
		(struct host_call){.callback = callback, .stream = hStream, .data = userData},
		false);
}

EXPORT typeof(cuStreamAddCallback) cuStreamAddCallback_ptsz;
EXPORT CUresult CUDAAPI cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback,
						 void *userData, unsigned int flags) {
	if (flags != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return host_function(
		(struct host_call){.callback = callback, .stream = hStream, .data = userData},
		true);
}
