/*
 * graph-internal.h: what the files of graphs (graph.h) share: graph.c is what the program does with
 * them, graph-ahead.c has the thread that makes variants ahead, graph-order.c keeps launches in
 * order, graph-part.c has the variants of a graph, graph-work.c has the lock and knows who works
 * without it, graph-list.c knows which graphs there are. Each calls only those named after it.
 *
 * All functions here are called with the lock held, but those that take it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/real.h"

struct graph_use;
struct partition;

/* A variant. */
struct graph_part {
	struct partition *partition; /* or the one that stands for its set, see green_owner() */
	CUcontext context;
	CUgraphExec exec;
	unsigned users; /* launches that are just being made, or ordered behind it */
	uint64_t last;	/* use: when it was made or launched */
	bool stale;	/* the graph was changed since: kept for the order of launches only */
	struct graph_part *next;
};

/* The last launch that the driver has taken. Written under the lock. */
struct graph_given {
	_Atomic(CUgraphExec) exec; /* NULL: there is none that the next one must come behind */
	struct graph_part *part;   /* whose exec it is, in the list; NULL: the program's own */
	_Atomic uint64_t key;	   /* of the program's stream; 0: not known */
	_Atomic uint32_t epoch;	   /* worker_epoch: a later stream may have the same key */
};

struct graph {
	CUgraphExec exec; /* the program's; 0: the entry is free */
	CUgraph copy;	  /* owned; NULL: can't move */
	bool plain;	  /* of the copy */
	unsigned long long flags;
	struct graph_part *parts; /* owned */
	struct graph_given given;
	struct graph *next;
	_Atomic bool can_move;

	/* its last launch */
	_Atomic uint64_t last; /* use; 0: none since it was made or changed */
	_Atomic uint32_t unloads;
	_Atomic(CUcontext) context;
};

/* ---- graph-list.c ---- */

extern struct graph *graph_list __attribute__((visibility("hidden")));
#define graph_for_each(g) for (struct graph *g = graph_list; g; g = g->next)

/* A new entry for @exec. NULL: no memory. */
struct graph *graph_add(CUgraphExec exec);

/* @g is free for another exec: it has no copy and no variants. */
void graph_remove(struct graph *g);

/* @g owns @copy, which takes the place of one that is the caller's now. NULL: @g can't move. */
void graph_set_copy(struct graph *g, CUgraph copy);

/* Launches of graphs, and of variants, are uses, and are numbered. */
uint64_t graph_next_use(void);

/* Whether it is among the last ones. */
bool graph_is_recent(uint64_t use);

/* Code is about to be unloaded: what was launched before may need it. */
void graph_count_unload(void);

/* Whether @g was launched in @context not long ago, and can still be. */
bool graph_is_at_hand(const struct graph *g, CUcontext context);

void graph_list_after_fork(void);

/* ---- graph-work.c ---- */

/* These two take the lock. What is returned goes to graph_unlock(): the thread can't be cancelled
 * in between. */
int graph_lock(void);
void graph_unlock(int cancel);

/* The same inside state_enter(). */
int graph_enter(void);
void graph_exit(int token);

/* What a thread makes or destroys without the lock; on its stack. */
struct graph_work {
	struct graph *graph;	 /* whose copy and variants are the thread's */
	struct partition *owner; /* whose green context is: the driver wants one thread at a time
				    there; NULL: none */
	struct graph_work *next;
};

/* Between these the lock is not held. Nobody else works on @g, or in the green context of @p (NULL:
 * none is needed). */
void graph_work_begin(struct graph_work *w, struct graph *g, struct partition *p);
void graph_work_end(const struct graph_work *w);

/* Whether a thread works on @g (NULL: on any), or in the green context of @p (NULL: in none). */
bool graph_is_busy(const struct graph *g, struct partition *p);

/* Waits until none does. */
void graph_wait_for(const struct graph *g, struct partition *p);

/* Whether a thread waits there: what is made ahead is made after that. */
bool graph_is_awaited(void);

/* Waits until some work has ended or graph_say_changed() is called. */
void graph_wait_for_change(void);
void graph_say_changed(void);

/* The process exits. Needs no lock. */
bool graph_is_leaving(void);

void graph_work_after_fork(void);

/* ---- graph-part.c ---- */

/* Whether the graph's own exec would not run as @p says. */
bool graph_needs(const struct graph *g, struct partition *p);

/* NULL: none was made for @p. */
struct graph_part *graph_find_part(const struct graph *g, struct partition *p);

/* The one that was launched last. NULL: none was made. */
struct graph_part *graph_latest_part(const struct graph *g);

/* Makes that of @g for @p. @g has a copy, and nobody works there; inside state_enter(), and without
 * the lock in between. NULL: it can't be had. */
struct graph_part *graph_make_part(struct graph *g, struct partition *p, CUcontext context,
				   bool ahead);

/* See graph_use_begin(). NULL: none. */
struct graph_use graph_use_part(struct graph_part *part);

/* Return: the variants of @g in @context (NULL: in any), out of its list, but for the one that the
 * next launch may have to come behind. */
struct graph_part *graph_take_parts(struct graph *g, CUcontext context);

/* Inside state_enter(), with or without the lock. */
void graph_destroy_parts(struct graph_part *parts);

/* ---- graph-order.c ---- */

/* The next launch has to come behind none. */
void graph_forget_given(struct graph *g);

/* ---- graph-ahead.c ---- */

/* Jobs in @context are to go to @p: see graph_prepare(). */
bool graph_want(CUcontext context, struct partition *p);

/* Nothing is wanted in @context any more. */
void graph_forget_want(CUcontext context);

void graph_ahead_after_fork(void);
