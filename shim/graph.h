/*
 * graph.h: graphs of the program, made ready for partitions.
 *
 * Which SMs a graph's kernels run on is settled when it is instantiated: those of the context that
 * each kernel node names, wherever the graph is launched. So a graph that is to run in a partition
 * is instantiated once more from a copy of the program's graph, whose kernel nodes name the
 * partition's context. (On an H200 with driver 580 that holds only if that context is also current
 * while the node is set.) The copy is taken when the program instantiates, for it may change or
 * destroy its graph at once; the rest is done when the graph is first launched in that partition.
 *
 * A graph can't move when the driver can't copy it (it allocates memory), when it is launched from
 * the device, or has conditional nodes; nor after the program has changed the instantiated graph in
 * place, which our copy does not know of. Then its jobs ask for a whole GPU.
 *
 * One lock guards changes and is held across calls into the driver; graph_can_move() takes none.
 */
#pragma once

#include <stdbool.h>

#include "shim/real.h"

struct partition;

/* The driver has made @exec of @graph. */
void graph_instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags);

/* @exec is now what @graph says; NULL: something else, that only the driver knows. */
void graph_updated(CUgraphExec exec, CUgraph graph);

/* Called before the driver's own function. */
void graph_exec_destroying(CUgraphExec exec);

bool graph_can_move(CUgraphExec exec);

/* Whether @exec itself would not run as @p says: not on its SMs, or not at its level, which counts
 * for a graph that was instantiated to use the priorities of its nodes only if they are raised. */
bool graph_needs_partition(CUgraphExec exec, struct partition *p);

/* The graph of @exec for @p, whose context is not current (the program's is); made if need be.
 * NULL: can't be had. */
CUgraphExec graph_in_partition(CUgraphExec exec, struct partition *p);

/* A context goes, and partitions with it: all that was made for any goes, and is made again when it
 * is needed. */
void graph_context_destroying(void);

/* After fork, in the child: forget everything without calling the driver. */
void graph_after_fork(void);
