/*
 * emit.c: copies a kernel's statements into its twin and changes the few that have to be.
 *
 *	ret, exit		to the end of the virtual block
 *	%ctaid, %nctaid		registers %sbeet_id<n>
 *	variables of the module	through their addresses in TWIN_VARS_NAME
 *	ld.const		ld.global: the addresses are those of the original's constants
 *	barriers		votes, where threads may have ended
 *	branches by which lanes of a warp leave, one by one	those who stay are counted
 *	masks behind them	cut to those who stay
 *	masks of whole warps	cut to those who are there (rollcall.h), where that is needed
 *	griddepcontrol		left out
 *	__assertfail		told of the virtual block (assertion.h)
 *	calls			the ids as further arguments, where the callee reads any
 *	registers that may be read before they are written	set to 0 before
 *				(undefined.h, zeros.h)
 *
 * What an instruction needs of its own stands in braces around it.
 */
#include "shim/ptx/emit.h"

#include <stdlib.h>
#include <string.h>

#include "shim/ptx/assertion.h"
#include "shim/ptx/hazards.h"
#include "shim/ptx/opcodes.h"
#include "shim/ptx/rollcall.h"
#include "shim/ptx/twin.h"
#include "shim/ptx/undefined.h"
#include "shim/ptx/worker.h"
#include "shim/ptx/zeros.h"

struct context {
	const struct emit *e;
	const struct ptx_module *m;
	struct text *out;
	bool is_kernel;
	bool vote, apart;		  /* as in struct hazards */
	const struct worker *worker;	  /* of a kernel */
	const struct leave *leaves, *end; /* of the kernel's, those still to come */
	bool count;			  /* there are some */
	bool roll;			  /* as in struct hazards */
	const struct registers *registers;
	const bool *undefined;		      /* of the kernel's registers; NULL: not known */
	const struct zero *zeros, *zeros_end; /* where they are set to 0, those still to come */
	bool zeros_first; /* or, as nothing better is known, where they are declared */
};

/* A token that is written differently. */
struct change {
	uint32_t first, end;   /* tokens */
	const char *registers; /* with this number: what takes their place */
	unsigned number;
};

/* More names than any instruction takes; facts.c refuses vectors of symbols by their form. */
#define CHANGES_MAX 8

static const struct ptx_token *token(const struct ptx_module *m, uint32_t i) {
	return &m->tokens.list[i];
}

static void add_name(struct text *out, struct ptx_name n) {
	text_add(out, n.s, n.len);
}

void emit_tokens(const struct emit *e, uint32_t first, uint32_t end) {
	const struct ptx_token *a = token(e->m, first), *b = &e->m->tokens.list[end] - 1;

	if (first < end) {
		/* a string's quotes belong to no token */
		uint32_t from = a->offset - (a->kind == PTX_TOKEN_STRING);
		uint32_t to = b->offset + b->len + (b->kind == PTX_TOKEN_STRING);

		text_add(e->out, e->m->tokens.text + from, to - from);
	}
}

/* %ctaid.x and its like to %sbeet_id<n>. Return: whether @n is one of them. */
static bool emit_id(struct context *x, struct ptx_name n) {
	const struct special *s;

	if (n.s[0] != '%') {
		return false;
	}
	s = special_find(n);
	if ((s->kind != SPECIAL_CTAID && s->kind != SPECIAL_NCTAID) || special_axis(n) > 2) {
		return false;
	}
	text_addf(x->out, "%%sbeet_id%u", special_axis(n) + (s->kind == SPECIAL_NCTAID ? 3 : 0));
	return true;
}

/* The opcode, with .const turned to .global. */
static void emit_opcode(struct context *x, struct ptx_name opcode) {
	struct ptx_name rest = opcode, part = ptx_opcode_next(&rest);
	bool load = ptx_name_is(part, "ld");

	add_name(x->out, part);
	while (rest.len > 0) {
		part = ptx_opcode_next(&rest);
		text_adds(x->out, ".");
		if (load && ptx_name_is(part, "const")) {
			text_adds(x->out, "global");
		} else {
			add_name(x->out, part);
		}
	}
}

/* An instruction's tokens from its opcode on, with @changes, which are in the order of the text. */
static void emit_changed(struct context *x, const struct ptx_stmt *s, const struct change *changes,
			 size_t n) {
	const struct ptx_operand *o = &x->m->operands[s->operands];
	uint32_t i = s->n_operands > 0 ? o[0].first : s->end - 1;

	emit_opcode(x, s->opcode);
	text_adds(x->out, " \t");
	while (i < s->end) {
		const struct ptx_token *k = token(x->m, i);
		struct ptx_name name = {ptx_token_text(&x->m->tokens, k), k->len};

		if (n > 0 && i == changes->first) {
			text_addf(x->out, "%s%u", changes->registers, changes->number);
			i = changes->end;
			changes++;
			n--;
			continue;
		}
		if (k->kind != PTX_TOKEN_WORD || !emit_id(x, name)) {
			add_name(x->out, name);
		}
		if (k->kind == PTX_TOKEN_PUNCT && (name.s[0] == ',' || name.s[0] == ';')) {
			text_adds(x->out, name.s[0] == ',' ? " " : "\n");
		}
		i++;
	}
}

static void emit_guard(struct context *x, const struct ptx_stmt *s) {
	text_adds(x->out, "\t");
	if (s->guard.len > 0) {
		text_adds(x->out, s->guard_negated ? "@!" : "@");
		add_name(x->out, s->guard);
		text_adds(x->out, " ");
	}
}

/* Puts the address of operand @o's variable into register %sbeet_a<@n>. */
static void emit_address(struct context *x, const struct ptx_operand *o, unsigned n) {
	text_addf(x->out,
		  "\tld.const.u64 \t%%sbeet_a%u, [" TWIN_VARS_NAME
		  "+%u];\n"
		  "\tcvta.to.global.u64 \t%%sbeet_a%u, %%sbeet_a%u;\n",
		  n, 8 * x->e->slots[o->var], n, n);
	if (o->kind == PTX_OPERAND_SYMBOL && o->value != 0) {
		text_addf(x->out, "\tadd.s64 \t%%sbeet_a%u, %%sbeet_a%u, %lld;\n", n, n,
			  (long long)o->value);
	}
}

/* Of an address only the name changes, its offset stays; a symbol changes whole. */
static size_t find_changes(const struct context *x, const struct ptx_stmt *s,
			   struct change changes[static CHANGES_MAX]) {
	size_t n = 0;

	for (uint32_t i = 0; i < s->n_operands && n < CHANGES_MAX; i++) {
		const struct ptx_operand *o = &x->m->operands[s->operands + i];
		bool address = o->kind == PTX_OPERAND_ADDR;

		if (facts_is_module_var(x->m, o) && !facts_is_private(x->m, &x->m->vars[o->var])) {
			changes[n] = (struct change){.first = o->first + address,
						     .end = address ? o->first + 2 : o->end,
						     .registers = "%sbeet_a",
						     .number = (unsigned)n};
			n++;
		}
	}
	return n;
}

static void emit_plain(struct context *x, const struct ptx_stmt *s) {
	struct change changes[CHANGES_MAX];
	size_t n = find_changes(x, s, changes), k = 0;

	if (n > 0) {
		text_addf(x->out, "\t{\n\t.reg .b64 \t%%sbeet_a<%zu>;\n", n);
		for (uint32_t i = 0; i < s->n_operands && k < n; i++) {
			const struct ptx_operand *o = &x->m->operands[s->operands + i];

			if (facts_is_module_var(x->m, o) &&
			    !facts_is_private(x->m, &x->m->vars[o->var])) {
				emit_address(x, o, (unsigned)k++);
			}
		}
	}
	emit_guard(x, s);
	emit_changed(x, s, changes, n);
	text_adds(x->out, n > 0 ? "\t}\n" : "");
}

/* An instruction that waits for the lanes of its mask, which is the last operand: for those that
 * are left. */
static void emit_meeting(struct context *x, const struct ptx_stmt *s) {
	const struct ptx_operand *mask = &x->m->operands[s->operands + s->n_operands - 1];
	const struct change change = {
		.first = mask->first, .end = mask->end, .registers = "%sbeet_m", .number = 0};

	text_adds(x->out, "\t{\n\t.reg .b32 \t%sbeet_m<1>;\n\tand.b32 \t%sbeet_m0, ");
	emit_tokens(x->e, mask->first, mask->end);
	text_adds(x->out, ", %sbeet_live;\n");
	emit_guard(x, s);
	emit_changed(x, s, &change, 1);
	text_adds(x->out, "\t}\n");
}

/* The same, for those of a whole warp that are there. */
static void emit_roll_call(struct context *x, const struct ptx_stmt *s) {
	const struct ptx_operand *mask = &x->m->operands[s->operands + s->n_operands - 1];
	const struct change change = {
		.first = mask->first, .end = mask->end, .registers = ROLLCALL_MASK, .number = 0};

	text_adds(x->out, "\t{\n\t.reg .b32 \t" ROLLCALL_MASK
			  "<1>;\n"
			  "\t.reg .pred \t%sbeet_here, %sbeet_whole;\n"
			  "\tsetp.eq.u32 \t%sbeet_here, 0, 0;\n"
			  "\tsetp.ne.u32 \t%sbeet_whole, 0, 0;\n");
	emit_guard(x, s);
	text_adds(x->out, "setp.eq.u32 \t%sbeet_whole, ");
	emit_tokens(x->e, mask->first, mask->end);
	text_adds(x->out, ", -1;\n\tmov.b32 \t" ROLLCALL_MASK "0, ");
	emit_tokens(x->e, mask->first, mask->end);
	text_adds(x->out, ";\n\t@%sbeet_whole vote.sync.ballot.b32 \t" ROLLCALL_MASK
			  "0, %sbeet_here, -1;\n");
	emit_guard(x, s);
	emit_changed(x, s, &change, 1);
	text_adds(x->out, "\t}\n");
}

/* In front of the branch by which lanes leave. */
static void emit_leave(struct context *x, const struct leave *l) {
	const struct ptx_stmt *s = &x->m->stmts[l->stmt];

	text_addf(x->out, "\tvote.sync.ballot.b32 \t%%sbeet_live, %s%.*s, %%sbeet_live;\n",
		  l->stay_negated ? "!" : "", (int)s->guard.len, s->guard.s);
}

static void emit_operand(struct context *x, const struct ptx_operand *o) {
	emit_tokens(x->e, o->first, o->end);
}

/* None of the warp is at a meeting: those that have ended come to the barrier too. The answer must
 * be used here as well. */
static void emit_roll_call_before_vote(struct context *x, const struct ptx_stmt *s) {
	emit_guard(x, s);
	text_adds(x->out, "vote.sync.ballot.b32 \t%sbeet_n, !%sbeet_v, -1;\n");
	emit_guard(x, s);
	text_adds(x->out, "setp.eq.u32 \t%sbeet_w, %sbeet_n, 0;\n");
}

/*
 * A thread at a barrier says that it runs; those that have ended say no, in worker.c. Where they
 * may be of its own warp, it also tells them behind the barrier (worker.c says why). An answer that
 * nobody uses would be left out by the assembler: a warp without this thread can't be.
 */
static void emit_vote(struct context *x, const struct ptx_stmt *s) {
	text_adds(x->out,
		  "\t{\n\t.reg .pred \t%sbeet_v, %sbeet_w;\n\t.reg .b32 \t%sbeet_n;\n"
		  "\tsetp.eq.u32 \t%sbeet_v, 0, 0;\n");
	if (x->roll) {
		emit_roll_call_before_vote(x, s);
	}
	emit_guard(x, s);
	text_addf(x->out, "barrier.red.or.pred \t%%sbeet_w, %u, %%sbeet_%c;\n", x->e->barrier,
		  x->roll ? 'w' : 'v');
	if (x->apart) {
		text_adds(x->out, "\tmov.b32 \t%sbeet_n, 1;\n");
		emit_guard(x, s);
		text_adds(x->out,
			  "vote.sync.ballot.b32 \t%sbeet_n, %sbeet_v, -1;\n"
			  "\tsetp.eq.u32 \t%sbeet_w, %sbeet_n, 0;\n"
			  "\t@%sbeet_w trap;\n");
	}
	text_adds(x->out, "\t}\n");
}

static void emit_call(struct context *x, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &x->m->operands[s->operands];
	const struct ptx_operand *target = facts_call_target(x->m, s), *args = target + 1;
	bool has_args = target + 1 < o + s->n_operands && args->kind == PTX_OPERAND_LIST;
	const char *separator = "";

	text_adds(x->out, "\t{\n");
	for (unsigned i = 0; i < _FACTS_ID_N; i++) {
		if (x->e->passed_ids & (1u << i)) {
			text_addf(x->out, "\t.param .b32 \tsbeet_id%u;\n", i);
			emit_guard(x, s);
			text_addf(x->out, "st.param.b32 \t[sbeet_id%u], %%sbeet_id%u;\n", i, i);
		}
	}
	emit_guard(x, s);
	add_name(x->out, s->opcode);
	text_adds(x->out, " \t");
	if (target > o) {
		emit_operand(x, o);
		text_adds(x->out, ", ");
	}
	add_name(x->out, target->name);
	text_adds(x->out, ", (");
	if (has_args && args->n_elements > 0) {
		emit_tokens(x->e, args->first + 1, args->end - 1);
		separator = ", ";
	}
	for (unsigned i = 0; i < _FACTS_ID_N; i++) {
		if (x->e->passed_ids & (1u << i)) {
			text_addf(x->out, "%ssbeet_id%u", separator, i);
			separator = ", ";
		}
	}
	text_adds(x->out, ");\n\t}\n");
}

static void emit_assertion(struct context *x, const struct ptx_stmt *s) {
	const struct ptx_operand *args = &x->m->operands[s->operands + 1];

	text_adds(x->out, "\t{\n");
	if (x->is_kernel) {
		worker_emit_ids(x->worker, x->out);
	}
	for (unsigned i = 0; i < 3; i++) {
		text_addf(x->out,
			  "\t.param .b32 \tsbeet_id%u;\n\tst.param.b32 \t[sbeet_id%u], %s%u;\n", i,
			  i, x->is_kernel ? "%sbeet_r" : "%sbeet_id", i);
	}
	emit_guard(x, s);
	add_name(x->out, s->opcode);
	text_adds(x->out, " \t" ASSERTION_FUNCTION ", (");
	emit_tokens(x->e, args->first + 1, args->end - 1);
	text_adds(x->out, ", sbeet_id0, sbeet_id1, sbeet_id2);\n\t}\n");
}

static void emit_insn(struct context *x, const struct ptx_stmt *s) {
	const struct opcode *op = s->op;
	const struct ptx_func *callee = NULL;

	if (x->leaves < x->end && x->leaves->stmt == (uint32_t)(s - x->m->stmts)) {
		emit_leave(x, x->leaves++);
	}
	if (op->class == OPCODE_CALL) {
		callee = ptx_module_func(x->m, facts_call_target(x->m, s)->name);
	}
	if (op->class == OPCODE_OTHER_GRIDS) {
		return; /* a twin's grid runs after what stands before it, and before what comes */
	}
	if (x->is_kernel && (op->class == OPCODE_RETURN || op->class == OPCODE_EXIT)) {
		emit_guard(x, s);
		text_adds(x->out, "bra \t" WORKER_END_LABEL ";\n");
	} else if (x->vote && op->class == OPCODE_BARRIER && s->n_operands == 1) {
		emit_vote(x, s);
	} else if (x->count && op->class == OPCODE_WARP) {
		emit_meeting(x, s);
	} else if (x->roll && op->class == OPCODE_WARP) {
		emit_roll_call(x, s);
	} else if (assertion_is_call(x->m, s)) {
		emit_assertion(x, s);
	} else if (callee && callee->has_body &&
		   facts_ids(&x->e->facts->funcs[callee - x->m->funcs])) {
		emit_call(x, s);
	} else {
		emit_plain(x, s);
	}
}

/* A register of @v, at @number of its range. */
static void emit_zero(struct context *x, const struct ptx_var *v, uint32_t number) {
	unsigned bits = 8 * ptx_type_bytes(v->type);

	if (v->vector != 1 ||
	    (v->type != PTX_TYPE_PRED && bits != 16 && bits != 32 && bits != 64)) {
		return;
	}
	if (v->type == PTX_TYPE_PRED) {
		text_adds(x->out, "\tsetp.ne.u32 \t");
	} else {
		text_addf(x->out, "\tmov.b%u \t", bits);
	}
	add_name(x->out, v->name);
	if (v->reg_range) {
		text_addf(x->out, "%u", number);
	}
	text_adds(x->out, v->type == PTX_TYPE_PRED ? ", 0, 0;\n" : ", 0;\n");
}

/* Of those that statement @s declares. */
static void emit_zeros(struct context *x, const struct ptx_stmt *s) {
	for (uint32_t i = s->var; i < s->var + s->n_vars; i++) {
		const struct ptx_var *v = &x->m->vars[i];
		uint32_t n = v->space != PTX_SPACE_REG ? 0 : v->reg_range ? v->reg_range : 1;

		for (uint32_t k = 0; k < n; k++) {
			if (x->undefined[x->registers->bases[i - x->registers->first_var] + k]) {
				emit_zero(x, v, k);
			}
		}
	}
}

/* Register @number of the kernel's. */
static void emit_zero_register(struct context *x, uint32_t number) {
	const struct registers *r = x->registers;
	uint32_t low = 0, high = r->n_vars; /* the last variable that begins at it or before */

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (r->bases[middle] <= number) {
			low = middle;
		} else {
			high = middle;
		}
	}
	emit_zero(x, &x->m->vars[r->first_var + low], number - r->bases[low]);
}

static void emit_body(struct context *x, const struct ptx_func *f) {
	bool first = true;

	for (uint32_t i = 0; i < f->n_stmts; i++) {
		const struct ptx_stmt *s = &x->m->stmts[f->stmts + i];

		for (; x->zeros < x->zeros_end && x->zeros->stmt <= f->stmts + i; x->zeros++) {
			emit_zero_register(x, x->zeros->reg);
		}
		first &= s->kind == PTX_STMT_VAR || s->kind == PTX_STMT_DIRECTIVE;
		if (s->kind == PTX_STMT_INSN) {
			emit_insn(x, s);
		} else if (s->kind != PTX_STMT_DIRECTIVE ||
			   !ptx_token_is(&x->m->tokens, token(x->m, s->first), ".loc")) {
			text_adds(x->out, s->kind == PTX_STMT_LABEL ? "" : "\t");
			emit_tokens(x->e, s->first, s->end);
			text_adds(x->out, "\n");
		}
		if (first && x->zeros_first && s->kind == PTX_STMT_VAR) {
			emit_zeros(x, s);
		}
	}
}

/* The declarations of @n parameters, joined by commas. */
static void emit_params(const struct emit *e, uint32_t first, uint32_t n) {
	for (uint32_t i = 0; i < n; i++) {
		text_adds(e->out, i ? ",\n\t" : "\n\t");
		emit_tokens(e, e->m->vars[first + i].first, e->m->vars[first + i].end);
	}
}

/* Registers that are declared before the first instruction: those that all of the kernel can name,
 * and that keep nothing from one round of a loop to the next. */
static uint32_t count_first(const struct ptx_module *m, const struct registers *r,
			    const struct ptx_func *f) {
	uint32_t end = r->first_var;

	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
		const struct ptx_stmt *s = &m->stmts[i];

		if (s->kind == PTX_STMT_VAR) {
			end = s->var + s->n_vars;
		} else if (s->kind != PTX_STMT_DIRECTIVE) {
			break;
		}
	}
	return end - r->first_var < r->n_vars ? r->bases[end - r->first_var] : r->n;
}

/* Without memory to find out about its registers the twin is as right, but takes more of them. */
static void emit_kernel_body(struct context *x, const struct ptx_func *f) {
	struct registers registers = {0};
	struct zeros zeros = {0};
	bool *undefined = NULL;

	if (registers_init(&registers, x->m, f) == 0) {
		undefined = undefined_find(x->e->facts, &registers, f);
	}
	x->registers = &registers;
	x->undefined = undefined;
	if (undefined) {
		x->zeros_first = zeros_place(&zeros, x->e->facts, &registers, f, undefined,
					     count_first(x->m, &registers, f)) < 0;
		x->zeros = zeros.list;
		x->zeros_end = zeros.n > 0 ? zeros.list + zeros.n : NULL;
	}
	emit_body(x, f);
	free(zeros.list);
	free(undefined);
	registers_deinit(&registers);
}

void emit_kernel(const struct emit *e, const struct ptx_func *f, const struct hazards *h,
		 bool shared_slot) {
	const struct facts *facts = &e->facts->funcs[f - e->m->funcs];
	struct worker w = {
		.ids = facts->own_ids | (facts->callee_ids ? e->passed_ids : 0),
		.barrier = e->barrier,
		.vote = h->vote,
		.apart = h->apart,
		.roll = h->roll,
		.asserts = facts->own_has & FACTS_ASSERTS,
		.shared_slot = shared_slot,
		.drain = facts->has & FACTS_ASYNC,
	};
	struct context x = {
		.e = e,
		.m = e->m,
		.out = e->out,
		.is_kernel = true,
		.worker = &w,
		.vote = h->vote,
		.apart = h->apart,
		.leaves = h->leaves,
		.end = h->n_leaves > 0 ? h->leaves + h->n_leaves : NULL,
		.count = h->n_leaves > 0,
		.roll = h->roll,
	};

	text_adds(e->out, ".visible .entry " TWIN_PREFIX);
	add_name(e->out, f->name);
	text_adds(e->out, "(");
	emit_params(e, f->params, f->n_params);
	text_addf(e->out, "%s\n\t.param .align 8 .b8 sbeet_twin_arg[%zu]\n)\n",
		  f->n_params ? "," : "", sizeof(struct twin_arg));
	if (f->directives_first < f->directives_end) {
		emit_tokens(e, f->directives_first, f->directives_end);
		text_adds(e->out, "\n");
	}
	text_adds(e->out, "{\n");
	worker_emit_begin(&w, e->out);
	if (x.count) {
		/* for each virtual block anew */
		text_adds(e->out, "\t.reg .b32 \t%sbeet_live;\n\tmov.b32 \t%sbeet_live, -1;\n");
	}
	emit_kernel_body(&x, f);
	worker_emit_end(&w, e->out);
	text_adds(e->out, "}\n");
}

void emit_function(const struct emit *e, const struct ptx_func *f, bool prototype) {
	const struct facts *facts = &e->facts->funcs[f - e->m->funcs];
	struct context x = {.e = e, .m = e->m, .out = e->out, .vote = true, .apart = true};
	bool given = f->has_body && facts_ids(facts) != 0;
	uint32_t n = f->n_params;

	text_adds(e->out, f->is_extern && !f->has_body ? ".extern .func " : ".func ");
	if (f->n_rets > 0) {
		text_adds(e->out, "(");
		emit_params(e, f->rets, f->n_rets);
		text_adds(e->out, "\n) ");
	}
	add_name(e->out, f->name);
	text_adds(e->out, "(");
	emit_params(e, f->params, f->n_params);
	for (unsigned i = 0; given && i < _FACTS_ID_N; i++) {
		if (e->passed_ids & (1u << i)) {
			text_addf(e->out, "%s\n\t.param .b32 sbeet_given%u", n++ ? "," : "", i);
		}
	}
	text_adds(e->out, "\n)\n");
	if (f->directives_first < f->directives_end) {
		emit_tokens(e, f->directives_first, f->directives_end);
		text_adds(e->out, "\n");
	}
	if (prototype) {
		text_adds(e->out, ";\n");
		return;
	}
	text_adds(e->out, "{\n");
	if (given) {
		text_addf(e->out, "\t.reg .b32 \t%%sbeet_id<%d>;\n", _FACTS_ID_N);
	}
	for (unsigned i = 0; given && i < _FACTS_ID_N; i++) {
		if (e->passed_ids & (1u << i)) {
			text_addf(e->out, "\tld.param.b32 \t%%sbeet_id%u, [sbeet_given%u];\n", i,
				  i);
		}
	}
	emit_body(&x, f);
	text_adds(e->out, "}\n");
}
