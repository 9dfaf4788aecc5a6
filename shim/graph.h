/*
 * graph.h: graphs of the program, and their variants for partitions (graph-copy.h).
 *
 * To instantiate a variant takes milliseconds (7 on an H200 for a network of 250 kernels), too long
 * on the way of a launch. So when the terms name another partition, a thread of ours makes the
 * variants of the graphs that the program launches and uploads them, and until they are there jobs
 * stay under the last terms (terms.c). A launch makes one itself only if its graph has none: the
 * first launch, or one under a grant, which holds for its set alone. It waits only for what is
 * being made of the same graph or for the same set, and is served before what is to be made ahead.
 *
 * What is made ahead must not meet what the program has taken away since it launched the graph. So
 * that is done only for graphs of plain memory, whose code has been there since: destroying or
 * changing an executable graph, unloading code and destroying a context wait until a variant that
 * is being made is done.
 *
 * A copy of the program's graph is taken when the program instantiates it, for it may change or
 * destroy its graph at once. After the program has changed an instantiated graph in place, which
 * our copy does not know of, the graph can't move: its jobs ask for a whole GPU.
 *
 * The driver orders the launches of an executable graph, whatever streams they go to. It knows
 * nothing of the order between the program's own one and its variants, so graph_order() adds that
 * where the launches of one graph go to several streams.
 *
 * One lock, not held across calls that instantiate or destroy variants; graph_can_move() takes
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"
#include "shim/real.h"

struct graph;
struct partition;
struct place_use;

/* The driver has made @exec of @graph. */
void graph_instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags);

/* @exec is now what @graph says; NULL: something else, that only the driver knows. */
void graph_updated(CUgraphExec exec, CUgraph graph);

/* Called before the driver's own function. */
void graph_exec_destroying(CUgraphExec exec);

/* What is known of @exec, as long as the program keeps that; takes no lock. NULL: nothing, which is
 * fine for all below: it can't move, and has no variants. */
struct graph *graph_find(CUgraphExec exec);

bool graph_can_move(const struct graph *g);

/* The program launches @g in @context, so it is as the program wants it. Takes no lock. */
void graph_launched(struct graph *g, CUcontext context);

/* Whether the program's own one would not run as @p says: not on its SMs, or not at its level,
 * which counts for a graph that was instantiated to use the priorities of its nodes only if they
 * are raised. */
bool graph_needs_partition(const struct graph *g, struct partition *p);

/* What is being launched for an executable graph of the program. */
struct graph_use {
	CUgraphExec exec;	 /* NULL: can't be had */
	struct graph_part *part; /* the variant that it is; NULL: the program's own */
};

/* The variant of @g for @p, whose context is not current (the program's, @context, is); made if
 * need be. @last_will_do: the one that was launched last is good enough, as long as that of @p is
 * not there. graph_use_end() must follow. */
struct graph_use graph_use_begin(struct graph *g, struct partition *p, CUcontext context,
				 bool last_will_do);
void graph_use_end(struct graph_use *use);

/*
 * Before @use is launched in @place for @g, or uploaded: the stream waits there for the last
 * launch of @g, if that was of another executable graph and in another stream. Costs 3 to 6 us
 * then (H200), else a few loads. The stream is not being captured, and its context is current.
 * @key: worker_stream_key() of the program's stream; 0: not known, it may be any.
 * Return: CUDA_SUCCESS; an error of the driver: the order can't be had, so @use may not be
 * launched.
 */
CUresult graph_order(struct graph *g, const struct graph_use *use, const struct place_use *place,
		     uint64_t key);

/* After graph_order() with the same arguments: the driver has taken the launch. */
void graph_given(struct graph *g, const struct graph_use *use, uint64_t key);

/* Whether there is any graph that can move. Takes no lock. */
bool graph_any(void);

/* By the tracker: jobs in @context are to go to @p. Return: whether every variant that is made
 * ahead is there. If not, they are being made from now on, and the tracker is woken when they are.
 */
bool graph_prepare(CUcontext context, struct partition *p);

/* By the tracker: wakes the thread that makes variants ahead, which is to end (own-thread.h). */
void graph_end_ahead(void);

/* Code is about to be unloaded: graphs may name it. Waits until no variant is being made. */
void graph_code_unloading(void);

/* @context goes, and its partitions with it: all that was made for them goes. */
void graph_context_destroying(CUcontext context);

/* The process exits: nothing is made ahead any more. Waits for what is being made, until @deadline
 * at most. */
void graph_leave(nsec_t deadline);

/* After fork, in the child: forget everything without calling the driver. */
void graph_after_fork(void);
