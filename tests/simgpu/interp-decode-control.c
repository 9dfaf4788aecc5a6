/*
 * interp-decode-control.c: branches, calls, and operations in which threads wait for one another.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>

static int add_patch(struct decoder *d, bool in_targets, uint32_t index, struct ptx_name label) {
	const struct function *f = &d->functions[d->current];
	const struct symbol *s = decode_lookup(d, label, NULL);
	int r;

	if (!s || s->kind != SYMBOL_LABEL) {
		return -ENOTSUP;
	}
	r = decode_grow(&d->patches, d->n_patches, &d->cap_patches, sizeof(*d->patches));
	if (r == 0) {
		d->patches[d->n_patches++] =
			(struct patch){.in_targets = in_targets,
				       .index = index,
				       .symbol = (uint32_t)(s - f->symbols.list)};
	}
	return r;
}

static int decode_bra(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 1 || op->o[0].kind != PTX_OPERAND_SYMBOL) {
		return -ENOTSUP;
	}
	op->in.exec = control_bra;
	r = add_patch(d, false, (uint32_t)d->m->n_insns, op->o[0].name);
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_brx(struct decoder *d, struct op *op) {
	struct interp_module *m = d->m;
	const struct symbol *s;
	const struct ptx_stmt *table;
	int r;

	if (op->n != 2 || op->o[1].kind != PTX_OPERAND_SYMBOL) {
		return -ENOTSUP;
	}
	s = decode_lookup(d, op->o[1].name, NULL);
	if (!s || s->kind != SYMBOL_TABLE) {
		return -ENOTSUP;
	}
	table = &m->ptx->stmts[s->value];
	op->in.exec = control_brx;
	op->in.target = (uint32_t)m->n_targets;
	op->in.imm = table->n_names;
	r = decode_src(d, &op->o[0], PTX_TYPE_U32, &op->in.s[0]);
	for (uint32_t i = 0; i < table->n_names && r == 0; i++) {
		r = decode_grow(&m->targets, m->n_targets, &m->cap_targets, sizeof(*m->targets));
		if (r == 0) {
			m->targets[m->n_targets] = 0;
			r = add_patch(d, true, (uint32_t)m->n_targets,
				      m->ptx->operands[table->names + i].name);
			m->n_targets++;
		}
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

/*
 * One argument or return value. @formal: where it stands in a callee that is known, else NULL; then
 * it stands behind the ones before it (@at), each aligned to its own size.
 */
static int add_call_arg(struct decoder *d, const struct ptx_operand *o, bool is_ret,
			const struct formal *formal, uint32_t *at) {
	struct interp_module *m = d->m;
	struct call_arg a = {.in_register = true, .size = 8};
	const struct symbol *s = NULL;
	int r = 0;

	if (o->kind == PTX_OPERAND_REG || o->kind == PTX_OPERAND_SYMBOL) {
		s = decode_lookup(d, o->name, NULL);
	}
	if (s && s->kind == SYMBOL_LOCAL) {
		a = (struct call_arg){.actual = (int32_t)s->value, .size = (uint32_t)s->size};
	} else if (is_ret) {
		a.size = s ? (uint32_t)s->size : 0;
		r = decode_dst(d, o, &a.actual);
	} else {
		a.size = s && s->kind == SYMBOL_REG ? (uint32_t)s->size : a.size;
		r = decode_src(d, o, PTX_TYPE_U64, &a.actual);
	}
	if (r < 0) {
		return r;
	}
	if (formal) {
		a.formal = formal->offset;
		if (a.in_register && a.size > formal->size) {
			a.size = formal->size;
		}
		if (a.size > formal->size) {
			return -ENOTSUP;
		}
	} else {
		uint32_t align = a.size >= 16 ? 16 : a.size ? a.size & -a.size : 1;

		*at = (*at + align - 1) & -align;
		a.formal = *at;
		*at += a.size;
	}
	r = decode_grow(&m->call_args, m->n_call_args, &m->cap_call_args, sizeof(*m->call_args));
	if (r == 0) {
		m->call_args[m->n_call_args++] = a;
	}
	return r;
}

/* The operands of a call: (rets), callee, (args), prototype; the lists may be missing. */
struct call_operands {
	const struct ptx_operand *rets, *callee, *args;
};

static int call_split(const struct op *op, struct call_operands *ret) {
	uint32_t i = 0;

	*ret = (struct call_operands){0};
	if (i < op->n && op->o[i].kind == PTX_OPERAND_LIST) {
		ret->rets = &op->o[i++];
	}
	if (i >= op->n ||
	    (op->o[i].kind != PTX_OPERAND_SYMBOL && op->o[i].kind != PTX_OPERAND_REG)) {
		return -ENOTSUP;
	}
	ret->callee = &op->o[i++];
	if (i < op->n && op->o[i].kind == PTX_OPERAND_LIST) {
		ret->args = &op->o[i++];
	}
	return op->n - i > 1 ? -ENOTSUP : 0;
}

static int call_args(struct decoder *d, const struct call_operands *c, struct call *call) {
	struct interp_module *m = d->m;
	const struct interp_kernel *to =
		call->callee == UINT32_MAX ? NULL : &m->funcs[call->callee];
	const struct ptx_operand *elements = m->ptx->operands;
	uint32_t n_rets = c->rets ? c->rets->n_elements : 0;
	uint32_t n_args = c->args ? c->args->n_elements : 0, at = 0;
	struct call_arg *list;
	/* Never NULL, so that the place of no arguments at all can be named too. */
	int r = decode_grow(&m->call_args, m->n_call_args, &m->cap_call_args,
			    sizeof(*m->call_args));

	if (r < 0) {
		return r;
	}
	if (to && (n_rets != to->ptx->n_rets || n_args != to->ptx->n_params)) {
		return -ENOTSUP;
	}
	call->args = (uint32_t)m->n_call_args;
	call->n_rets = n_rets;
	call->n_args = n_args;
	for (uint32_t i = 0; i < n_rets && r == 0; i++) {
		r = add_call_arg(d, &elements[c->rets->elements + i], true,
				 to ? &to->formals[i] : NULL, &at);
	}
	for (uint32_t i = 0; i < n_args && r == 0; i++) {
		r = add_call_arg(d, &elements[c->args->elements + i], false,
				 to ? &to->formals[n_rets + i] : NULL, &at);
	}
	/* Formals begin with the returns, the list with the arguments. */
	list = m->call_args + call->args;
	for (uint32_t k = 0; k < n_rets && r == 0; k++) {
		struct call_arg first = list[0];

		memmove(list, list + 1, (n_rets + n_args - 1) * sizeof(*list));
		list[n_rets + n_args - 1] = first;
	}
	return r;
}

static int decode_call(struct decoder *d, struct op *op) {
	struct interp_module *m = d->m;
	struct call_operands c;
	struct call call = {.callee = UINT32_MAX, .caller = d->current};
	const struct symbol *s;
	exec_fn exec = control_call;
	int r;

	r = call_split(op, &c);
	if (r < 0) {
		return r;
	}
	if (c.callee->kind == PTX_OPERAND_SYMBOL) {
		s = decode_lookup(d, c.callee->name, NULL);
		if (!s || s->kind != SYMBOL_FUNC) {
			return -ENOTSUP;
		}
		call.callee = s->value;
		if (!m->funcs[s->value].defined) {
			exec = builtin_find(c.callee->name);
			if (!exec) {
				return -ENOTSUP;
			}
		}
	} else {
		r = decode_src(d, c.callee, PTX_TYPE_U64, &op->in.s[0]);
	}
	if (r == 0) {
		r = call_args(d, &c, &call);
	}
	if (r == 0) {
		r = decode_grow(&m->calls, m->n_calls, &m->cap_calls, sizeof(*m->calls));
	}
	if (r < 0) {
		return r;
	}
	op->in.exec = exec;
	op->in.target = (uint32_t)m->n_calls;
	m->calls[m->n_calls++] = call;
	r = decode_emit(d, &op->in);
	if (r == 0 && exec == control_call && call.n_rets) {
		op->in.exec = control_call_return;
		r = decode_emit(d, &op->in);
	}
	return r;
}

static int decode_ret(struct decoder *d, struct op *op) {
	const struct function *f = &d->functions[d->current];
	int r = 0;

	for (size_t i = 0; i < f->n_reg_rets && r == 0; i++) {
		struct insn st = decode_blank(d, mem_st);

		st.space = PTX_SPACE_LOCAL;
		st.type = (uint8_t)f->reg_rets[i].type;
		st.d[0] = (int32_t)f->reg_rets[i].slot;
		st.imm = f->reg_rets[i].offset;
		r = decode_emit(d, &st);
	}
	op->in.exec = control_ret;
	return r < 0 ? r : decode_emit(d, &op->in);
}

int decode_reg_params(struct decoder *d) {
	const struct function *f = &d->functions[d->current];
	int r = 0;

	for (size_t i = 0; i < f->n_reg_params && r == 0; i++) {
		struct insn ld = decode_blank(d, mem_ld);

		ld.space = PTX_SPACE_LOCAL;
		ld.type = (uint8_t)f->reg_params[i].type;
		ld.d[0] = (int32_t)f->reg_params[i].slot;
		ld.imm = f->reg_params[i].offset;
		r = decode_emit(d, &ld);
	}
	return r;
}

/* Result register and, behind a bar, predicate. */
static int sync_results(struct decoder *d, struct op *op) {
	int r = 0;

	if (op->o[0].kind != PTX_OPERAND_SINK) {
		r = decode_dst(d, &op->o[0], &op->in.d[0]);
	}
	if (r == 0 && op->o[0].pair.len) {
		r = decode_pred_dst(d, op->o[0].pair, op, 1);
	}
	return r;
}

static int decode_shfl(struct decoder *d, struct op *op) {
	static const char *const modes[] = {"shfl.up", "shfl.down", "shfl.bfly", "shfl.idx"};
	unsigned n = op->sync ? 4 : 3;
	int r = -ENOTSUP;

	for (unsigned i = 0; i < 4; i++) {
		if (op_key(op, modes[i])) {
			op->in.mode = SYNC_SHFL;
			op->in.mode2 = (uint8_t)i;
			r = 0;
		}
	}
	if (r < 0 || op->n != n + 1 || ptx_type_bytes(op->types[0]) != 4) {
		return -ENOTSUP;
	}
	op->in.exec = op->sync ? sync_warp : sync_warp_unsynced;
	op->in.type = PTX_TYPE_B32;
	r = sync_results(d, op);
	for (unsigned i = 0; i < n && r == 0; i++) {
		r = decode_src(d, &op->o[1 + i], op->types[0], &op->in.s[i]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_vote(struct decoder *d, struct op *op) {
	static const struct {
		const char *key;
		enum sync_op mode;
	} votes[] = {{"vote.all", SYNC_VOTE_ALL},
		     {"vote.any", SYNC_VOTE_ANY},
		     {"vote.uni", SYNC_VOTE_UNI},
		     {"vote.ballot", SYNC_BALLOT}};
	int r = -ENOTSUP;

	for (unsigned i = 0; i < 4; i++) {
		if (op_key(op, votes[i].key)) {
			op->in.mode = (uint8_t)votes[i].mode;
			r = 0;
		}
	}
	if (r < 0 || op->n != (op->sync ? 3u : 2u)) {
		return -ENOTSUP;
	}
	op->in.exec = op->sync ? sync_warp : sync_warp_unsynced;
	if (op->in.mode == SYNC_BALLOT) {
		r = sync_results(d, op);
	} else if (op->o[0].kind == PTX_OPERAND_REG) {
		r = decode_pred_dst(d, op->o[0].name, op, 1);
	}
	if (r == 0) {
		r = decode_pred_src(d, &op->o[1], 0, op);
	}
	if (r == 0 && op->sync) {
		r = decode_src(d, &op->o[2], PTX_TYPE_U32, &op->in.s[3]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_match(struct decoder *d, struct op *op) {
	int r;

	if (!op->sync || op->n != 3 || (!op_key(op, "match.any") && !op_key(op, "match.all")) ||
	    ptx_type_bytes(op->types[0]) < 4 || ptx_type_bytes(op->types[0]) > 8) {
		return -ENOTSUP;
	}
	op->in.exec = sync_warp;
	op->in.mode = op_key(op, "match.any") ? SYNC_MATCH_ANY : SYNC_MATCH_ALL;
	op->in.type = ptx_type_bytes(op->types[0]) == 8 ? PTX_TYPE_B64 : PTX_TYPE_B32;
	r = sync_results(d, op);
	if (r == 0) {
		r = decode_src(d, &op->o[1], op->types[0], &op->in.s[0]);
	}
	if (r == 0) {
		r = decode_src(d, &op->o[2], PTX_TYPE_U32, &op->in.s[3]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_redux(struct decoder *d, struct op *op) {
	static const struct {
		const char *key;
		enum insn_atom mode;
	} ops[] = {{"redux.add", ATOM_ADD}, {"redux.and", ATOM_AND}, {"redux.or", ATOM_OR},
		   {"redux.xor", ATOM_XOR}, {"redux.min", ATOM_MIN}, {"redux.max", ATOM_MAX}};
	int r = -ENOTSUP;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (op_key(op, ops[i].key)) {
			op->in.mode2 = (uint8_t)ops[i].mode;
			r = 0;
		}
	}
	if (r < 0 || op->n != 3 || ptx_type_bytes(op->types[0]) != 4 ||
	    op->types[0] == PTX_TYPE_F32) {
		return -ENOTSUP;
	}
	op->in.exec = sync_warp;
	op->in.mode = SYNC_REDUX;
	r = sync_results(d, op);
	if (r == 0) {
		r = decode_src(d, &op->o[1], op->types[0], &op->in.s[0]);
	}
	if (r == 0) {
		r = decode_src(d, &op->o[2], PTX_TYPE_U32, &op->in.s[3]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

/* elect.sync d|p, members */
static int decode_elect(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 2) {
		return -ENOTSUP;
	}
	op->in.exec = sync_warp;
	op->in.mode = SYNC_ELECT;
	r = sync_results(d, op);
	if (r == 0) {
		r = decode_src(d, &op->o[1], PTX_TYPE_U32, &op->in.s[3]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

/* bar.red.OP d, a[, b], [!]c */
static int barrier_reduction(struct decoder *d, struct op *op, const char *what) {
	int r;

	if (op->n < 3 || op->n > 4) {
		return -ENOTSUP;
	}
	if (strcmp(what, "red.popc") == 0) {
		op->in.mode = BAR_POPC;
		r = decode_dst(d, &op->o[0], &op->in.d[0]);
	} else if (strcmp(what, "red.and") == 0 || strcmp(what, "red.or") == 0) {
		op->in.mode = what[4] == 'a' ? BAR_AND : BAR_OR;
		r = op->o[0].kind == PTX_OPERAND_REG ? decode_pred_dst(d, op->o[0].name, op, 1)
						     : -ENOTSUP;
	} else {
		return -ENOTSUP;
	}
	return r < 0 ? r : decode_pred_src(d, &op->o[op->n - 1], 2, op);
}

static int decode_barrier(struct decoder *d, struct op *op) {
	const char *what = strchr(op->key, '.');
	unsigned first = 0, end = op->n;
	int r = 0;

	if (what && strcmp(what, ".warp") == 0 && op->n == 1) {
		op->in.exec = sync_warp;
		op->in.mode = SYNC_WARP;
		r = decode_src(d, &op->o[0], PTX_TYPE_U32, &op->in.s[3]);
		return r < 0 ? r : decode_emit(d, &op->in);
	}
	/* "cta" and "cluster" are taken as hints elsewhere: here a cluster's barrier is refused. */
	if (op_has(op, "cluster")) {
		return -ENOTSUP;
	}
	op->in.exec = barrier_exec;
	if (ptx_name_is(op->part[0], "bar") || op_has(op, "aligned")) {
		op->in.flags |= INSN_ALIGNED;
	}
	if (!what && op->sync) {
		op->in.mode = BAR_SYNC;
	} else if (what && strcmp(what, ".arrive") == 0 && op->n == 2) {
		op->in.mode = BAR_ARRIVE;
	} else if (what && strncmp(what, ".red.", 5) == 0) {
		r = barrier_reduction(d, op, what + 1);
		first = 1;
		end = op->n - 1;
	} else {
		return -ENOTSUP;
	}
	if (r < 0 || end <= first || end - first > 2) {
		return r < 0 ? r : -ENOTSUP;
	}
	r = decode_src(d, &op->o[first], PTX_TYPE_U32, &op->in.s[0]);
	if (r == 0) {
		r = end - first == 2 ? decode_src(d, &op->o[first + 1], PTX_TYPE_U32, &op->in.s[1])
				     : decode_constant(d, 0, UINT32_MAX, &op->in.s[1]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_plain(struct decoder *d, struct op *op, exec_fn exec) {
	op->in.exec = exec;
	return decode_emit(d, &op->in);
}

static int decode_activemask(struct decoder *d, struct op *op) {
	int r = op->n == 1 ? decode_dst(d, &op->o[0], &op->in.d[0]) : -ENOTSUP;

	return r < 0 ? r : decode_plain(d, op, sync_activemask);
}

static int decode_exit(struct decoder *d, struct op *op) {
	return decode_plain(d, op, control_exit);
}

static int decode_trap(struct decoder *d, struct op *op) {
	return decode_plain(d, op, control_trap);
}

static int decode_sleep(struct decoder *d, struct op *op) {
	return decode_plain(d, op, control_sleep);
}

static int decode_nop(struct decoder *d, struct op *op) {
	return decode_plain(d, op, control_nop);
}

static const struct {
	const char *name;
	int (*decode)(struct decoder *d, struct op *op);
} controls[] = {
	{"bra", decode_bra},
	{"brx", decode_brx},
	{"call", decode_call},
	{"ret", decode_ret},
	{"exit", decode_exit},
	{"trap", decode_trap},
	{"brkpt", decode_nop},
	{"pmevent", decode_nop},
	{"griddepcontrol", decode_nop}, /* kernels of a stream never overlap here */
	{"nanosleep", decode_sleep},
	{"shfl", decode_shfl},
	{"vote", decode_vote},
	{"match", decode_match},
	{"redux", decode_redux},
	{"elect", decode_elect},
	{"bar", decode_barrier},
	{"barrier", decode_barrier},
	{"activemask", decode_activemask},
};

int decode_control(struct decoder *d, struct op *op, bool *ret_mine) {
	for (size_t i = 0; i < sizeof(controls) / sizeof(*controls); i++) {
		if (ptx_name_is(op->part[0], controls[i].name)) {
			*ret_mine = true;
			return controls[i].decode(d, op);
		}
	}
	*ret_mine = false;
	return 0;
}
