/*
 * hooks-graph.c: graphs: instantiated, changed, launched, uploaded.
 */
#include "shim/base/log.h"
#include "shim/capture.h"
#include "shim/gate.h"
#include "shim/graph.h"
#include "shim/hooks.h"
#include "shim/kernels-done.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/place.h"
#include "shim/real.h"
#include "shim/worker.h"

static CUresult instantiated(CUresult rc, CUgraphExec *exec, CUgraph graph,
			     unsigned long long flags) {
	if (rc == CUDA_SUCCESS && exec && graph) {
		graph_instantiated(*exec, graph, flags);
	}
	return rc;
}

CUresult on_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log,
			       size_t size) {
	return instantiated(real_get()->cuGraphInstantiate(exec, graph, failed, log, size), exec,
			    graph, 0);
}

CUresult on_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log,
				  size_t size) {
	return instantiated(real_get()->cuGraphInstantiate_v2(exec, graph, failed, log, size), exec,
			    graph, 0);
}

CUresult on_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					unsigned long long flags) {
	return instantiated(real_get()->cuGraphInstantiateWithFlags(exec, graph, flags), exec,
			    graph, flags);
}

CUresult on_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
					 CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
	CUresult rc = real_get()->cuGraphInstantiateWithParams(exec, graph, params);

	return instantiated(rc, exec, graph, rc == CUDA_SUCCESS && params ? params->flags : 0);
}

CUresult on_cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
					      CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
	CUresult rc = real_get()->cuGraphInstantiateWithParams_ptsz(exec, graph, params);

	return instantiated(rc, exec, graph, rc == CUDA_SUCCESS && params ? params->flags : 0);
}

CUresult on_cuGraphExecDestroy(CUgraphExec exec) {
	graph_exec_destroying(exec);
	return real_get()->cuGraphExecDestroy(exec);
}

static CUresult updated(CUresult rc, CUgraphExec exec, CUgraph graph) {
	if (rc == CUDA_SUCCESS) {
		graph_updated(exec, graph);
	}
	return rc;
}

CUresult on_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failed,
			      CUgraphExecUpdateResult *result) {
	return updated(real_get()->cuGraphExecUpdate(exec, graph, failed, result), exec, graph);
}

CUresult on_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
				 CUgraphExecUpdateResultInfo *result) {
	return updated(real_get()->cuGraphExecUpdate_v2(exec, graph, result), exec, graph);
}

/* ---- launches ---- */

typedef CUresult(CUDAAPI *launch_fn)(CUgraphExec, CUstream);

/* A launch, or an upload. */
struct call {
	CUgraphExec exec;    /* the program's */
	struct graph *graph; /* what is known of it; NULL: nothing */
	launch_fn make;
};

static struct call call_of(CUgraphExec exec, launch_fn make) {
	return (struct call){exec, graph_find(exec), make};
}

/* Launches @use. @key: of the program's stream, see graph_order(). */
static CUresult launch_in_order(const struct call *c, const struct graph_use *use,
				const struct place_use *place, uint64_t key) {
	CUresult rc = graph_order(c->graph, use, place, key);

	if (rc == CUDA_SUCCESS) {
		rc = c->make(use->exec, place->at);
	}
	if (rc == CUDA_SUCCESS) {
		graph_given(c->graph, use, key);
	}
	return rc;
}

static CUresult launch_use(const struct op *op, const struct call *c, const struct graph_use *use) {
	/* A thread's default stream ends with it, and a later thread's may get the same key. */
	uint64_t key = op->id->stream == CU_STREAM_PER_THREAD ? 0 : op->id->key;

	return launch_in_order(c, use, &op->place, key);
}

/* The program's own. */
static CUresult launch_own(const struct op *op, const struct call *c) {
	const struct graph_use use = {.exec = c->exec};

	return launch_use(op, c, &use);
}

/* The launch is part of no job. In a capture it is no launch but a node. */
static CUresult launch_bypassed(const struct op *op, const struct call *c) {
	const struct graph_use use = {.exec = c->exec};

	return capture_is_on(op->stream, op->place.per_thread)
		       ? c->make(c->exec, op->place.at)
		       : launch_in_order(c, &use, &op->place, 0);
}

/* The variant for the partition of the job. Under terms the last one will do. */
static CUresult launch_variant(const struct op *op, const struct call *c) {
	bool last_will_do = atomic_load_explicit(&op->lane->terms, memory_order_relaxed) != 0;
	struct graph_use use = graph_use_begin(c->graph, op->to, op->id->context, last_will_do);
	CUresult rc = use.exec ? launch_use(op, c, &use) : CUDA_ERROR_NOT_SUPPORTED;

	graph_use_end(&use);
	return rc;
}

/* In the partition of the job, if the graph can be had for it. */
static CUresult launch_green(struct op *op, const struct call *c) {
	CUresult rc = launch_variant(op, c);

	if (rc != CUDA_SUCCESS) {
		op_unconfine(op);
		rc = launch_own(op, c);
	}
	return rc;
}

/* At the level of the job, on the whole GPU. */
static CUresult launch_raised(const struct op *op, const struct call *c) {
	CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

	if (graph_needs_partition(c->graph, op->to)) {
		rc = launch_variant(op, c);
	}
	return rc == CUDA_ERROR_NOT_SUPPORTED ? launch_own(op, c) : rc;
}

static CUresult launch_graph(const struct call *c, CUstream stream, bool per_thread) {
	unsigned traits =
		(per_thread ? OP_PER_THREAD : 0) | (graph_can_move(c->graph) ? OP_GREEN : OP_WHOLE);
	CUresult rc = CUDA_SUCCESS;
	struct op op;

	op_init(&op, SBEET__OP_KIND__OP_KIND_GRAPH, traits, 0, stream, NULL);
	switch (op_begin(&op, &rc)) {
	case OP_FAIL:
		return rc;
	case OP_BYPASS:
		rc = launch_bypassed(&op, c);
		op_bypassed(&op);
		return rc;
	case OP_GO:
		break;
	}
	graph_launched(c->graph, op.id->context);
	gate_kernel(&op);
	kernels_done_not(op.lane, op.id->context);
	rc = op.how == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN ? launch_green(&op, c)
	     : op.to && place_is_in(&op.place, op.to)	     ? launch_raised(&op, c)
							     : launch_own(&op, c);
	if (op.how == SBEET__ENFORCEMENT__ENFORCEMENT_NONE && !op.unconfined) {
		log_once(LOG_LEVEL_WARN,
			 "A graph could not be confined to its green context and "
			 "ran on the whole GPU");
	}
	op_end(&op, rc);
	return rc;
}

CUresult on_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
	const struct call c = call_of(exec, real_get()->cuGraphLaunch);

	return launch_graph(&c, stream, false);
}

CUresult on_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
	const struct call c = call_of(exec, real_get()->cuGraphLaunch_ptsz);

	return launch_graph(&c, stream, true);
}

/* ---- uploads: each comes behind the launches of its graph, also behind its variants' ---- */

/* In a capture it is an error. */
static CUresult upload_in_order(const struct call *c, const struct place_use *place) {
	uint64_t key = worker_stream_key(NULL, NULL, place->stream, place->per_thread);
	const struct graph_use use = {.exec = c->exec};
	CUresult rc = CUDA_SUCCESS;

	if (!capture_is_on(place->stream, place->per_thread)) {
		rc = graph_order(c->graph, &use, place, worker_key_is_handle(key) ? key : 0);
	}
	return rc == CUDA_SUCCESS ? c->make(c->exec, place->at) : rc;
}

static CUresult upload_graph(const struct call *c, CUstream stream, bool per_thread) {
	struct place_use place = place_use_begin(stream, per_thread);
	CUresult rc = upload_in_order(c, &place);

	place_use_end(&place);
	return rc;
}

CUresult on_cuGraphUpload(CUgraphExec exec, CUstream stream) {
	const struct call c = call_of(exec, real_get()->cuGraphUpload);

	return upload_graph(&c, stream, false);
}

CUresult on_cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
	const struct call c = call_of(exec, real_get()->cuGraphUpload_ptsz);

	return upload_graph(&c, stream, true);
}
