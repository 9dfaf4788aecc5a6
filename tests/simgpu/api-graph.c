/*
 * api-graph.c: stream capture, and graphs made by it.
 *
 * A capture records the requests that its streams' operations would have sent to simgpud, in the
 * order of the calls. Every operation depends only on earlier ones, so that a graph may be run one
 * node after the other: a launch hands all its requests to one stream at once. Forking to other
 * streams and joining them by events is checked as CUDA does, and costs only concurrency.
 *
 * Recorded are kernels, memsets, and copies between device and pinned memory. What CUDA forbids
 * while capturing (waiting, asking, allocating) is refused and spoils the capture, as there.
 * Not simulated: host functions and pageable memory in graphs, graphs made node by node, updates.
 * Nodes one by one are in api-node.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/driver.h"

struct CUgraphExec_st {
	uint32_t tag;
	size_t size;
	int fd; /* owned memfd: what WIRE_BATCH brings */
};

/* A stream of a capture: the first is the one it began on. */
struct branch {
	uint32_t stream;
	unsigned n_changes; /* operations, and other branches joined into this one */
	bool joined;	    /* nothing since the origin, or a branch of it, waited for it */
};

struct capture {
	struct capture *next;
	CUcontext context;
	CUgraph graph; /* owned */
	CUstreamCaptureMode mode;
	pthread_t thread; /* that began it */
	uint64_t id;
	bool legacy_forbidden; /* one of its streams synchronises with the legacy default one */
	bool spoilt;
	struct branch *branches; /* owned */
	size_t n_branches;
};

static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures; /* under captures_lock */
static unsigned n_captures;	 /* atomic, so that nobody else needs the lock */
static uint64_t captures_begun;	 /* under captures_lock */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool captures_any(void) {
	return __atomic_load_n(&n_captures, __ATOMIC_ACQUIRE) > 0;
}

/* ---- graphs ---- */

CUgraph graph_free(CUgraph g) {
	if (!g) {
		return NULL;
	}
	while (g->nodes) {
		CUgraphNode node = g->nodes;

		g->nodes = node->next;
		free(node->params);
		free(node);
	}
	g->tag = 0;
	free(g);
	return NULL;
}

static CUgraphNodeType node_type(uint32_t request) {
	return request == WIRE_LAUNCH ? CU_GRAPH_NODE_TYPE_KERNEL
	       : request == WIRE_COPY ? CU_GRAPH_NODE_TYPE_MEMCPY
				      : CU_GRAPH_NODE_TYPE_MEMSET;
}

static CUresult graph_add(CUgraph g, const struct client_message *m) {
	CUgraphNode node = calloc(1, sizeof(*node) + m->head_size + m->data_size);

	if (!node) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(node->packet, m->head, m->head_size);
	if (m->data_size > 0) {
		memcpy(node->packet + m->head_size, m->data, m->data_size);
	}
	node->size = m->head_size + m->data_size;
	node->function = m->function;
	node->type = node_type(((const struct wire_header *)m->head)->type);
	*g->last = node;
	g->last = &node->next;
	g->n_nodes++;
	return CUDA_SUCCESS;
}

/* ---- captures ---- */

static struct branch *capture_branch(struct capture *c, uint32_t stream) {
	for (size_t i = 0; i < c->n_branches; i++) {
		if (c->branches[i].stream == stream) {
			return &c->branches[i];
		}
	}
	return NULL;
}

static struct branch *capture_add_branch(struct capture *c, uint32_t stream) {
	struct branch *more = realloc(c->branches, (c->n_branches + 1) * sizeof(*more));

	if (!more) {
		return NULL;
	}
	c->branches = more;
	more[c->n_branches] = (struct branch){.stream = stream};
	return &more[c->n_branches++];
}

static struct capture *capture_free(struct capture *c) {
	if (c) {
		graph_free(c->graph);
		free(c->branches);
		free(c);
	}
	return NULL;
}

static struct capture *capture_by_id(uint64_t id) {
	struct capture *c = captures;

	while (c && c->id != id) {
		c = c->next;
	}
	return c;
}

/* The capture that @t's stream is part of; NULL. Use of the legacy default stream beside a capture
 * that would have to wait for it spoils that capture. */
static CUresult capture_find(const struct target *t, bool spoil, struct capture **ret) {
	CUresult r = CUDA_SUCCESS;

	*ret = NULL;
	for (struct capture *c = captures; c; c = c->next) {
		if (capture_branch(c, t->stream)) {
			*ret = c;
		} else if (c->legacy_forbidden && c->context == t->context &&
			   t->stream == t->context->null_stream) {
			c->spoilt |= spoil;
			r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return r;
}

static void branch_changes(struct branch *b) {
	b->n_changes++;
	b->joined = false;
}

CUresult capture_take(const struct target *t, const struct client_message *m, bool *ret_taken) {
	struct capture *c = NULL;
	CUresult r;

	*ret_taken = false;
	if (!captures_any()) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	r = capture_find(t, true, &c);
	if (c && c->spoilt) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (c && !m) {
		c->spoilt = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (c) {
		r = graph_add(c->graph, m);
		branch_changes(capture_branch(c, t->stream));
	}
	pthread_mutex_unlock(&captures_lock);
	*ret_taken = c != NULL;
	return r;
}

CUresult capture_refuse(const struct target *t) {
	bool taken;

	return capture_take(t, NULL, &taken);
}

CUresult capture_beside(const struct target *t) {
	struct capture *c;
	CUresult r;

	if (!captures_any()) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	r = capture_find(t, true, &c);
	pthread_mutex_unlock(&captures_lock);
	return r;
}

CUresult capture_refuse_all(CUcontext context) {
	CUresult r = CUDA_SUCCESS;

	if (!captures_any()) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	for (struct capture *c = captures; c; c = c->next) {
		if (c->context->id == context->id) {
			c->spoilt = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&captures_lock);
	return r;
}

CUresult capture_check_thread(void) {
	CUresult r = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || !captures_any()) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	for (struct capture *c = captures; c; c = c->next) {
		bool own = c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
			   pthread_equal(c->thread, pthread_self());

		if (own || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			    thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			c->spoilt = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&captures_lock);
	return r;
}

CUresult capture_record(const struct target *t, CUevent event, bool *ret_taken) {
	struct capture *c = NULL;
	struct branch *b;
	CUresult r = CUDA_SUCCESS;

	*ret_taken = false;
	event->capture = 0;
	if (!captures_any()) {
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	r = capture_find(t, true, &c);
	b = c ? capture_branch(c, t->stream) : NULL;
	if (b) {
		event->capture = c->id;
		event->branch = (unsigned)(b - c->branches);
		event->n_changes = b->n_changes;
		r = c->spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : r;
	}
	pthread_mutex_unlock(&captures_lock);
	*ret_taken = b != NULL;
	return r;
}

/* The stream of @t, part of @c or of none yet, waits for @event, recorded in @c. */
static CUresult capture_join(struct capture *c, const struct target *t, CUevent event) {
	struct branch *b = capture_branch(c, t->stream), *other;

	if (!b) {
		b = capture_add_branch(c, t->stream);
		if (!b) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		c->legacy_forbidden |= t->blocking;
	}
	other = &c->branches[event->branch];
	if (other != b) {
		branch_changes(b);
		/* The origin needs no joining; others must be waited for in their turn. */
		other->joined |= event->n_changes == other->n_changes;
	}
	return CUDA_SUCCESS;
}

CUresult capture_wait(const struct target *t, CUevent event, bool *ret_taken) {
	struct capture *c = NULL, *from;
	CUresult r;

	*ret_taken = false;
	if (!captures_any()) {
		return event->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	r = capture_find(t, true, &c);
	from = event->capture ? capture_by_id(event->capture) : NULL;
	if (r == CUDA_SUCCESS && event->capture && !from) {
		r = CUDA_ERROR_CAPTURED_EVENT; /* of a capture that is over */
	} else if (r == CUDA_SUCCESS && c && !from) {
		r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else if (r == CUDA_SUCCESS && c && from != c) {
		r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
		from->spoilt = true;
	}
	if (c && c->spoilt) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (r == CUDA_SUCCESS && from && from->spoilt) {
		r = CUDA_ERROR_INVALID_VALUE; /* as an H200 says it */
	} else if (c && r != CUDA_SUCCESS) {
		c->spoilt = true;
	}
	if (r == CUDA_SUCCESS && from) {
		r = capture_join(from, t, event);
	}
	pthread_mutex_unlock(&captures_lock);
	*ret_taken = c || from;
	return r;
}

CUresult capture_check_event(CUevent event) {
	CUresult r = capture_check_thread();

	return event->capture ? CUDA_ERROR_CAPTURED_EVENT : r;
}

/* ---- capturing ---- */

static CUresult capture_begin(CUstream stream, bool per_thread, CUstreamCaptureMode mode) {
	struct target t;
	struct capture *c, *other = NULL;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if (t.stream == t.context->null_stream) {
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	c = calloc(1, sizeof(*c));
	if (c) {
		c->graph = calloc(1, sizeof(*c->graph));
	}
	if (!c || !c->graph || !capture_add_branch(c, t.stream)) {
		capture_free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*c->graph = (struct CUgraph_st){.tag = DRIVER_GRAPH, .last = &c->graph->nodes};
	c->context = t.context;
	c->mode = mode;
	c->thread = pthread_self();
	c->legacy_forbidden = t.blocking;
	pthread_mutex_lock(&captures_lock);
	(void)capture_find(&t, false, &other);
	if (!other) {
		c->id = ++captures_begun;
		c->next = captures;
		captures = c;
		__atomic_add_fetch(&n_captures, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&captures_lock);
	if (other) {
		capture_free(c);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode) {
	return capture_begin(hStream, false, mode);
}

EXPORT typeof(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz;
EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
	return capture_begin(hStream, true, mode);
}

/* Why the capture @c gives no graph. */
static CUresult capture_verdict(const struct capture *c) {
	if (c->spoilt) {
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	for (size_t i = 1; i < c->n_branches; i++) {
		if (!c->branches[i].joined) {
			return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult capture_end(CUstream stream, bool per_thread, CUgraph *graph) {
	struct capture *c = NULL;
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&captures_lock);
	(void)capture_find(&t, false, &c);
	if (!c) {
		r = CUDA_ERROR_ILLEGAL_STATE;
	} else if (c->branches[0].stream != t.stream) {
		r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	} else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		   !pthread_equal(c->thread, pthread_self())) {
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	}
	if (r == CUDA_SUCCESS) {
		struct capture **p = &captures;

		while (*p != c) {
			p = &(*p)->next;
		}
		*p = c->next;
		__atomic_sub_fetch(&n_captures, 1, __ATOMIC_RELEASE);
	} else {
		c = NULL;
	}
	pthread_mutex_unlock(&captures_lock);
	r = c ? capture_verdict(c) : r;
	if (graph) {
		*graph = r == CUDA_SUCCESS ? c->graph : NULL;
	}
	if (r == CUDA_SUCCESS && graph) {
		c->graph = NULL;
	}
	capture_free(c);
	return r;
}

EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
	return capture_end(hStream, false, phGraph);
}

EXPORT typeof(cuStreamEndCapture) cuStreamEndCapture_ptsz;
EXPORT CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph) {
	return capture_end(hStream, true, phGraph);
}

static CUresult capture_info(CUstream stream, bool per_thread, CUstreamCaptureStatus *status,
			     cuuint64_t *id, CUgraph *graph) {
	struct capture *c = NULL;
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS || !status) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&captures_lock);
	r = capture_find(&t, false, &c);
	if (r == CUDA_SUCCESS) {
		*status = !c	      ? CU_STREAM_CAPTURE_STATUS_NONE
			  : c->spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	}
	if (r == CUDA_SUCCESS && id && c) {
		*id = c->id;
	}
	if (r == CUDA_SUCCESS && graph && c) {
		*graph = c->graph;
	}
	pthread_mutex_unlock(&captures_lock);
	return r;
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream,
					    CUstreamCaptureStatus *captureStatus) {
	return capture_info(hStream, false, captureStatus, NULL, NULL);
}

EXPORT typeof(cuStreamIsCapturing) cuStreamIsCapturing_ptsz;
EXPORT CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream hStream,
						 CUstreamCaptureStatus *captureStatus) {
	return capture_info(hStream, true, captureStatus, NULL, NULL);
}

/* Dependencies are not told: nodes cannot be added but by the streams. */
EXPORT CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
						  cuuint64_t *id, CUgraph *graph,
						  const CUgraphNode **dependencies, size_t *n);
EXPORT CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
						  cuuint64_t *id, CUgraph *graph,
						  const CUgraphNode **dependencies, size_t *n) {
	if (dependencies || n) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return capture_info(stream, false, status, id, graph);
}

EXPORT CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
						  cuuint64_t *id, CUgraph *graph,
						  const CUgraphNode **dependencies,
						  const CUgraphEdgeData **edges, size_t *n);
EXPORT CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
						  cuuint64_t *id, CUgraph *graph,
						  const CUgraphNode **dependencies,
						  const CUgraphEdgeData **edges, size_t *n) {
	return edges ? CUDA_ERROR_NOT_SUPPORTED
		     : cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, n);
}

EXPORT CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
	CUstreamCaptureMode old = thread_mode;

	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

/* ---- graphs, made and run ---- */

/* A memfd with all requests of @g, as WIRE_BATCH has them. */
static int graph_write(CUgraph g, size_t *ret_size) {
	size_t size = 0, at = 0;
	uint8_t *bytes;
	int fd;

	for (CUgraphNode n = g->nodes; n; n = n->next) {
		size += sizeof(uint64_t) + WIRE_BATCH_ROUND(n->size);
	}
	bytes = calloc(1, size + 1);
	for (CUgraphNode n = g->nodes; bytes && n; n = n->next) {
		uint64_t n_bytes = n->size;

		memcpy(bytes + at, &n_bytes, sizeof(n_bytes));
		memcpy(bytes + at + sizeof(n_bytes), n->packet, n->size);
		at += sizeof(n_bytes) + WIRE_BATCH_ROUND(n->size);
	}
	fd = bytes && size > 0 ? driver_memfd(bytes, size) : -1;
	free(bytes);
	*ret_size = size;
	return fd;
}

/* $SIMGPU_GRAPH=slow: as long as an H200 takes for a network; =held:FILE: as long as FILE is there.
 */
static void take_time(void) {
	const struct timespec slow = {.tv_nsec = 7000000}, look = {.tv_nsec = 1000000};
	const char *how = getenv("SIMGPU_GRAPH");

	if (how && strcmp(how, "slow") == 0) {
		nanosleep(&slow, NULL);
	}
	while (how && strncmp(how, "held:", 5) == 0 && access(how + 5, F_OK) == 0) {
		nanosleep(&look, NULL);
	}
}

EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
						    unsigned long long flags) {
	CUgraphExec e;
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!phGraphExec || !hGraph || hGraph->tag != DRIVER_GRAPH) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	take_time();
	e = calloc(1, sizeof(*e));
	if (!e) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->tag = DRIVER_GRAPH_EXEC;
	for (CUgraphNode n = hGraph->nodes; n; n = n->next) {
		if (n->type == CU_GRAPH_NODE_TYPE_KERNEL) {
			((struct wire_launch *)n->packet)->level =
				flags ? 1 + (uint32_t)-n->priority : 0;
		}
	}
	e->fd = graph_write(hGraph, &e->size);
	if (e->fd < 0 && e->size > 0) {
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*phGraphExec = e;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec) {
	if (!hGraphExec || hGraphExec->tag != DRIVER_GRAPH_EXEC) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (hGraphExec->fd >= 0) {
		close(hGraphExec->fd);
	}
	hGraphExec->tag = 0;
	free(hGraphExec);
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec e, CUstream stream, bool per_thread) {
	struct wire_object q = {.h = {.type = WIRE_BATCH}};
	struct wire_reply reply;
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!e || e->tag != DRIVER_GRAPH_EXEC) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = capture_refuse(&t); /* no graphs in graphs */
	if (r != CUDA_SUCCESS || e->size == 0) {
		return r;
	}
	q.object = t.stream;
	q.value = e->size;
	return context_note(t.context, driver_call(&q, sizeof(q), e->fd, &reply, sizeof(reply)));
}

EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
	return graph_launch(hGraphExec, hStream, false);
}

EXPORT typeof(cuGraphLaunch) cuGraphLaunch_ptsz;
EXPORT CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
	return graph_launch(hGraphExec, hStream, true);
}

/* Nothing has to be brought anywhere, but what the caller may do wrong is found. */
static CUresult graph_upload(CUgraphExec e, CUstream stream, bool per_thread) {
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	return e && e->tag == DRIVER_GRAPH_EXEC ? capture_refuse(&t) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
	return graph_upload(hGraphExec, hStream, false);
}

EXPORT typeof(cuGraphUpload) cuGraphUpload_ptsz;
EXPORT CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
	return graph_upload(hGraphExec, hStream, true);
}
