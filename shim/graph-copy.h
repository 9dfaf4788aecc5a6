/*
 * graph-copy.h: a graph of the program, copied, and instantiated for a partition.
 *
 * Which SMs a graph's kernels run on is settled when it is instantiated: those of the context that
 * each kernel node names, wherever the graph is launched. So a graph that is to run in a partition
 * is instantiated once more from a copy whose kernel nodes name the partition's context. (On an
 * H200 with driver 580 that holds only if that context is also current while the node is set.)
 *
 * Calls into the driver only: no state, no lock. Of one copy, and in one partition, by one thread
 * at a time, inside state_enter().
 */
#pragma once

#include <stdbool.h>

#include "shim/real.h"

struct partition;

/*
 * A copy of @graph, that is instantiated with @flags. NULL: it can't move: the driver can't copy it
 * (it allocates memory), it is launched from the device, or has conditional nodes.
 * @ret_plain: whether it names nothing but code, plain memory and host functions; then it can be
 * instantiated whenever the code is loaded. Owned by the caller: graph_copy_free().
 */
CUgraph graph_copy_new(CUgraph graph, unsigned long long flags, bool *ret_plain);

/* NULL is fine. Return: NULL. */
CUgraph graph_copy_free(CUgraph copy);

/* Whether a graph that is instantiated with @flags has priorities of its own in its nodes, so that
 * the priority of the stream that it is launched in does not count. */
bool graph_copy_has_priorities(unsigned long long flags);

/* @copy instantiated with @flags for @p, a partition of @context: on its SMs, and at its level if
 * the nodes have priorities. Changes @copy. NULL: the driver refuses. Owned by the caller. */
CUgraphExec graph_copy_instantiate(CUgraph copy, unsigned long long flags, struct partition *p,
				   CUcontext context);

/* Sends @exec, made for @p as above, to the GPU, which its first launch would do otherwise. Doesn't
 * wait for it, for the driver orders launches behind. What fails is left to the launch. */
void graph_copy_upload(CUgraphExec exec, struct partition *p, CUcontext context);
