/*
 * zeros.c: see zeros.h.
 *
 * Of each block two sets are found: what nobody has written when it begins, on any way; and what
 * is needed then, for it may be read before it is written. A register is set to 0 where it is read
 * unwritten, and at the end of a block behind which it is needed and may have been written, on
 * another way.
 */
#include "shim/ptx/zeros.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/opcodes.h"

/* As in undefined.c. */
#define WORDS_MAX  (1u << 20)
#define ROUNDS_MAX 32

/* More registers in one kernel are set where it begins: each instruction costs a look at a set. */
#define REGISTERS_MAX 1024

struct placer {
	const struct ptx_module *m;
	const struct registers *registers;
	uint32_t *places; /* owned: by register, its number in sets, or PTX_NONE */
	uint32_t *list;	  /* owned, with places: by number in sets, the register */
	uint32_t n;	  /* registers in sets */
	struct cfg cfg;
	size_t words;			/* of a set */
	uint64_t *untouched, *needed;	/* owned: by block, when it begins */
	uint64_t *now, *reads, *writes; /* owned, with needed: scratch */
	struct zeros out;
	size_t capacity;
	int error;
};

static void add(struct placer *x, uint64_t *set, struct ptx_name n, uint32_t var) {
	uint32_t i = n.len > 0 ? registers_find(x->registers, n, var) : PTX_NONE;

	i = i == PTX_NONE ? i : x->places[i];
	if (i != PTX_NONE) {
		set[i / 64] |= UINT64_C(1) << i % 64;
	}
}

static void add_operand(struct placer *x, uint64_t *set, const struct ptx_operand *o) {
	add(x, set, o->name, o->var);
	add(x, set, o->pair, o->pair_var);
	for (uint32_t i = 0; i < o->n_elements; i++) {
		const struct ptx_operand *e = &x->m->operands[o->elements + i];

		add(x, set, e->name, e->var);
	}
}

/* What @s reads and writes, to x->reads and writes. What it may skip to write, it reads. */
static void look_at(struct placer *x, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &x->m->operands[s->operands];
	uint32_t n;

	memset(x->reads, 0, 2 * x->words * sizeof(*x->reads)); /* writes follow */
	if (s->kind != PTX_STMT_INSN || s->op->class == OPCODE_OTHER_GRIDS) {
		return;
	}
	n = s->op->class == OPCODE_CALL ? 1 : s->op->n_results;
	n = n < s->n_operands ? n : s->n_operands;
	add(x, x->reads, s->guard, s->guard_var);
	for (uint32_t i = 0; i < s->n_operands; i++) {
		if (i >= n || s->guard.len > 0) {
			add_operand(x, x->reads, &o[i]);
		}
	}
	if (n > 0) {
		add_operand(x, x->writes, o);
	}
}

/* Return: whether a set of @to changed: to @to and @from, or (@either) to one of both. */
static bool merge(const struct placer *x, uint64_t *to, const uint64_t *from, bool either) {
	bool changed = false;

	for (size_t i = 0; i < x->words; i++) {
		uint64_t old = to[i];

		to[i] = either ? old | from[i] : old & from[i];
		changed |= to[i] != old;
	}
	return changed;
}

static bool find_untouched(struct placer *x) {
	bool changed = false;

	for (uint32_t b = 0; b < x->cfg.n_blocks; b++) {
		const struct cfg_block *k = &x->cfg.blocks[b];

		memcpy(x->now, &x->untouched[b * x->words], x->words * sizeof(*x->now));
		for (uint32_t s = k->first; s < k->end; s++) {
			look_at(x, &x->m->stmts[s]);
			for (size_t i = 0; i < x->words; i++) {
				x->now[i] &= ~x->writes[i];
			}
		}
		for (uint32_t e = k->edges; e < k->edges + k->n_edges; e++) {
			changed |=
				merge(x, &x->untouched[x->cfg.edges[e] * x->words], x->now, false);
		}
	}
	return changed;
}

static bool find_needed(struct placer *x) {
	bool changed = false;

	for (uint32_t b = x->cfg.n_blocks; b-- > 0;) {
		const struct cfg_block *k = &x->cfg.blocks[b];

		memset(x->now, 0, x->words * sizeof(*x->now));
		for (uint32_t e = k->edges; e < k->edges + k->n_edges; e++) {
			merge(x, x->now, &x->needed[x->cfg.edges[e] * x->words], true);
		}
		for (uint32_t s = k->end; s-- > k->first;) {
			look_at(x, &x->m->stmts[s]);
			for (size_t i = 0; i < x->words; i++) {
				x->now[i] = (x->now[i] & ~x->writes[i]) | x->reads[i];
			}
		}
		changed |= merge(x, &x->needed[b * x->words], x->now, true);
	}
	return changed;
}

/* Those of @set to 0 in front of statement @stmt. */
static void push(struct placer *x, uint32_t stmt, const uint64_t *set) {
	for (uint32_t i = 0; i < x->n && x->error == 0; i++) {
		struct zero *list = x->out.list;

		if (set[i / 64] == 0) {
			i |= 63;
			continue;
		}
		if (!(set[i / 64] >> i % 64 & 1)) {
			continue;
		}
		if (x->out.n == x->capacity) {
			x->capacity = x->capacity ? 2 * x->capacity : 64;
			list = reallocarray(list, x->capacity, sizeof(*list));
		}
		if (!list) {
			x->error = -ENOMEM;
			return;
		}
		x->out.list = list;
		list[x->out.n++] = (struct zero){.stmt = stmt, .reg = x->list[i]};
	}
}

/* At the end of a block, where x->now is untouched: what is needed behind it, but is not untouched
 * there. In x->reads. */
static void find_parting(struct placer *x, const struct cfg_block *k) {
	memset(x->reads, 0, x->words * sizeof(*x->reads));
	for (uint32_t e = k->edges; e < k->edges + k->n_edges; e++) {
		size_t to = x->cfg.edges[e] * x->words;

		for (size_t i = 0; i < x->words; i++) {
			x->reads[i] |= x->now[i] & x->needed[to + i] & ~x->untouched[to + i];
		}
	}
}

static void place_in(struct placer *x, uint32_t b) {
	const struct cfg_block *k = &x->cfg.blocks[b];

	memcpy(x->now, &x->untouched[b * x->words], x->words * sizeof(*x->now));
	for (uint32_t s = k->first; s < k->end; s++) {
		look_at(x, &x->m->stmts[s]);
		for (size_t i = 0; i < x->words; i++) {
			x->reads[i] &= x->now[i];
			x->now[i] &= ~(x->reads[i] | x->writes[i]);
		}
		push(x, s, x->reads);
	}
	find_parting(x, k);
	push(x, k->last == PTX_NONE ? k->end : k->last, x->reads);
}

/* Return: 0, -ENOMEM, -E2BIG. */
static int place(struct placer *x) {
	size_t n_sets = (size_t)x->cfg.n_blocks + 1; /* the end has one, too */
	bool changed = true;

	x->words = x->n / 64 + 1;
	if (x->cfg.n_blocks == 0 || n_sets > WORDS_MAX / x->words) {
		return -E2BIG;
	}
	x->untouched = malloc(n_sets * x->words * sizeof(*x->untouched));
	x->needed = calloc(n_sets + 3, x->words * sizeof(*x->needed));
	if (!x->untouched || !x->needed) {
		return -ENOMEM;
	}
	x->now = x->needed + n_sets * x->words;
	x->reads = x->now + x->words;
	x->writes = x->reads + x->words;
	memset(x->untouched, 0xff, n_sets * x->words * sizeof(*x->untouched));
	for (int i = 0; i < ROUNDS_MAX && changed; i++) {
		changed = find_untouched(x);
	}
	if (changed) {
		return -E2BIG;
	}
	changed = true;
	for (int i = 0; i < ROUNDS_MAX && changed; i++) {
		changed = find_needed(x);
	}
	if (changed) {
		return -E2BIG;
	}
	for (uint32_t b = 0; b < x->cfg.n_blocks; b++) {
		place_in(x, b);
	}
	return x->error;
}

/* Numbers the registers. Return: 0, -ENOMEM, -E2BIG. */
static int number(struct placer *x, const bool *undefined, uint32_t limit) {
	size_t n = (size_t)x->registers->n + 1;

	x->places = calloc(n + REGISTERS_MAX, sizeof(*x->places));
	if (!x->places) {
		return -ENOMEM;
	}
	x->list = x->places + n;
	memset(x->places, 0xff, n * sizeof(*x->places));
	for (uint32_t i = 0; i < limit; i++) {
		if (undefined[i] && x->n == REGISTERS_MAX) {
			return -E2BIG;
		}
		if (undefined[i]) {
			x->places[i] = x->n;
			x->list[x->n++] = i;
		}
	}
	return 0;
}

int zeros_place(struct zeros *ret, const struct module_facts *facts,
		const struct registers *registers, const struct ptx_func *f, const bool *undefined,
		uint32_t limit) {
	struct placer x = {.m = facts->m, .registers = registers};
	int r = number(&x, undefined, limit);

	if (r == 0 && x.n > 0) {
		r = cfg_init(&x.cfg, facts, f);
		if (r == 0) {
			r = place(&x);
			cfg_deinit(&x.cfg);
		}
	}
	free(x.places);
	free(x.untouched);
	free(x.needed);
	if (r < 0) {
		free(x.out.list);
		return r;
	}
	*ret = x.out;
	return 0;
}
