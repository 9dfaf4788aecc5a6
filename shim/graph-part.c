/*
 * graph-part.c: the variants of a graph, see graph.h.
 */
#include "shim/graph-internal.h"
#include "shim/graph.h"

#include <stdlib.h>

#include "shim/enforce/green.h"
#include "shim/graph-copy.h"

/* Variants that a graph keeps when one more is made. Terms go to and fro while the planner tries
 * them. */
#define PARTS_MAX 4

/* ---- which one is whose ---- */

bool graph_needs(const struct graph *g, struct partition *p) {
	return green_confines(p) || (green_level(p) > 0 && graph_copy_has_priorities(g->flags));
}

bool graph_needs_partition(const struct graph *g, struct partition *p) {
	return graph_can_move(g) && graph_needs(g, p);
}

/* Where nodes have no priorities the level is the stream's. */
static struct partition *key_of(const struct graph *g, struct partition *p) {
	return graph_copy_has_priorities(g->flags) ? p : green_owner(p);
}

struct graph_part *graph_find_part(const struct graph *g, struct partition *p) {
	const struct partition *key = key_of(g, p);
	struct graph_part *part = g->parts;

	while (part && (part->stale || part->partition != key)) {
		part = part->next;
	}
	return part;
}

struct graph_part *graph_latest_part(const struct graph *g) {
	struct graph_part *last = NULL;

	for (struct graph_part *p = g->parts; p; p = p->next) {
		last = !p->stale && (!last || p->last > last->last) ? p : last;
	}
	return last;
}

/* ---- uses ---- */

struct graph_use graph_use_part(struct graph_part *part) {
	if (!part) {
		return (struct graph_use){.exec = NULL};
	}
	part->users++;
	part->last = graph_next_use();
	return (struct graph_use){part->exec, part};
}

void graph_use_end(struct graph_use *use) {
	int cancel;

	if (use->part) {
		cancel = graph_lock();
		use->part->users--;
		graph_unlock(cancel);
	}
}

/* ---- out of the lists ---- */

static void move_part(struct graph_part **link, struct graph_part **to) {
	struct graph_part *part = *link;

	*link = part->next;
	part->next = *to;
	*to = part;
}

struct graph_part *graph_take_parts(struct graph *g, CUcontext context) {
	struct graph_part *taken = NULL, *part, **link = &g->parts;

	while ((part = *link)) {
		if (context && part->context != context) {
			link = &part->next;
		} else if (part == g->given.part) {
			part->stale = true;
			link = &part->next;
		} else {
			move_part(link, &taken);
		}
	}
	return taken;
}

/* Whether @part of @g is there for nothing. */
static bool is_unused(const struct graph *g, const struct graph_part *part) {
	unsigned n_later = 0;

	for (const struct graph_part *p = g->parts; p; p = p->next) {
		n_later += p->last > part->last;
	}
	return part->users == 0 && part != g->given.part &&
	       (part->stale || n_later >= PARTS_MAX ||
		(n_later > 0 && !graph_is_recent(part->last)));
}

/* Of all graphs. */
static struct graph_part *take_unused(void) {
	struct graph_part *unused = NULL, **link;

	graph_for_each(g) {
		for (link = &g->parts; *link;) {
			if (is_unused(g, *link)) {
				move_part(link, &unused);
			} else {
				link = &(*link)->next;
			}
		}
	}
	return unused;
}

void graph_destroy_parts(struct graph_part *parts) {
	struct graph_part *next;

	for (; parts; parts = next) {
		next = parts->next;
		real_get()->cuGraphExecDestroy(parts->exec);
		free(parts);
	}
}

/* ---- new ones ---- */

/* Its variants stay: they may be in use. */
static void drop_copy(struct graph *g) {
	CUgraph copy = g->copy;

	graph_set_copy(g, NULL);
	graph_copy_free(copy);
}

/* Without the lock. NULL: it can't be had. */
static CUgraphExec instantiate(const struct graph *g, struct partition *p, CUcontext context,
			       bool ahead) {
	CUgraphExec exec = NULL;

	if (!graph_is_leaving()) { /* asked when the work has begun: see graph_leave() */
		exec = graph_copy_instantiate(g->copy, g->flags, p, context);
	}
	if (ahead && exec) {
		graph_copy_upload(exec, p, context);
	}
	return exec;
}

struct graph_part *graph_make_part(struct graph *g, struct partition *p, CUcontext context,
				   bool ahead) {
	struct graph_part *part = calloc(1, sizeof(*part)), *unused;
	struct graph_work work;

	if (!part) {
		return NULL;
	}
	unused = take_unused();
	graph_work_begin(&work, g, p);
	graph_destroy_parts(unused);
	part->exec = instantiate(g, p, context, ahead);
	graph_work_end(&work);
	if (!part->exec) {
		free(part);
		if (!graph_is_leaving()) {
			drop_copy(g); /* what can't be had once is not tried at each launch */
		}
		return NULL;
	}
	part->partition = key_of(g, p);
	part->context = context;
	part->last = graph_next_use();
	part->next = g->parts;
	g->parts = part;
	return part;
}
