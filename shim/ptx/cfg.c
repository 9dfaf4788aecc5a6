/*
 * cfg.c: basic blocks, post-dominators (Cooper, Harvey and Kennedy's iteration) and control
 * dependence from them (Ferrante, Ottenstein and Warren). Walks use arrays, never recursion; the
 * two steps that may take more than linear time on graphs that no compiler makes have a budget.
 */
#include "shim/ptx/cfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/names.h"
#include "shim/ptx/opcodes.h"

struct maker {
	const struct module_facts *facts;
	const struct ptx_module *m;
	const struct ptx_func *f;
	struct cfg c;
	size_t blocks_capacity, edges_capacity;
	struct ptx_names labels; /* label to its latest block */
	struct ptx_names tables; /* label of .branchtargets to its statement */
	uint32_t *same; /* owned: by block, an earlier one of the same label, or PTX_NONE */
	size_t same_capacity;
};

static int grow(void *list, size_t n, size_t *capacity, size_t size) {
	void *old, *grown;
	size_t wanted = *capacity ? *capacity * 2 : 64;

	if (n < *capacity) {
		return 0;
	}
	memcpy(&old, list, sizeof(old));
	grown = reallocarray(old, wanted, size);
	if (!grown) {
		return -ENOMEM;
	}
	memcpy(list, &grown, sizeof(grown));
	*capacity = wanted;
	return 0;
}

static enum cfg_event event_of(const struct maker *k, const struct ptx_stmt *s,
			       const struct opcode *op) {
	const struct ptx_operand *target;
	const struct ptx_func *callee;

	switch (op->class) {
	case OPCODE_BARRIER:
		return s->n_operands > (op->n_results ? 3 : 1) ? CFG_BARRIER_COUNTED : CFG_BARRIER;
	case OPCODE_WARP:
		return CFG_WARP;
	case OPCODE_CALL:
		target = facts_call_target(k->m, s);
		callee = target ? ptx_module_func(k->m, target->name) : NULL;
		if (callee && (k->facts->funcs[callee - k->m->funcs].has &
			       (FACTS_BARRIER | FACTS_BARRIER_COUNTED | FACTS_WARP))) {
			return CFG_CALL;
		}
		return CFG_NONE;
	default:
		return CFG_NONE;
	}
}

static int start_block(struct maker *k, uint32_t first) {
	int r = grow(&k->c.blocks, k->c.n_blocks, &k->blocks_capacity, sizeof(*k->c.blocks));

	if (r == 0) {
		r = grow(&k->same, k->c.n_blocks, &k->same_capacity, sizeof(*k->same));
	}
	if (r < 0) {
		return r;
	}
	k->same[k->c.n_blocks] = PTX_NONE;
	k->c.blocks[k->c.n_blocks++] =
		(struct cfg_block){.first = first, .end = first, .last = PTX_NONE};
	return 0;
}

/* A block with a label of its own: blocks are cheap, and a label may be declared twice. */
static int add_label(struct maker *k, const struct ptx_stmt *s) {
	uint32_t block = k->c.n_blocks - 1;

	k->same[block] = ptx_names_find(&k->labels, s->opcode);
	return ptx_names_push(&k->labels, s->opcode, block);
}

static int split_blocks(struct maker *k) {
	bool open = true;
	int r = start_block(k, k->f->stmts);

	for (uint32_t i = k->f->stmts; i < k->f->stmts + k->f->n_stmts && r == 0; i++) {
		const struct ptx_stmt *s = &k->m->stmts[i];
		const struct opcode *op;
		struct cfg_block *b;

		if (!open || s->kind == PTX_STMT_LABEL) {
			r = start_block(k, i);
			open = true;
		}
		if (r < 0) {
			return r;
		}
		b = &k->c.blocks[k->c.n_blocks - 1];
		b->end = i + 1;
		if (s->kind == PTX_STMT_LABEL) {
			r = add_label(k, s);
		} else if (s->kind == PTX_STMT_TABLE) {
			r = ptx_names_push(&k->tables, s->opcode, i);
		} else if (s->kind == PTX_STMT_INSN) {
			op = s->op;
			b->event = event_of(k, s, op);
			if (b->event != CFG_NONE || op->class == OPCODE_BRANCH ||
			    op->class == OPCODE_RETURN || op->class == OPCODE_EXIT) {
				b->last = i;
				open = false;
			}
		}
	}
	return r;
}

/* Tables and labels used over and over could make more edges than any program has. */
static int add_edge(struct maker *k, uint32_t to) {
	int r;

	if (k->c.n_edges > 4096 + 64 * (size_t)k->f->n_stmts) {
		return -E2BIG;
	}
	r = grow(&k->c.edges, k->c.n_edges, &k->edges_capacity, sizeof(*k->c.edges));

	if (r == 0) {
		k->c.edges[k->c.n_edges++] = to;
	}
	return r;
}

static int add_label_edges(struct maker *k, struct ptx_name label) {
	uint32_t to = ptx_names_find(&k->labels, label);
	int r = 0;

	if (to == PTX_NONE) {
		return add_edge(k, k->c.n_blocks);
	}
	for (; to != PTX_NONE && r == 0; to = k->same[to]) {
		r = add_edge(k, to);
	}
	return r;
}

static int add_branch_edges(struct maker *k, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &k->m->operands[s->operands];
	uint32_t table;
	int r = 0;

	if (s->n_operands == 0) {
		return add_edge(k, k->c.n_blocks);
	}
	if (!ptx_name_is(ptx_opcode_part(s->opcode, 0), "brx")) {
		return add_label_edges(k, o[0].name);
	}
	table = ptx_names_find(&k->tables, o[s->n_operands - 1].name);
	if (table == PTX_NONE) {
		return add_edge(k, k->c.n_blocks);
	}
	for (uint32_t i = 0; i < k->m->stmts[table].n_names && r == 0; i++) {
		r = add_label_edges(k, k->m->operands[k->m->stmts[table].names + i].name);
	}
	return r;
}

static int add_edges(struct maker *k) {
	int r = 0;

	for (uint32_t i = 0; i < k->c.n_blocks && r == 0; i++) {
		struct cfg_block *b = &k->c.blocks[i];
		const struct ptx_stmt *s = b->last == PTX_NONE ? NULL : &k->m->stmts[b->last];
		enum opcode_class class = s ? s->op->class : OPCODE_PLAIN;
		bool goes_on = true;

		b->edges = (uint32_t)k->c.n_edges;
		if (class == OPCODE_BRANCH) {
			r = add_branch_edges(k, s);
			goes_on = s->guard.len > 0;
		} else if (class == OPCODE_RETURN || class == OPCODE_EXIT) {
			r = add_edge(k, k->c.n_blocks);
			goes_on = s->guard.len > 0;
		}
		if (goes_on && r == 0) {
			r = add_edge(k, i + 1); /* the one after the last is the end */
		}
		b->n_edges = (uint32_t)k->c.n_edges - b->edges;
	}
	return r;
}

/* The graph turned round, for walks from the end. */
struct reverse {
	uint32_t *first; /* n + 2: sources of the edges into i: from[first[i] .. first[i + 1]] */
	uint32_t *from;
};

static void reverse_deinit(struct reverse *v) {
	free(v->first);
	free(v->from);
}

static int reverse_init(struct reverse *v, const struct cfg *c) {
	uint32_t n = c->n_blocks + 1;

	v->first = calloc((size_t)n + 2, sizeof(*v->first));
	v->from = reallocarray(NULL, c->n_edges + 1, sizeof(*v->from));
	if (!v->first || !v->from) {
		reverse_deinit(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_edges; i++) {
		v->first[c->edges[i] + 2]++;
	}
	for (uint32_t i = 2; i < n + 2; i++) {
		v->first[i] += v->first[i - 1];
	}
	for (uint32_t b = 0; b < c->n_blocks; b++) {
		for (uint32_t i = 0; i < c->blocks[b].n_edges; i++) {
			v->from[v->first[c->edges[c->blocks[b].edges + i] + 1]++] = b;
		}
	}
	return 0;
}

int cfg_reach(const struct cfg *c, const bool *targets, const bool *barred, bool *ret) {
	struct reverse v;
	uint32_t *stack = reallocarray(NULL, (size_t)c->n_blocks + 1, sizeof(*stack));
	size_t n = 0;

	if (!stack || reverse_init(&v, c) < 0) {
		free(stack);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b <= c->n_blocks; b++) {
		ret[b] = targets[b];
		if (ret[b]) {
			stack[n++] = b;
		}
	}
	while (n > 0) {
		uint32_t at = stack[--n];

		for (uint32_t i = v.first[at]; i < v.first[at + 1]; i++) {
			uint32_t b = v.from[i];

			if (!ret[b] && !(barred && barred[b])) {
				ret[b] = true;
				stack[n++] = b;
			}
		}
	}
	reverse_deinit(&v);
	free(stack);
	return 0;
}

int cfg_reach_end(const struct cfg *c, const bool *barred, bool *ret) {
	bool *targets = calloc((size_t)c->n_blocks + 1, sizeof(*targets));
	int r = -ENOMEM;

	if (targets) {
		targets[c->n_blocks] = true;
		r = cfg_reach(c, targets, barred, ret);
		free(targets);
	}
	return r;
}

/* Loops without a way out get one, to the end, from each of their blocks: a way more, never fewer,
 * so that every block has a post-dominator. */
static int open_endless_loops(struct maker *k) {
	bool *ends = calloc((size_t)k->c.n_blocks + 1, sizeof(*ends));
	struct cfg c = k->c;
	uint32_t *edges;
	size_t n = 0;
	int r = ends ? cfg_reach_end(&c, NULL, ends) : -ENOMEM;

	edges = reallocarray(NULL, c.n_edges + c.n_blocks + 1, sizeof(*edges));
	if (r < 0 || !edges) {
		free(ends);
		free(edges);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < c.n_blocks; b++) {
		uint32_t first = (uint32_t)n;

		for (uint32_t i = 0; i < c.blocks[b].n_edges; i++) {
			edges[n++] = c.edges[c.blocks[b].edges + i];
		}
		if (!ends[b]) {
			edges[n++] = c.n_blocks;
		}
		c.blocks[b].edges = first;
		c.blocks[b].n_edges = (uint32_t)n - first;
	}
	free(ends);
	free(k->c.edges);
	k->c.edges = edges;
	k->c.n_edges = n;
	return 0;
}

/* Blocks by the order in which a walk from the end leaves them. */
static uint32_t walk(const struct cfg *c, const struct reverse *v, uint32_t *order,
		     uint32_t *number, uint32_t *stack, uint32_t *next) {
	uint32_t n = 0, depth = 0;

	for (uint32_t i = 0; i <= c->n_blocks; i++) {
		number[i] = PTX_NONE;
		next[i] = v->first[i];
	}
	stack[depth++] = c->n_blocks;
	number[c->n_blocks] = 0; /* seen */
	while (depth > 0) {
		uint32_t at = stack[depth - 1];

		if (next[at] < v->first[at + 1]) {
			uint32_t b = v->from[next[at]++];

			if (number[b] == PTX_NONE) {
				number[b] = 0;
				stack[depth++] = b;
			}
		} else {
			number[at] = n;
			order[n++] = at;
			depth--;
		}
	}
	return n;
}

/* Immediate post-dominators. Return: false when the budget is used up. */
static bool post_dominate(const struct cfg *c, const uint32_t *order, uint32_t n_order,
			  const uint32_t *number, uint32_t *ipdom, size_t budget) {
	bool changed = true;

	for (uint32_t i = 0; i <= c->n_blocks; i++) {
		ipdom[i] = PTX_NONE;
	}
	ipdom[c->n_blocks] = c->n_blocks;
	while (changed) {
		changed = false;
		for (uint32_t i = n_order - 1; i-- > 0;) {
			uint32_t b = order[i], best = PTX_NONE;

			for (uint32_t e = 0; e < c->blocks[b].n_edges; e++) {
				uint32_t s = c->edges[c->blocks[b].edges + e];

				if (ipdom[s] == PTX_NONE) {
					continue;
				}
				while (best != PTX_NONE && s != best) {
					if (budget-- == 0) {
						return false;
					}
					if (number[s] < number[best]) {
						s = ipdom[s];
					} else {
						best = ipdom[best];
					}
				}
				best = s;
			}
			changed |= ipdom[b] != best;
			ipdom[b] = best;
			if (budget-- == 0) {
				return false;
			}
		}
	}
	return true;
}

/* Return: 0; -ENOMEM; -E2BIG when the budget is used up. */
static int control_from(struct cfg *c, const uint32_t *ipdom, size_t budget) {
	size_t n = 0, capacity = 0;
	int r = 0;

	c->control = calloc((size_t)c->n_blocks + 1, sizeof(*c->control));
	if (!c->control) {
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < c->n_blocks; b++) {
		for (uint32_t e = 0; c->blocks[b].n_edges > 1 && e < c->blocks[b].n_edges; e++) {
			uint32_t s = c->edges[c->blocks[b].edges + e];

			for (; s != ipdom[b] && s != c->n_blocks && r == 0; s = ipdom[s]) {
				r = n < budget ? grow(&c->controlled, n, &capacity,
						      sizeof(*c->controlled))
					       : -E2BIG;
				if (r == 0) {
					c->controlled[n++] = s;
				}
			}
		}
		c->control[b + 1] = (uint32_t)n;
	}
	return r;
}

static int find_control(struct cfg *c) {
	size_t n = (size_t)c->n_blocks + 1, budget = 64 * (n + c->n_edges) + 4096;
	uint32_t *space = reallocarray(NULL, n, 5 * sizeof(*space));
	uint32_t *order = space, *number = space + n, *ipdom = space + 2 * n;
	struct reverse v;
	uint32_t n_order;
	int r;

	if (!space || reverse_init(&v, c) < 0) {
		free(space);
		return -ENOMEM;
	}
	n_order = walk(c, &v, order, number, space + 3 * n, space + 4 * n);
	r = post_dominate(c, order, n_order, number, ipdom, budget) ? control_from(c, ipdom, budget)
								    : -E2BIG;
	if (r < 0) {
		free(c->control);
		free(c->controlled);
		c->control = c->controlled = NULL;
	}
	reverse_deinit(&v);
	free(space);
	return r == -E2BIG ? 0 : r;
}

int cfg_init(struct cfg *c, const struct module_facts *facts, const struct ptx_func *f) {
	struct maker k = {.facts = facts, .m = facts->m, .f = f};
	int r;

	r = split_blocks(&k);
	if (r == 0) {
		r = add_edges(&k);
	}
	if (r == 0) {
		r = open_endless_loops(&k);
	}
	if (r == 0) {
		r = find_control(&k.c);
	}
	ptx_names_deinit(&k.labels);
	ptx_names_deinit(&k.tables);
	free(k.same);
	if (r < 0) {
		cfg_deinit(&k.c);
		return r;
	}
	*c = k.c;
	return 0;
}

void cfg_deinit(struct cfg *c) {
	free(c->blocks);
	free(c->edges);
	free(c->control);
	free(c->controlled);
	*c = (struct cfg){0};
}
