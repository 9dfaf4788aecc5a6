/*
 * hazards.c: barriers and warp-wide instructions against threads that have ended.
 *
 * Two arguments show that nobody can have ended who is still waited for:
 *
 *	control is uniform there: every thread of the block (of the warp) comes to the instruction
 *	equally often, and one that has ended has been there each time;
 *	behind it, on every way to the end, there is another meeting that all threads come to
 * equally often and that lets nobody pass alone: one who has ended would have passed it before the
 *	others came;
 *	the mask is that of an activemask just before.
 *
 * Where that is not enough, lanes of a warp may still be counted as they leave (leavers.h), or each
 * time that they meet (rollcall.h).
 */
#include "shim/ptx/hazards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/cfg.h"
#include "shim/ptx/known.h"
#include "shim/ptx/opcodes.h"
#include "shim/ptx/rollcall.h"
#include "shim/ptx/uniform.h"

struct judge {
	const struct module_facts *facts;
	const struct ptx_module *m;
	const struct ptx_func *f;
	struct cfg c;
	struct uniform block; /* what the whole block has in common */
	struct quiet quiet;
	bool vote;
};

static const char warp_reason[] =
	"it waits for threads of its warp that may have ended their block before";
static const char count_reason[] =
	"it waits for a number of threads, some of which may have ended their block before";

/*
 * A vote can't be followed by the kernel's own reduction at once: on a real GPU, a warp of which
 * some lanes are at the one and some that have ended are at the other gets the result of the wrong
 * one.
 */
static const char result_reason[] =
	"it asks all threads of its block, some of which may have ended their block before";

static const char entangled_reason[] = "its control flow is too entangled to be followed";

unsigned hazards_free_barrier(const struct module_facts *facts) {
	uint32_t used = 0;
	unsigned number = 0;

	for (size_t i = 0; i < facts->m->n_funcs; i++) {
		used |= facts->funcs[i].named_barriers;
	}
	while (number < 16 && (used & (1u << number))) {
		number++;
	}
	return number;
}

/* What block @b's event waits with: enum facts_has. */
static uint32_t event_has(const struct judge *j, uint32_t b) {
	const struct ptx_stmt *s;
	const struct ptx_func *callee;

	switch (j->c.blocks[b].event) {
	case CFG_BARRIER:
		return FACTS_BARRIER;
	case CFG_BARRIER_COUNTED:
		return FACTS_BARRIER_COUNTED;
	case CFG_WARP:
		return FACTS_WARP;
	case CFG_CALL:
		s = &j->m->stmts[j->c.blocks[b].last];
		callee = ptx_module_func(j->m, facts_call_target(j->m, s)->name);
		return j->facts->funcs[callee - j->m->funcs].has;
	default:
		return 0;
	}
}

static bool is_guarded(const struct judge *j, uint32_t b) {
	return j->m->stmts[j->c.blocks[b].last].guard.len > 0;
}

/* A meeting of the whole warp that no lane passes alone. */
static bool is_full_warp(const struct judge *j, const struct known *known, uint32_t b) {
	const struct ptx_stmt *s = &j->m->stmts[j->c.blocks[b].last];

	return j->c.blocks[b].event == CFG_WARP && s->n_operands > 0 &&
	       known_is_full_mask(known, &j->m->operands[s->operands + s->n_operands - 1]);
}

/*
 * Marks the blocks behind whose event someone may end without meeting the others again. @warp: the
 * warp's own meetings count too. Return: 0, -ENOMEM.
 */
static int find_open_ends(const struct judge *j, const struct uniform *warp, bool *open) {
	size_t n = (size_t)j->c.n_blocks + 1;
	bool *barred = calloc(n, sizeof(*barred)), *reach = calloc(n, sizeof(*reach));
	struct known known = {0};
	int r = barred && reach ? known_init(&known, j->m, j->f) : -ENOMEM;

	for (uint32_t b = 0; b < j->c.n_blocks && r == 0; b++) {
		if (j->c.blocks[b].event == CFG_NONE || is_guarded(j, b)) {
			continue;
		}
		/* while some barriers vote, a thread may be let through one by others at another */
		barred[b] = (j->c.blocks[b].event == CFG_BARRIER && !j->vote &&
			     !j->block.diverged[b]) ||
			    (warp && !warp->diverged[b] && is_full_warp(j, &known, b));
	}
	if (r == 0) {
		r = cfg_reach_end(&j->c, barred, reach);
	}
	for (uint32_t b = 0; b < j->c.n_blocks && r == 0; b++) {
		open[b] = false;
		for (uint32_t i = 0; i < j->c.blocks[b].n_edges; i++) {
			open[b] |= reach[j->c.edges[j->c.blocks[b].edges + i]];
		}
	}
	known_deinit(&known);
	free(barred);
	free(reach);
	return r;
}

static struct refusal refuse_block(const struct judge *j, uint32_t b, const char *reason) {
	uint32_t last = j->c.blocks[b].last;

	return (struct refusal){.reason = reason, .stmt = last, .line = j->m->stmts[last].line};
}

/* The first event that waits with any of @has where control is diverged and the end is open, but
 * for those marked in @own (NULL: none); no reason if there is none. */
static int find_unsafe(const struct judge *j, const struct uniform *u, uint32_t has,
		       const bool *own, const char *reason, struct refusal *ret) {
	bool *open = calloc((size_t)j->c.n_blocks + 1, sizeof(*open));
	int r = open ? find_open_ends(j, u == &j->block ? NULL : u, open) : -ENOMEM;

	*ret = (struct refusal){.stmt = PTX_NONE};
	for (uint32_t b = 0; b < j->c.n_blocks && r == 0 && !ret->reason; b++) {
		if ((event_has(j, b) & has) && u->diverged[b] && open[b] && !(own && own[b])) {
			*ret = refuse_block(j, b, reason);
		}
	}
	free(open);
	return r;
}

/*
 * Quiet variables are so only if all threads run the same barriers, which may in turn depend on
 * what they read there. Both hold together: as long as they have run the same barriers they read
 * the same, and so come to the same next one. Return: 0, -ENOMEM.
 */
static int find_quiet(struct judge *j, enum uniform_scope scope) {
	struct quiet q;
	struct uniform block;
	int r = quiet_find(&q, &j->c, j->facts, j->f);

	if (r < 0 || q.n == 0) {
		return r;
	}
	r = uniform_init(&block, &j->c, j->m, j->f, scope, NULL, &q);
	if (r < 0) {
		return r;
	}
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		if (block.diverged[b] &&
		    (event_has(j, b) & (FACTS_BARRIER | FACTS_BARRIER_COUNTED))) {
			uniform_deinit(&block);
			return 0;
		}
	}
	uniform_deinit(&j->block);
	j->block = block;
	j->quiet = q;
	return 0;
}

static int judge_init(struct judge *j, const struct module_facts *facts, const struct ptx_func *f,
		      enum uniform_scope block) {
	int r;

	*j = (struct judge){.facts = facts, .m = facts->m, .f = f};
	r = cfg_init(&j->c, facts, f);
	if (r < 0) {
		return r;
	}
	r = uniform_init(&j->block, &j->c, j->m, f, block, NULL, NULL);
	if (r < 0) {
		cfg_deinit(&j->c);
		return r;
	}
	r = find_quiet(j, block);
	if (r < 0) {
		uniform_deinit(&j->block);
		cfg_deinit(&j->c);
		return r;
	}
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		j->vote |= (event_has(j, b) & FACTS_BARRIER) &&
			   (j->c.blocks[b].event == CFG_CALL || j->block.diverged[b]);
	}
	return 0;
}

static void judge_deinit(struct judge *j) {
	uniform_deinit(&j->block);
	cfg_deinit(&j->c);
}

/* Marks the meetings of whole warps: the roll is called there. Return: 0, -ENOMEM. */
static int add_full_warps(const struct judge *j, bool *own) {
	struct known known;
	int r = known_init(&known, j->m, j->f);

	for (uint32_t b = 0; b < j->c.n_blocks && r == 0; b++) {
		own[b] |= is_full_warp(j, &known, b);
	}
	if (r == 0) {
		known_deinit(&known);
	}
	return r;
}

/* Warp-wide instructions: by what is known of any block, else (@rows) of one with whole warps in x.
 * @roll: those for all lanes are right anyway. */
static int judge_warps(const struct judge *j, bool rows, bool roll, struct refusal *ret) {
	bool *own = calloc((size_t)j->c.n_blocks + 1, sizeof(*own));
	struct uniform warp = {0};
	int r = own ? leavers_find_own_masks(&j->c, j->m, j->f, NULL, own) : -ENOMEM;

	if (r == 0 && roll) {
		r = add_full_warps(j, own);
	}
	if (r == 0) {
		r = uniform_init(&warp, &j->c, j->m, j->f, rows ? UNIFORM_WARP_ROWS : UNIFORM_WARP,
				 NULL, &j->quiet);
	}
	if (r == 0) {
		r = find_unsafe(j, &warp, FACTS_WARP, own, warp_reason, ret);
	}
	uniform_deinit(&warp);
	free(own);
	return r;
}

/* The first barrier of a voting kernel that has a result, or a call of a function with one. */
static struct refusal find_result(const struct judge *j) {
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		uint32_t last = j->c.blocks[b].last;
		const struct ptx_stmt *s = last == PTX_NONE ? NULL : &j->m->stmts[last];

		if (s && ((event_has(j, b) & FACTS_BARRIER_RESULT) ||
			  (j->c.blocks[b].event == CFG_BARRIER && s->op->n_results > 0))) {
			return refuse_block(j, b, result_reason);
		}
	}
	return (struct refusal){.stmt = PTX_NONE};
}

/* By block. */
struct shrinking {
	uint8_t *leavers; /* owned: enum leavers */
	bool *meets;	  /* owned: lanes wait for each other */
	bool *votes;	  /* owned: those who stay are counted at its end */
	bool *own;	  /* owned: the mask holds no leaver anyway */
	struct uniform warp;
};

static void shrinking_deinit(struct shrinking *s) {
	free(s->leavers);
	free(s->meets);
	free(s->votes);
	free(s->own);
	uniform_deinit(&s->warp);
}

static int shrinking_init(struct shrinking *s, const struct judge *j, enum uniform_scope scope) {
	size_t n = (size_t)j->c.n_blocks + 1;
	int r;

	*s = (struct shrinking){
		.leavers = calloc(n, sizeof(*s->leavers)),
		.meets = calloc(n, sizeof(*s->meets)),
		.votes = calloc(n, sizeof(*s->votes)),
		.own = calloc(n, sizeof(*s->own)),
	};
	if (!s->leavers || !s->meets || !s->votes || !s->own) {
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		s->meets[b] = event_has(j, b) & FACTS_WARP;
	}
	r = leavers_find(&j->c, j->m, s->meets, s->leavers);
	if (r == 0) {
		r = uniform_init(&s->warp, &j->c, j->m, j->f, scope, s->leavers, &j->quiet);
	}
	for (uint32_t b = 0; b < j->c.n_blocks && r == 0; b++) {
		s->votes[b] = s->leavers[b] != LEAVERS_NONE && s->warp.parted[b];
	}
	return r == 0 ? leavers_find_own_masks(&j->c, j->m, j->f, s->votes, s->own) : r;
}

/* Whether all who are left come to each vote and each meeting, so that they agree who is left. */
static bool all_come(const struct judge *j, const struct shrinking *s) {
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		if ((s->votes[b] && s->warp.diverged[b]) ||
		    (s->meets[b] &&
		     (j->c.blocks[b].event == CFG_CALL || (s->warp.diverged[b] && !s->own[b])))) {
			return false;
		}
	}
	return true;
}

/* Lanes that leave are taken out of the masks. Return: 1; 0: that can't be done; -ENOMEM. */
static int count_leavers(const struct judge *j, enum uniform_scope scope, struct hazards *h) {
	struct shrinking s;
	int r = shrinking_init(&s, j, scope);

	if (r == 0 && all_come(j, &s)) {
		h->leaves = calloc((size_t)j->c.n_blocks + 1, sizeof(*h->leaves));
		r = h->leaves ? 1 : -ENOMEM;
	}
	for (uint32_t b = 0; b < j->c.n_blocks && r == 1; b++) {
		uint32_t last = j->c.blocks[b].last;

		if (s.votes[b]) {
			h->leaves[h->n_leaves++] = (struct leave){
				.stmt = last,
				.stay_negated = (s.leavers[b] == LEAVERS_JUMP) !=
						j->m->stmts[last].guard_negated,
			};
		}
	}
	shrinking_deinit(&s);
	return r;
}

/* The roll is called at each meeting of the warp, which functions can't do. Return: 1; 0: that
 * can't be done; -ENOMEM. */
static int call_roll(const struct judge *j, bool rows_given, struct hazards *h) {
	struct refusal why = {.reason = warp_reason};
	int r = 0;

	if (j->m->target_sm < ROLLCALL_SM_MIN) {
		return 0;
	}
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		if (j->c.blocks[b].event == CFG_CALL &&
		    (event_has(j, b) & (FACTS_WARP | FACTS_BARRIER))) {
			return 0;
		}
	}
	h->block_multiple = 1;
	r = judge_warps(j, rows_given, true, &why);
	if (r == 0 && why.reason && !rows_given) {
		r = judge_warps(j, true, true, &why);
		h->block_multiple = 32;
	}
	h->roll = r == 0 && !why.reason;
	return r < 0 ? r : h->roll;
}

/* The less is asked of blocks and done at run time, the better. */
static int judge_kernel_warps(const struct judge *j, struct hazards *h) {
	bool rows_given = j->f->reqntid[0] > 0 && j->f->reqntid[0] % 32 == 0;
	int r = judge_warps(j, rows_given, false, &h->refusal);

	if (r == 0 && h->refusal.reason && !rows_given) {
		r = judge_warps(j, true, false, &h->refusal);
		h->block_multiple = 32;
	}
	if (r < 0 || !h->refusal.reason) {
		return r;
	}
	r = count_leavers(j, rows_given ? UNIFORM_WARP_ROWS : UNIFORM_WARP, h);
	if (r == 1) {
		h->block_multiple = 1;
	} else if (r == 0 && !rows_given) {
		r = count_leavers(j, UNIFORM_WARP_ROWS, h);
	}
	if (r == 0) {
		r = call_roll(j, rows_given, h);
	}
	if (r == 1) {
		h->refusal = (struct refusal){.stmt = PTX_NONE};
		r = 0;
	}
	return r;
}

static int judge_kernel(const struct judge *j, struct hazards *h) {
	int r;

	if (j->vote) {
		h->refusal = find_result(j);
		if (h->refusal.reason) {
			return 0;
		}
	}
	r = find_unsafe(j, &j->block, FACTS_BARRIER_COUNTED, NULL, count_reason, &h->refusal);
	if (r < 0 || h->refusal.reason) {
		return r;
	}
	return judge_kernel_warps(j, h);
}

/* Whether lanes of one warp may vote at different places: at a barrier, and at their end. Return:
 * 0, -ENOMEM. */
static int find_apart(const struct judge *j, struct hazards *h) {
	bool rows =
		h->block_multiple % 32 == 0 || (j->f->reqntid[0] > 0 && j->f->reqntid[0] % 32 == 0);
	struct uniform warp;
	int r = uniform_init(&warp, &j->c, j->m, j->f, rows ? UNIFORM_WARP_ROWS : UNIFORM_WARP,
			     NULL, &j->quiet);

	if (r < 0) {
		return r;
	}
	h->apart = h->roll;
	for (uint32_t b = 0; b < j->c.n_blocks; b++) {
		h->apart |= (event_has(j, b) & FACTS_BARRIER) &&
			    (j->c.blocks[b].event == CFG_CALL || warp.diverged[b]);
	}
	uniform_deinit(&warp);
	return 0;
}

void hazards_deinit(struct hazards *h) {
	free(h->leaves);
	h->leaves = NULL;
}

/* @block: how much threads of a block are taken to have in common. */
static int judge_entry(struct hazards *ret, const struct module_facts *facts,
		       const struct ptx_func *f, enum uniform_scope block) {
	struct hazards h = {.block_multiple = 1, .refusal = {.stmt = PTX_NONE}};
	struct judge j;
	int r;

	r = judge_init(&j, facts, f, block);
	if (r == -E2BIG) {
		h.refusal = (struct refusal){
			.reason = entangled_reason, .stmt = PTX_NONE, .line = f->line};
		*ret = h;
		return 0;
	}
	if (r < 0) {
		return r;
	}
	r = judge_kernel(&j, &h);
	h.vote = j.vote;
	if (r == 0 && h.vote && !h.refusal.reason) {
		r = find_apart(&j, &h);
	}
	judge_deinit(&j);
	if (r < 0) {
		hazards_deinit(&h);
		return r;
	}
	*ret = h;
	return 0;
}

/* Votes and refusals are safe in a program with data races, too; where a vote is of no use, only
 * the proof that holds without them is left. */
int hazards_judge(struct hazards *ret, const struct module_facts *facts, const struct ptx_func *f) {
	const struct facts *k = &facts->funcs[f - facts->m->funcs];
	struct hazards h = {.block_multiple = 1, .refusal = {.stmt = PTX_NONE}}, again;
	int r = 0;

	if (k->has & (FACTS_BARRIER | FACTS_BARRIER_COUNTED | FACTS_WARP)) {
		r = judge_entry(&h, facts, f, UNIFORM_BLOCK);
	}
	if (r == 0 && (h.refusal.reason == result_reason || h.refusal.reason == count_reason)) {
		r = judge_entry(&again, facts, f, UNIFORM_BLOCK_MEMORY);
		if (r == 0 && !again.refusal.reason) {
			h = again;
		} else if (r == 0) {
			hazards_deinit(&again);
		}
	}
	if (r == 0) {
		*ret = h;
	}
	return r;
}

/* Within a function nobody ends; but who has left it may end while others still wait in it. */
static int judge_function(const struct module_facts *facts, const struct ptx_func *f,
			  struct refusal *ret) {
	struct judge j;
	int r;

	r = judge_init(&j, facts, f, UNIFORM_BLOCK);
	if (r == -E2BIG) {
		*ret = (struct refusal){
			.reason = entangled_reason, .stmt = PTX_NONE, .line = f->line};
		return 0;
	}
	if (r < 0) {
		return r;
	}
	j.vote = true; /* its callers may */
	r = find_unsafe(&j, &j.block, FACTS_BARRIER_COUNTED, NULL, count_reason, ret);
	if (r == 0 && !ret->reason) {
		r = judge_warps(&j, false, false, ret);
	}
	judge_deinit(&j);
	return r;
}

int hazards_judge_functions(struct module_facts *facts) {
	for (size_t i = 0; i < facts->m->n_funcs; i++) {
		const struct ptx_func *f = &facts->m->funcs[i];
		struct refusal refusal;
		int r;

		if (!f->has_body || f->is_entry || facts->funcs[i].refusal.reason ||
		    !(facts->funcs[i].has & (FACTS_BARRIER_COUNTED | FACTS_WARP))) {
			continue;
		}
		r = judge_function(facts, f, &refusal);
		if (r < 0) {
			return r;
		}
		if (refusal.reason) {
			facts->funcs[i].refusal = refusal;
		}
	}
	return module_facts_propagate(facts);
}
