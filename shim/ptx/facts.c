/*
 * facts.c: one look at every statement of a module, then one walk over the calls, from callees to
 * callers.
 */
#include "shim/ptx/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/assertion.h"
#include "shim/ptx/constants.h"
#include "shim/ptx/memory.h"
#include "shim/ptx/names.h"
#include "shim/ptx/opcodes.h"

struct scan {
	struct module_facts *out;
	const struct ptx_module *m;
	struct facts *f; /* of the function at hand */
	const struct ptx_func *func;
	uint32_t stmt;
	size_t calls_capacity;
};

static void refuse(struct scan *x, const char *reason) {
	if (!x->f->refusal.reason) {
		x->f->refusal = (struct refusal){
			.reason = reason, .stmt = x->stmt, .line = x->m->stmts[x->stmt].line};
	}
}

const struct ptx_operand *facts_call_target(const struct ptx_module *m, const struct ptx_stmt *s) {
	uint32_t i = 0;

	if (s->n_operands > 0 && m->operands[s->operands].kind == PTX_OPERAND_LIST) {
		i = 1;
	}
	return i < s->n_operands ? &m->operands[s->operands + i] : NULL;
}

bool facts_is_system(struct ptx_name name) {
	static const char *const names[] = {"vprintf", "__assertfail", "malloc", "free"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (ptx_name_is(name, names[i])) {
			return true;
		}
	}
	return false;
}

bool facts_is_private(const struct ptx_module *m, const struct ptx_var *v) {
	static const char *const prefixes[] = {"$str", "__unnamed_", "__cudart_"};

	if (v->space != PTX_SPACE_GLOBAL || ptx_type_bytes(v->type) != 1 || !v->has_init ||
	    v->is_visible || v->is_extern || v->is_weak || v->is_common) {
		return false;
	}
	for (uint32_t i = v->init_first; i < v->init_end; i++) {
		if (m->tokens.list[i].kind == PTX_TOKEN_WORD) {
			return false; /* an address: not a text */
		}
	}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (v->name.len >= n && memcmp(v->name.s, prefixes[i], n) == 0) {
			return true;
		}
	}
	return false;
}

bool facts_is_module_var(const struct ptx_module *m, const struct ptx_operand *o) {
	if (o->var == PTX_NONE ||
	    (o->kind != PTX_OPERAND_SYMBOL && (o->kind != PTX_OPERAND_ADDR || o->base_is_reg))) {
		return false;
	}
	return m->vars[o->var].space == PTX_SPACE_GLOBAL ||
	       m->vars[o->var].space == PTX_SPACE_CONST;
}

/* mov.u16 may read a special register of 32 bits, but no other register of 32 bits. */
static bool is_narrow_mov(const struct scan *x) {
	struct ptx_name opcode = x->m->stmts[x->stmt].opcode;

	return ptx_name_is(ptx_opcode_part(opcode, 0), "mov") &&
	       ptx_type_bytes(ptx_type_from_name(ptx_opcode_part(opcode, 1))) != 4;
}

static void scan_special(struct scan *x, const struct ptx_operand *o) {
	const struct special *s = special_find(o->name);
	unsigned axis = special_axis(o->name);

	if (s->kind == SPECIAL_REFUSED || s->kind == SPECIAL_UNKNOWN) {
		refuse(x, s->reason);
	} else if (s->kind != SPECIAL_PLAIN && (axis > 2 || is_narrow_mov(x))) {
		refuse(x, "it reads block ids as a vector or as 16-bit numbers");
	} else if (s->kind == SPECIAL_CTAID) {
		x->f->own_ids |= (uint32_t)FACTS_CTAID_X << axis;
	} else if (s->kind == SPECIAL_NCTAID) {
		x->f->own_ids |= (uint32_t)FACTS_NCTAID_X << axis;
	}
}

static bool is_wide(struct ptx_name opcode) {
	return ptx_opcode_has(opcode, "u64") || ptx_opcode_has(opcode, "b64") ||
	       ptx_opcode_has(opcode, "s64");
}

/* A name in an instruction, other than a register, a label or what is called. */
static void scan_symbol(struct scan *x, const struct ptx_operand *o) {
	const struct ptx_var *v;

	if (o->var == PTX_NONE) {
		if (o->name.len > 0 && !o->base_is_reg && ptx_module_func(x->m, o->name)) {
			refuse(x, "it takes the address of a function, which differs in a twin");
		}
		return;
	}
	v = &x->m->vars[o->var];
	if (v->space == PTX_SPACE_LOCAL && v->first < x->func->first) {
		refuse(x, "it uses a variable that each thread of the module has for itself");
	} else if (v->space == PTX_SPACE_TEX) {
		refuse(x, "it uses a texture, surface or sampler reference of its module");
	} else if (facts_is_module_var(x->m, o)) {
		struct ptx_name opcode = x->m->stmts[x->stmt].opcode;
		struct ptx_name first = ptx_opcode_part(opcode, 0);

		if (o->kind == PTX_OPERAND_SYMBOL &&
		    !((ptx_name_is(first, "mov") || ptx_name_is(first, "cvta")) &&
		      is_wide(opcode))) {
			refuse(x, "it uses a variable's address in a form not known to be safe");
		}
	}
}

static void scan_operand(struct scan *x, const struct ptx_operand *o) {
	const struct ptx_token *list = x->m->tokens.list;
	enum special_kind kind;

	switch (o->kind) {
	case PTX_OPERAND_REG:
	case PTX_OPERAND_SINK:
		if (o->kind == PTX_OPERAND_REG && o->var == PTX_NONE) {
			scan_special(x, o);
		}
		break;
	case PTX_OPERAND_ADDR:
		if (o->base_is_reg && o->var == PTX_NONE) {
			refuse(x, "it uses a special register as an address");
		}
		scan_symbol(x, o);
		break;
	case PTX_OPERAND_SYMBOL:
		scan_symbol(x, o);
		break;
	case PTX_OPERAND_OTHER:
		/* The forms of textures are not taken apart; no block id or variable of the module
		 * may hide in them. */
		for (uint32_t i = o->first; i < o->end; i++) {
			struct ptx_name n = {ptx_token_text(&x->m->tokens, &list[i]), list[i].len};

			if (i > o->first && list[i].kind != PTX_TOKEN_PUNCT &&
			    list[i - 1].kind != PTX_TOKEN_PUNCT) {
				refuse(x, "an operand has a form that is not known to be safe");
			}
			if (list[i].kind != PTX_TOKEN_WORD) {
				continue;
			}
			kind = special_find(n)->kind;
			if (n.s[0] != '%' || kind == SPECIAL_CTAID || kind == SPECIAL_NCTAID ||
			    kind == SPECIAL_REFUSED) {
				refuse(x, "an operand has a form that is not known to be safe");
			}
		}
		break;
	default:
		break;
	}
}

/* Arguments are parameters or registers of the function. */
static void scan_arguments(struct scan *x, const struct ptx_stmt *s) {
	for (uint32_t i = 0; i < s->n_operands; i++) {
		const struct ptx_operand *list = &x->m->operands[s->operands + i];

		for (uint32_t k = 0; k < list->n_elements; k++) {
			const struct ptx_operand *o = &x->m->operands[list->elements + k];

			if (o->kind == PTX_OPERAND_OTHER || facts_is_module_var(x->m, o) ||
			    (o->kind != PTX_OPERAND_INT && o->kind != PTX_OPERAND_FLOAT &&
			     o->kind != PTX_OPERAND_SINK && o->var == PTX_NONE)) {
				refuse(x, "an argument has a form that is not known to be safe");
			}
		}
	}
}

static int scan_call(struct scan *x, const struct ptx_stmt *s) {
	const struct ptx_operand *target = facts_call_target(x->m, s);
	const struct ptx_func *callee;
	uint32_t *calls;

	if (!target || target->kind != PTX_OPERAND_SYMBOL) {
		refuse(x, "it calls through a pointer, so the function can't be told");
		return 0;
	}
	scan_arguments(x, s);
	callee = ptx_module_func(x->m, target->name);
	if (!callee || callee->is_entry) {
		refuse(x, "it calls something that is not a function of this module");
		return 0;
	}
	for (uint32_t i = 0; i < callee->n_params; i++) {
		if (x->m->vars[callee->params + i].space != PTX_SPACE_PARAM) {
			refuse(x, "it calls a function that takes its arguments in registers");
			return 0;
		}
	}
	if (!callee->has_body) {
		if (!facts_is_system(target->name)) {
			refuse(x, "it calls a function that is not in this module");
		}
		return 0;
	}
	if (x->out->n_calls == x->calls_capacity) {
		x->calls_capacity = x->calls_capacity ? x->calls_capacity * 2 : 64;
		calls = reallocarray(x->out->calls, x->calls_capacity, sizeof(*calls));
		if (!calls) {
			return -ENOMEM;
		}
		x->out->calls = calls;
	}
	x->out->calls[x->out->n_calls++] = (uint32_t)(callee - x->m->funcs);
	return 0;
}

static void scan_barrier(struct scan *x, const struct ptx_stmt *s, const struct opcode *op) {
	const struct ptx_operand *o = &x->m->operands[s->operands];
	uint32_t n = s->n_operands;
	/* sync: a{, b}; red: d, a{, b}, c */
	uint32_t number = op->n_results, without_count = op->n_results ? 3 : 1;

	if (op->n_results) {
		x->f->own_has |= FACTS_BARRIER_RESULT;
	}
	if (n < without_count || n > without_count + 1) {
		refuse(x, "a barrier has a form that is not known to be safe");
	} else if (n == without_count) {
		x->f->own_has |= FACTS_BARRIER;
	} else if (o[number].kind != PTX_OPERAND_INT || o[number].value < 0 ||
		   o[number].value > 15) {
		refuse(x,
		       "it is a barrier for a number of threads whose own number is not constant");
	} else {
		x->f->own_has |= FACTS_BARRIER_COUNTED;
		x->f->named_barriers |= 1u << o[number].value;
	}
}

/* Memory by addresses of any kind. Textures and surfaces have handles, not addresses. */
static bool is_generic(struct ptx_name opcode) {
	static const char *const spaces[] = {"global", "shared", "local", "param", "const"};
	static const char *const handles[] = {"tex", "tld4", "txq", "suld", "suq"};
	struct ptx_name first = ptx_opcode_next(&opcode);

	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		if (ptx_name_is(first, handles[i])) {
			return false;
		}
	}
	while (opcode.len > 0) {
		struct ptx_name part = ptx_opcode_next(&opcode);

		for (size_t k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
			size_t n = strlen(spaces[k]);

			if (part.len >= n && memcmp(part.s, spaces[k], n) == 0) {
				return false; /* "shared::cta" too */
			}
		}
	}
	return true;
}

static int scan_insn(struct scan *x, const struct ptx_stmt *s) {
	const struct opcode *op = s->op;
	const struct ptx_operand *o = &x->m->operands[s->operands];
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);

	if (op->reason) {
		refuse(x, op->reason);
	}
	if (op->class == OPCODE_EXIT && !x->func->is_entry) {
		refuse(x, "it ends the thread inside a function");
	}
	if (op->class == OPCODE_WARP) {
		x->f->own_has |= FACTS_WARP;
	}
	if (op->class == OPCODE_ASYNC) {
		x->f->own_has |= FACTS_ASYNC;
	}
	if (op->class == OPCODE_BARRIER) {
		scan_barrier(x, s, op);
	}
	if (memory_polls(s) || memory_fences(s)) {
		x->f->own_has |= FACTS_POLLS;
	}
	if ((op->class == OPCODE_LOAD || op->class == OPCODE_ATOMIC) && is_generic(s->opcode)) {
		x->f->own_has |= FACTS_GENERIC;
	}
	if (ptx_name_is(first, "cvta") && ptx_opcode_has(s->opcode, "const")) {
		x->out->const_escapes = true;
		refuse(x, "it makes a constant's address one that other kernels may use");
	}
	if (ptx_name_is(first, "isspacep") &&
	    !(ptx_opcode_has(s->opcode, "global") || ptx_opcode_has(s->opcode, "shared") ||
	      ptx_opcode_has(s->opcode, "local"))) {
		refuse(x, "it asks for a memory in which a twin has other things");
	}
	if (s->guard.len > 0 && s->guard_var == PTX_NONE) {
		refuse(x, "its guard is not declared");
	}
	if (assertion_is_call(x->m, s)) {
		x->f->own_has |= FACTS_ASSERTS;
		/* a kernel finds them when it needs them, see worker.h */
		x->f->own_ids |= x->func->is_entry ? 0 : FACTS_CTAID;
	}
	if (op->class == OPCODE_CALL) {
		return scan_call(x, s);
	}
	if (op->class == OPCODE_BRANCH &&
	    (s->n_operands == 0 || o[s->n_operands - 1].kind != PTX_OPERAND_SYMBOL)) {
		refuse(x, "it goes to something that is not a label");
	}
	for (uint32_t i = 0; i < s->n_operands; i++) {
		scan_operand(x, &o[i]);
		for (uint32_t k = 0; k < o[i].n_elements; k++) {
			const struct ptx_operand *e = &x->m->operands[o[i].elements + k];

			scan_operand(x, e);
			if (facts_is_module_var(x->m, e)) {
				refuse(x,
				       "it uses a variable's address in a form not known to be "
				       "safe");
			}
		}
	}
	return 0;
}

static void scan_vars(struct scan *x, const struct ptx_stmt *s) {
	for (uint32_t i = s->var; i < s->var + s->n_vars; i++) {
		const struct ptx_var *v = &x->m->vars[i];

		if (v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST ||
		    v->space == PTX_SPACE_TEX || v->is_extern) {
			refuse(x, "it declares a variable of the module inside a function");
		}
	}
}

/* Line tables are left out of twins and hints are kept; anything else would need a thought. */
static void scan_directive(struct scan *x, const struct ptx_stmt *s) {
	const struct ptx_token *k = &x->m->tokens.list[s->first];

	if (!ptx_token_is(&x->m->tokens, k, ".loc") && !ptx_token_is(&x->m->tokens, k, ".pragma")) {
		refuse(x, "it is a directive not known to be safe");
	}
}

static int scan_func(struct scan *x) {
	int r = 0;

	x->f->refusal.stmt = PTX_NONE;
	x->f->calls = (uint32_t)x->out->n_calls;
	for (uint32_t i = 0; i < x->func->n_stmts && r == 0; i++) {
		const struct ptx_stmt *s = &x->m->stmts[x->func->stmts + i];

		x->stmt = x->func->stmts + i;
		if (s->kind == PTX_STMT_INSN) {
			r = scan_insn(x, s);
		} else if (s->kind == PTX_STMT_VAR) {
			scan_vars(x, s);
		} else if (s->kind == PTX_STMT_DIRECTIVE) {
			scan_directive(x, s);
		}
	}
	if (r == 0 && !x->f->refusal.reason) {
		r = constants_check(x->m, x->func, &x->f->refusal);
	}
	x->f->n_calls = (uint32_t)x->out->n_calls - x->f->calls;
	x->f->has = x->f->own_has;
	return r;
}

/* Adds what @callee does to @caller. Return: whether that told anything new. */
static bool absorb(struct facts *caller, const struct facts *callee) {
	struct facts old = *caller;

	caller->callee_ids |= facts_ids(callee);
	caller->has |= callee->has;
	caller->named_barriers |= callee->named_barriers;
	if (!caller->refusal.reason) {
		caller->refusal = callee->refusal;
	}
	return old.callee_ids != caller->callee_ids || old.has != caller->has ||
	       old.named_barriers != caller->named_barriers ||
	       old.refusal.reason != caller->refusal.reason;
}

/*
 * From callees to callers until nothing changes. A function comes back to the queue only when
 * one of its facts has changed, which each can do once, so recursion ends and time is linear.
 */
int module_facts_propagate(struct module_facts *f) {
	size_t n = f->m->n_funcs, head = 0, count = 0;
	uint32_t *first = calloc(n + 2, sizeof(*first)); /* callers of i: callers[first[i]...] */
	uint32_t *callers = reallocarray(NULL, f->n_calls + 1, sizeof(*callers));
	uint32_t *queue = reallocarray(NULL, n + 1, sizeof(*queue));
	bool *queued = calloc(n + 1, sizeof(*queued));
	int r = -ENOMEM;

	if (!first || !callers || !queue || !queued) {
		goto out;
	}
	for (size_t i = 0; i < f->n_calls; i++) {
		first[f->calls[i] + 2]++;
	}
	for (size_t i = 2; i < n + 2; i++) {
		first[i] += first[i - 1];
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < f->funcs[i].n_calls; k++) {
			callers[first[f->calls[f->funcs[i].calls + k] + 1]++] = i;
		}
		queue[count++] = i;
		queued[i] = true;
	}
	while (count > 0) {
		uint32_t i = queue[head];

		head = (head + 1) % (n + 1);
		count--;
		queued[i] = false;
		for (uint32_t k = first[i]; k < first[i + 1]; k++) {
			uint32_t c = callers[k];

			if (absorb(&f->funcs[c], &f->funcs[i]) && !queued[c]) {
				queue[(head + count++) % (n + 1)] = c;
				queued[c] = true;
			}
		}
	}
	r = 0;
out:
	free(first);
	free(callers);
	free(queue);
	free(queued);
	return r;
}

/* Our own names must be free, or the text is a twin module already. */
static bool has_our_names(const struct ptx_module *m) {
	for (size_t i = 0; i < m->tokens.n; i++) {
		const struct ptx_token *k = &m->tokens.list[i];
		const char *s = ptx_token_text(&m->tokens, k);

		if (k->kind == PTX_TOKEN_WORD && memmem(s, k->len, "sbeet_", 6)) {
			return true;
		}
	}
	return false;
}

/* "generic(c)" of a constant in the initial value of a variable. */
static bool has_const_pointers(const struct ptx_module *m) {
	struct ptx_names constants = {0};
	bool found = false;

	for (size_t i = 0; i < m->n_vars; i++) {
		if (m->vars[i].space == PTX_SPACE_CONST &&
		    ptx_names_push(&constants, m->vars[i].name, 1) < 0) {
			found = true; /* no memory to tell: take the worst */
		}
	}
	for (size_t i = 0; i < m->n_vars && !found; i++) {
		for (uint32_t k = m->vars[i].init_first; k < m->vars[i].init_end && !found; k++) {
			const struct ptx_token *t = &m->tokens.list[k];

			found = t->kind == PTX_TOKEN_WORD &&
				ptx_names_find(&constants,
					       (struct ptx_name){ptx_token_text(&m->tokens, t),
								 t->len}) != PTX_NAMES_NONE;
		}
	}
	ptx_names_deinit(&constants);
	return found;
}

static void check_module(struct module_facts *f) {
	const struct ptx_module *m = f->m;

	f->const_escapes = has_const_pointers(m);
	f->refusal.stmt = PTX_NONE;
	if (m->address_size != 64) {
		f->refusal.reason = "its addresses are not 64 bits wide";
	} else if (m->target_sm < 70) {
		f->refusal.reason =
			"it is written for GPUs before sm_70, whose warps run in lockstep";
	} else if (m->version_major < 6 || (m->version_major == 6 && m->version_minor < 3)) {
		f->refusal.reason = "its PTX version is below 6.3";
	} else if (has_our_names(m)) {
		f->refusal.reason = "its module uses names that start with sbeet_";
	}
}

int module_facts_init(struct module_facts *f, const struct ptx_module *m) {
	struct module_facts out = {.m = m};
	struct scan x = {.out = &out, .m = m};
	int r = 0;

	out.funcs = calloc(m->n_funcs + 1, sizeof(*out.funcs));
	if (!out.funcs) {
		return -ENOMEM;
	}
	check_module(&out);
	for (size_t i = 0; i < m->n_funcs && r == 0; i++) {
		x.f = &out.funcs[i];
		x.func = &m->funcs[i];
		if (x.func->has_body) {
			r = scan_func(&x);
		}
	}
	if (r == 0) {
		r = module_facts_propagate(&out);
	}
	if (r < 0) {
		module_facts_deinit(&out);
		return r;
	}
	*f = out;
	return 0;
}

void module_facts_deinit(struct module_facts *f) {
	free(f->funcs);
	free(f->calls);
	*f = (struct module_facts){0};
}
